# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Part of server.py: a fork becomes what a rank is before its Python reads the script."""

import atexit
import gc
import io
import os
import sys
import time

# Modules that keep a rank's variable as they are imported, and the expression by which they do that:
# in each rank, their rank_zero_only.rank becomes its value.
MENDED = {
    "lightning.fabric.utilities.rank_zero": "_get_rank() or 0",
    "lightning_fabric.utilities.rank_zero": "_get_rank() or 0",
    "torchmetrics.utilities.prints": "int(os.environ.get('LOCAL_RANK', 0))",
}


def begin(link, libc, words, fds, kinds, loaded, changed):
    """Makes this process what a rank is before its Python reads the script, but for the modules that
    were `loaded`, and the variables that these have `changed`."""
    agent, cpus, entries = int(words[1]), words[2], words[3:]
    coerced = coerced_locale()
    os.environ.clear()
    for entry in entries:
        name, _, value = entry.partition("=")
        os.environ[name] = value
    os.environ.update(coerced)
    for name, value in changed.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    die_with(libc, agent)
    link.socket.close()
    held = len(fds) > 3 and fds[0] != 3  # A module has the number of MPI's descriptor.
    for target, fd in enumerate(fds):  # They are in ascending order, from 3.
        if fd != target:
            os.dup2(fd, target)
        else:
            os.set_inheritable(fd, True)
    for fd in fds:
        if fd >= len(fds):
            os.close(fd)
    if cpus:
        try:
            os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(",")])
        except OSError:
            pass  # As when the agent starts it: it runs without.
    if held or in_bad_fork():
        start_anew()
    for number, name, mode in (0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w"):
        if kind_of(number) != kinds[number]:
            renew_stream(number, name, mode)
    mend()
    known = all(name.partition(".")[0] in KNOWN for name in loaded)
    atexit.register(thaw, known)


def coerced_locale():
    """The variable that Python has set itself as it started in the C locale."""
    value = os.environ.get("LC_CTYPE")
    with open("/proc/self/environ", "rb") as file:
        given = value is None or any(entry.startswith(b"LC_CTYPE=")
                                     for entry in file.read().split(b"\0"))
    return {} if given else {"LC_CTYPE": value}


def thaw(known):
    """What is frozen is not freed as Python ends. Triton complains of that, and other libraries
    might. To free it takes longer than the rest of the end, so it is not done for nothing."""
    if not known or "triton" in sys.modules:
        gc.unfreeze()


def in_bad_fork():
    torch = sys.modules.get("torch")
    asks = getattr(getattr(torch, "_C", None), "_cuda_isInBadFork", None)
    return asks is not None and asks()


def start_anew():
    """Becomes the rank in the normal way."""
    import _signal
    for number in _signal.SIGPIPE, _signal.SIGXFSZ:
        _signal.signal(number, _signal.SIG_DFL)
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    try:
        os.execvp(words[0], words)
    finally:
        os._exit(127)


def renew_stream(number, name, mode):
    """As Python makes its standard streams, which depend on the kind of file."""
    old = getattr(sys, "__%s__" % name)
    if old is None or getattr(sys, name) is not old:
        return
    unbuffered = mode == "w" and old.write_through
    # With -u also standard input has that mark, though it has a buffer.
    buffer = io.open(number, mode + "b", 0 if unbuffered else -1, closefd=False)
    raw = buffer if unbuffered else buffer.raw
    raw.name = "<%s>" % name
    lines = not old.write_through and (raw.isatty() or number == 2)
    stream = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", lines,
                              old.write_through)
    stream.mode = mode
    setattr(sys, name, stream)
    setattr(sys, "__%s__" % name, stream)


def mend():
    """What is new in each process that imports these modules."""
    random = sys.modules.get("numpy.random")
    if "numpy.random.mtrand" in sys.modules and random is not None:
        random.seed()
    torch = sys.modules.get("torch")
    if hasattr(torch, "default_generator"):
        torch.default_generator.seed()
    logging = sys.modules.get("logging")
    if logging is not None:
        logging._startTime = time.time_ns() if sys.version_info >= (3, 13) else time.time()
    threading = sys.modules.get("threading")
    if threading is not None and hasattr(threading.main_thread(), "_set_native_id"):
        threading.main_thread()._set_native_id()  # Not every Python does it after a fork.
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    for name, value in MENDED.items():
        module = sys.modules.get(name)
        if module is not None:
            module.rank_zero_only.rank = eval(value, vars(module))
