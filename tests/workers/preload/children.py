# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that start processes in the ways in which Python programs do."""

import preloaded

preloaded.tell()

import asyncio
import concurrent.futures
import ctypes
import multiprocessing
import multiprocessing.managers
import multiprocessing.shared_memory
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time


class Kept:
    def __init__(self, value):
        self.value = value


def square(kept):
    return Kept(kept.value ** 2), multiprocessing.current_process().name.split("-")[0], __name__


def pool(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as made:
        for result, name, module in made.map(square, [Kept(2), Kept(3)]):
            print(result.value, name, module)
        made.close()
        made.join()


def pool_by_fork():
    pool("fork")


def pool_by_spawn():
    pool("spawn")


def pool_by_forkserver():
    pool("forkserver")


def pool_by_default():
    print(multiprocessing.get_start_method())
    with multiprocessing.Pool(1) as made:
        print(made.apply(os.getppid) == os.getpid())


def fails():
    raise KeyError("in a process")


def process_that_fails():
    process = multiprocessing.get_context("spawn").Process(target=fails)
    process.start()
    process.join()
    sys.exit(process.exitcode)


def executor():
    with concurrent.futures.ProcessPoolExecutor(2) as made:
        print([result.value for result, _, _ in made.map(square, [Kept(4), Kept(5)])])
    with concurrent.futures.ThreadPoolExecutor(2) as made:
        print(list(made.map(str, range(3))))


def add(queue, barrier):
    barrier.wait()
    queue.put(os.getppid())


def queue_and_manager():
    context = multiprocessing.get_context("fork")
    queue, barrier = context.Queue(), context.Barrier(2)
    process = context.Process(target=add, args=(queue, barrier), daemon=True)
    process.start()
    barrier.wait()
    print(queue.get() == os.getpid())
    process.join()
    with context.Manager() as manager:
        numbers = manager.list([1, 2])
        numbers.append(3)
        print(list(numbers))


def shared_memory():
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=16)
    block.buf[:2] = b"ab"
    other = multiprocessing.shared_memory.SharedMemory(block.name)
    print(bytes(other.buf[:2]))
    other.close()
    block.close()
    block.unlink()


def leaked_shared_memory():
    multiprocessing.shared_memory.SharedMemory("hlaunch-" + os.environ["RANK"], create=True, size=16)


def forks():
    child = os.fork()
    if child == 0:
        print("child", os.getppid() != 1, os.getpgrp() == os.getppid(), flush=True)
        os._exit(6)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def forks_and_leaves():
    """A child that ends later than the rank."""
    if os.fork() == 0:
        time.sleep(600)


def daemonises():
    done = pathlib.Path(f"daemon{os.environ['RANK']}")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            null = os.open("/dev/null", os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            pathlib.Path(os.environ["PLACE"], done).write_text("written\n", encoding="utf-8")
        os._exit(0)
    os.wait()
    while not done.exists() or not done.read_text(encoding="utf-8"):
        time.sleep(0.01)


def other_programs():
    print(subprocess.run(["sh", "-c", "echo $RANK; exit 3"], capture_output=True, text=True, check=False))
    print(os.system("exit 4"))
    print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "kill -9 $$"], os.environ), 0)[1]))
    print(subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, sys.flags.optimize)", "x"],
                         capture_output=True, check=True).stdout)
    print(subprocess.run(["sh", "-c", "ps -o stat= -p $$ | cut -c1; ls /proc/self/fd | wc -l"], close_fds=False,
                         capture_output=True, text=True, check=True).stdout)


def asyncio_program():
    async def run():
        process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        print(await process.communicate(b"through cat"))
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print, "signal")
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.sleep(0.05)
    asyncio.run(run())


def on_a_terminal():
    pty.spawn([sys.executable, "-c", "import sys, os; print([os.isatty(i) for i in range(3)], sys.stdout.line_buffering)"])


def becomes_another():
    os.execv(sys.executable, [sys.executable, "-c", "import os, sys; print(sys.argv, os.environ['RANK'], "
                              "'hlaunch_fork_server' in sys.modules, os.environ.get('PYTHONPATH'))", "again"])


def becomes_itself():
    if os.environ.get("AGAIN"):
        print("again", sys.argv)
        return
    os.environ["AGAIN"] = "1"
    os.execv(sys.orig_argv[0], sys.orig_argv)


def title():
    libc = ctypes.CDLL(None)
    libc.prctl(15, b"own name", 0, 0, 0)
    print(pathlib.Path("/proc/self/comm").read_text(encoding="utf-8"), end="")
    with os.popen(f"ps -o comm=,args= -p {os.getpid()}") as pipe:
        print(pipe.read())


def counts_children():
    child = os.fork()
    if child == 0:
        time.sleep(0.05)
        os._exit(0)
    seen = []
    signal.signal(signal.SIGCHLD, lambda *_: seen.append(os.waitpid(-1, os.WNOHANG)[0] == child))
    while not seen:
        time.sleep(0.01)
    print(seen)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
