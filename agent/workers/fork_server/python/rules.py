# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Part of server.py: what ranks may share. What is imported stays only if a fork of it is what a
process would be that imports it itself."""

import os
import stat
import sys
import time

# What must not be imported before a fork, and why.
UNFIT = {
    "bitsandbytes": "it asks the devices while it is imported",
    "deepspeed": "it asks the devices while it is imported",
    "habana_frameworks": "it opens the devices",
    "jax": "its threads do not live through a fork",
    "mpi4py": "MPI is started once for each process",
    "tensorflow": "its threads do not live through a fork",
    "torch_xla": "it opens the devices",
}

ENDING_TIME = 1.0  # In which threads end that a fork has ended.
READABLE = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


def why_not_ours(name, plan):
    beside = {module: path for module, path in top_modules()
              if plan.first_path and os.path.dirname(path) == os.path.abspath(plan.first_path[0])}
    if not beside or name.partition(".")[0] in beside and name in plan.names:
        return ""
    return "it imports %s, which lies beside the script" % list(beside.values())[0]


def top_modules():
    """The names of modules that are in no package, and the file or the folder of each. The script
    is none of them: it is __main__, and multiprocessing calls it __mp_main__ as well."""
    for name, module in list(sys.modules.items()):
        path = file_of(module)
        if path and "." not in name and module is not sys.modules["__main__"]:
            is_package = hasattr(module, "__path__")
            yield name, os.path.dirname(path) if is_package else path


def file_of(module):
    return getattr(module, "__dict__", {}).get("__file__")


def why_not_to_fork(before):
    if not is_one_thread():
        return "it starts threads"
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        if file.read().strip():
            return "it starts processes"
    signal = sys.modules.get("signal")
    if signal is not None and any(signal.getitimer(timer) != (0, 0) for timer in (
            signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)):
        return "it sets a timer"  # A fork has none.
    for number in descriptors() - before:
        why = why_not_open(number)
        if why:
            return why
    with open("/proc/self/maps") as file:
        for line in file:
            path = line.split(None, 5)[5].rstrip() if line.count(" ") > 5 and "/" in line else ""
            if path.startswith("/dev/") and path not in READABLE:
                return "it maps %s" % path
    torch = sys.modules.get("torch")
    for kind in "cuda", "xpu", "hpu":
        asks = getattr(getattr(torch, kind, None), "is_initialized", None)
        if asks and asks():
            return "it starts %s" % kind
    return ""


def why_not_to_share(names):
    """What of these modules would be equal in all ranks, or go with the first one that ends."""
    known = {top: is_trusted(top) for top in {name.partition(".")[0] for name in names}}
    for name in names:
        module = sys.modules[name]
        if known[name.partition(".")[0]] or not file_of(module):
            continue
        for word, value in list(vars(module).items()):
            if is_generator(value):
                return "%s.%s would give all ranks the same random numbers" % (name, word)
    finalize = getattr(sys.modules.get("weakref"), "finalize", None)
    for entry in list(getattr(finalize, "_registry", {}).values()):
        owner = getattr(getattr(entry, "func", None), "__self__", None)
        if getattr(owner, "__name__", "") == "TemporaryDirectory":
            return "the first rank to end would remove its temporary folder"
    return ""


def is_generator(value):
    """Whether it has a state of random numbers of its own, which mend() does not renew."""
    kinds, renewed = [], []
    random, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    if random is not None:
        kinds.append(random.Random)
        renewed.append(random._inst)
    if hasattr(numpy, "RandomState"):
        kinds += [numpy.Generator, numpy.RandomState]
        renewed.append(numpy.mtrand._rand)
    if hasattr(torch, "default_generator"):
        kinds.append(torch.Generator)
        renewed.append(torch.default_generator)
    # Of its type only: to ask the value itself may be what a lazy one waits for.
    return (issubclass(type(value), tuple(kinds)) and type(value).__name__ != "SystemRandom" and
            not any(value is one for one in renewed))


def is_one_thread():
    """Some libraries, OpenBLAS among them, end their threads before a fork, and start them again in
    whichever process needs them: so the threads that count are those which a fork leaves."""
    if threads() == 1:
        return True
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, of a fork with threads.
        child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + ENDING_TIME
    ended = False
    while time.monotonic() < deadline and not (ended and threads() == 1):
        ended = ended or os.waitpid(child, os.WNOHANG)[0] == child
        time.sleep(0.001)
    if not ended:
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)
    return ended and threads() == 1


def threads():
    return len(os.listdir("/proc/self/task"))


def descriptors():
    numbers = os.listdir("/proc/self/fd")  # Also the one by which they are listed.
    return {number for number in numbers if os.path.lexists("/proc/self/fd/" + number)}


def why_not_open(number):
    path = os.readlink("/proc/self/fd/" + number)
    mode = os.fstat(int(number)).st_mode
    with open("/proc/self/fdinfo/" + number) as file:
        flags = [int(line.split()[1], 8) for line in file if line.startswith("flags:")][0]
    if path in READABLE or (stat.S_ISDIR(mode) and flags & os.O_ACCMODE == os.O_RDONLY):
        return ""  # A file would have one place from which all ranks read.
    return "it leaves %s open" % path
