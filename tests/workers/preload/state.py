# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that tell what they find themselves to be. Each line is a name and a value in JSON."""

import sys

FRAMES = len(sys._current_frames())

import preloaded

preloaded.tell()

import _thread
import asyncio
import atexit
import ctypes
import decimal
import gc
import io
import json
import locale
import logging
import multiprocessing
import os
import pathlib
import pickle
import random
import resource
import select
import signal
import socket
import stat
import tempfile
import threading
import time
import tracemalloc
import uuid
import warnings
import faulthandler
import inspect

LIBC = ctypes.CDLL(None, use_errno=True)


def fact(name, value):
    print(name, json.dumps(value, default=repr), flush=True)


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8", errors="surrogateescape")


def prctl(number):
    value = ctypes.c_int(-1)
    LIBC.prctl(number, ctypes.byref(value), 0, 0, 0)
    return value.value


def command():
    fact("argv", sys.argv)
    fact("orig_argv", sys.orig_argv)
    fact("cmdline", read("/proc/self/cmdline"))
    fact("comm", read("/proc/self/comm"))
    fact("comm_of_thread", read("/proc/thread-self/comm"))
    fact("exe", os.readlink("/proc/self/exe"))
    fact("executable", [sys.executable, sys._base_executable, sys.prefix, sys.exec_prefix])
    fact("main", {name: value for name, value in vars(sys.modules["__main__"]).items()
                  if name.startswith("__") and name != "__builtins__"})
    fact("stack", [frame.function for frame in inspect.stack()])
    fact("frames", FRAMES)


def environment():
    fact("environ", dict(sorted(os.environ.items())))
    fact("order", [name for name in os.environ])
    fact("environb", os.environb[b"RANK"].decode())
    LIBC.getenv.restype = ctypes.c_char_p
    fact("getenv", {name: (LIBC.getenv(os.fsencode(name)) or b"").decode(errors="replace")
                    for name in sorted(os.environ)})
    fact("type", [str(type(os.environ)), os.environ.__class__.__module__])
    fact("proc_environ", sorted(read("/proc/self/environ").split("\0")))
    with os.popen("env -0 | sort -z | tr '\\0' '\\n' | grep -v '^_='") as pipe:
        fact("of_a_child", pipe.read())


def interpreter():
    fact("modules", sorted(sys.modules))
    fact("path", sys.path)
    fact("importer_cache", sorted(str(name) for name in sys.path_importer_cache))
    fact("meta_path", [str(finder) for finder in sys.meta_path])
    fact("path_hooks", len(sys.path_hooks))
    fact("flags", str(sys.flags))
    fact("warnoptions", sys.warnoptions)
    fact("xoptions", sys._xoptions)
    fact("limits", [sys.getrecursionlimit(), sys.getswitchinterval(), sys.dont_write_bytecode,
                    sys.pycache_prefix, threading.stack_size()])
    fact("gc", [gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.garbage), gc.callbacks])
    fact("frozen", gc.get_freeze_count())
    fact("hooks", [sys.excepthook is sys.__excepthook__,
                   sys.unraisablehook is sys.__unraisablehook__, sys.breakpointhook is
                   sys.__breakpointhook__, threading.excepthook is threading.__excepthook__,
                   sys.gettrace(), sys.getprofile(), sys.displayhook is sys.__displayhook__])
    fact("faulthandler", faulthandler.is_enabled())
    fact("tracemalloc", [tracemalloc.is_tracing(), tracemalloc.get_traceback_limit()])
    fact("debug", [__debug__, hasattr(sys, "gettotalrefcount"), sys.flags.dev_mode])
    fact("atexit", atexit._ncallbacks())
    fact("site", [name in sys.modules for name in ("site", "sitecustomize", "usercustomize")])
    fact("hooks_of_audit", sys.audit("hlaunch.test"))
    depth = 0

    def deeper():
        nonlocal depth
        depth += 1
        deeper()
    try:
        deeper()
    except RecursionError:
        fact("depth", depth)


