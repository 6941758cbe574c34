# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that end in one of the ways in which a Python program ends."""

import preloaded

preloaded.tell()

import asyncio
import atexit
import ctypes
import faulthandler
import gc
import os
import resource
import signal
import sys
import threading
import time
import warnings
import weakref


def code_0():
    sys.exit(0)


def code_7():
    sys.exit(7)


def code_none():
    sys.exit(None)


def code_300():
    sys.exit(300)


def code_text():
    sys.exit("ended: ü")


def code_at_once():
    print("never written", end="")
    os._exit(9)


def exit_by_builtin():
    exit(4)


def inner(value):
    return {}[value]


def raises():
    inner("key")


def raises_from():
    try:
        inner("key")
    except KeyError as error:
        error.add_note("a note")
        raise RuntimeError("several\nlines") from error


def raises_a_group():
    raise ExceptionGroup("two", [ValueError(1), TypeError(2)])


def raises_in_a_thread():
    thread = threading.Thread(target=inner, args=("key",), name="worker")
    thread.start()
    thread.join()


def raises_in_asyncio():
    async def run():
        await asyncio.sleep(0.01)
        inner("key")
    asyncio.run(run())


def raises_where_nobody_sees():
    class Noisy:
        def __del__(self):
            inner("key")
    Noisy()


def recursion():
    recursion()


def out_of_memory():
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))
    bytearray(8 << 30)


def own_hook():
    sys.excepthook = lambda kind, value, trace: print("hook:", kind.__name__, trace.tb_lineno, file=sys.stderr)
    inner("key")


def syntax_error():
    compile("a = (", "text.py", "exec")


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)


def usr1():
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(10)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def abort():
    os.abort()


def segfault():
    ctypes.string_at(8)


def segfault_with_faulthandler():
    faulthandler.enable()
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    ctypes.string_at(8)


def registered_dump():
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.raise_signal(signal.SIGUSR1)  # To this thread; any may take one for the process.
    faulthandler.dump_traceback()


def dump_later():
    faulthandler.dump_traceback_later(0.2)
    time.sleep(0.5)


def broken_pipe():
    reads, writes = os.pipe()
    os.close(reads)
    os.dup2(writes, 1)
    print("to nobody")
    sys.stdout.flush()


def broken_pipe_at_exit():
    reads, writes = os.pipe()
    os.close(reads)
    os.dup2(writes, 1)
    print("to nobody")


def default_pipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    broken_pipe()


def handled():
    """Waits for SIGTERM, which the test sends to the launcher."""
    def handle(number, frame):
        print("handled", signal.Signals(number).name, flush=True)
        sys.exit(5)
    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    os.write(1, b"ready\n")
    wait()


def wait():
    while True:
        time.sleep(0.05)


def unhandled():
    os.write(1, b"ready\n")
    wait()


def thread_at_exit():
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    atexit.register(print, "at exit")
    print("main")


def daemon_thread_at_exit():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    print("main")


def at_exit():
    atexit.register(print, "first")
    atexit.register(inner, "key")
    atexit.register(print, "last")
    threading._register_atexit(print, "threads")
    weakref.finalize(at_exit, print, "finalized")
    sys.exit(3)


def globals_at_exit():
    class Last:
        def __del__(self):
            print("collected", sys.is_finalizing(), flush=True)
    module = sys.modules["__main__"]
    module.kept, module.ring = Last(), [Last()]
    module.ring.append(module.ring)


def warns():
    warnings.warn("be warned")
    open("/dev/null")
    gc.collect()
    warnings.warn("old", DeprecationWarning)


def asserts():
    assert False, "asserted"
    print("no assertion", __debug__, asserts.__doc__, sys.flags.optimize)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