def process():
    parent = read(f"/proc/{os.getppid()}/comm")
    fact("parent", parent)
    fact("leads", [os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid()])
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines())
    fact("status", {name: status[name] for name in (
        "Umask", "State", "Uid", "Gid", "Groups", "NStgid", "Threads", "CapInh", "CapPrm", "CapEff",
        "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "THP_enabled", "CoreDumping",
        "TracerPid", "Cpus_allowed_list", "Mems_allowed_list") if name in status and name != "NStgid"})
    fact("children", read(f"/proc/self/task/{os.getpid()}/children"))
    fact("pdeathsig", prctl(2))
    fact("subreaper", prctl(37))
    fact("prctl", [LIBC.prctl(number, 0, 0, 0, 0) for number in (3, 7, 27, 30, 21, 42)])
    fact("personality", LIBC.personality(ctypes.c_ulong(0xFFFFFFFF)))
    fact("oom", [read("/proc/self/oom_score_adj"), read("/proc/self/coredump_filter")])
    fact("groups", [read("/proc/self/cgroup"), read("/proc/self/loginuid")])
    fact("autogroup", read("/proc/self/autogroup").split("nice")[1])
    fact("schedule", [os.nice(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0),
                      LIBC.syscall(252, 1, 0), sorted(os.sched_getaffinity(0))])
    fact("namespaces", {name: os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))})
    fact("rlimits", {name: resource.getrlimit(getattr(resource, name))
                     for name in sorted(dir(resource)) if name.startswith("RLIMIT_")})
    fact("directories", [os.getcwd(), os.readlink("/proc/self/root")])
    fact("terminal", read("/proc/self/stat").rpartition(")")[2].split()[4])
    fact("policy", read("/proc/self/numa_maps").splitlines()[0].split()[1]
         if os.path.exists("/proc/self/numa_maps") else "")
    fact("children_times", [os.times().children_user, os.times().children_system])
    fact("threads", len(os.listdir("/proc/self/task")))
    try:
        fact("waits", os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        fact("waits", "no child")


def signals():
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines())
    fact("status", {name: status[name] for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "SigQ")
                    if name != "SigQ"})
    fact("handlers", {number.name: str(signal.getsignal(number)) for number in
                      sorted(signal.valid_signals()) if isinstance(number, signal.Signals)})
    fact("mask", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    fact("wakeup", signal.set_wakeup_fd(-1))
    fact("timers", [signal.getitimer(which) for which in range(3)])
    with os.popen("grep ^Sig.*: /proc/self/status | grep -v SigQ") as pipe:
        fact("of_a_child", pipe.read())


def descriptors():
    found = {}
    for number in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            found[number] = [stat.filemode(os.fstat(int(number)).st_mode), os.get_inheritable(int(number)),
                             read(f"/proc/self/fdinfo/{number}").split("\nmnt_id")[0].split("flags:")[1].strip()]
        except OSError:
            pass  # By it they were listed.
    fact("open", found)
    if not preloaded.torch:  # A thread of its server waits in accept, for which the kernel keeps a free number.
        with open("/dev/null", encoding="utf-8") as file:
            fact("next", file.fileno())
    with os.popen("ls /proc/self/fd") as pipe:
        fact("of_a_child", pipe.read())
    fact("same_file", os.path.sameopenfile(1, 2))
    fact("blocking", [os.get_blocking(number) for number in range(3)])


def streams():
    for name in "stdin", "stdout", "stderr":
        stream = getattr(sys, name)
        fact(name, [stream.name, stream.mode, stream.encoding, stream.errors, stream.newlines,
                    stream.line_buffering, stream.write_through, stream.isatty(), stream.fileno(),
                    stream.closed, stream.readable(), stream.writable(), stream.seekable(),
                    type(stream).__name__, stream.buffer.name, stream.buffer.mode,
                    type(stream.buffer).__name__, stream is getattr(sys, f"__{name}__"),
                    stream._CHUNK_SIZE, repr(stream), repr(stream.buffer).split(" at ")[0]])
        raw = getattr(stream.buffer, "raw", stream.buffer)
        fact(name + ".raw", [raw.name, raw.mode, raw.closefd, type(raw).__name__])
    try:
        size = os.get_terminal_size(1)
    except OSError as error:
        size = error.strerror
    fact("terminal", size)


def places():
    fact("locale", [locale.setlocale(locale.LC_ALL, None), locale.getpreferredencoding(),
                    sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(),
                    sys.getdefaultencoding(), locale.localeconv()["decimal_point"]])
    fact("time", [time.tzname, time.timezone, time.localtime(0).tm_hour])
    fact("temporary", [tempfile.gettempdir(), tempfile.template])
    fact("host", [socket.gethostname(), socket.getdefaulttimeout(), os.uname().nodename])
    fact("user", [os.path.expanduser("~"), os.path.expanduser("~root")])


def libraries():
    fact("main_thread", [threading.main_thread() is threading.current_thread(),
                         threading.main_thread().name, threading.main_thread().ident == _thread.get_ident(),
                         threading.get_native_id() == os.getpid() == threading.main_thread().native_id,
                         threading.active_count(), threading.main_thread().is_alive(), repr(type(threading.main_thread()))])
    now = multiprocessing.current_process()
    fact("process", [now.name, now.pid == os.getpid(), now.daemon, len(now.authkey), str(type(now)),
                     multiprocessing.parent_process(), multiprocessing.active_children(),
                     multiprocessing.get_start_method(allow_none=True), now._identity])
    fact("warnings", warnings.filters)
    fact("logging", [logging.root.level, logging.root.handlers, logging.lastResort.level,
                     abs(logging._startTime / (1e9 if logging._startTime > 1e12 else 1) - time.time()) < 5,
                     logging.getLogger("x").isEnabledFor(logging.INFO), sorted(logging.root.manager.loggerDict)])
    fact("loop", [str(type(asyncio.get_event_loop_policy())), asyncio._get_running_loop()])
    fact("decimal", str(decimal.getcontext()))
    fact("clock", [time.process_time() < 30, time.thread_time() < 30, abs(time.time() - time.time_ns() / 1e9) < 1])
    fact("copies", pickle.loads(pickle.dumps(Kept(7))).value)
    fact("kept", pickle.dumps(Kept(7)).hex())
    fact("numpy", [str(preloaded.numpy.geterr()), str(preloaded.numpy.get_printoptions())] if preloaded.numpy else None)


class Kept:
    def __init__(self, value):
        self.value = value


def chance():
    """What differs from rank to rank and from run to run, and what must not."""
    random.seed  # As it is.
    fact("random", random.random())
    fact("numpy", preloaded.numpy.random.random() if preloaded.numpy else random.random())
    fact("generator", preloaded.numpy.random.default_rng().random() if preloaded.numpy else random.random())
    fact("urandom", os.urandom(8).hex())
    fact("uuid", str(uuid.uuid4()))
    fact("temporary", next(tempfile._get_candidate_names()))
    fact("authkey", bytes(multiprocessing.current_process().authkey).hex())
    fact("hash", hash("hlaunch"))
    fact("address", id(object))
    fact("canary", read("/proc/self/auxv")[:0] or ctypes.string_at(auxiliary(25), 16).hex())


def auxiliary(number):
    LIBC.getauxval.restype = ctypes.c_ulong
    return LIBC.getauxval(number)


def chance_with_a_seed():
    random.seed(3)
    fact("random", random.random())
    fact("words", list({"a", "b", "c", "d", "e", "f"}))
    fact("hash", hash("hlaunch"))


def settle():
    """Torch's control server, which hlaunch has opened, starts threads in a thread, and opens files there."""
    seen, since, begin = None, 0.0, time.monotonic()
    while time.monotonic() - begin < 60 and (seen is None or time.monotonic() - since < 0.3):
        now = len(os.listdir("/proc/self/task"))
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.01)


if __name__ == "__main__":
    if preloaded.torch:
        settle()
    if os.environ.get("FAIL_FIRST") and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(7)
    globals()[sys.argv[1]]()
