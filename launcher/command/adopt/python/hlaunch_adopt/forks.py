# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that are forks of the caller, as torch's start method `fork` makes them: they have what the
caller has imported, defined and set, and nothing is pickled but what they return.

hlaunch's workers must be children of its agent, so each is a stand-in (stand_in.py), which asks the
template: a fork of the caller, made before the job begins. The template forks the rank by
multiprocessing, and tells the stand-in how it ended. It kills a rank whose stand-in is gone.

    caller (notebook) --+-- template --+-- rank
                        |        ^     +-- rank
                        |        | socket in the job's folder
                        +-- hlaunch -- agent -- stand-in, stand-in
"""

import ctypes
import fcntl
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import traceback

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import record

from hlaunch_adopt.call import write
from hlaunch_adopt.child import flush

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None)
RESET = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Template:
    """Forks this process, and ends the fork and all that it has forked on exit. If this process
    dies, the template ends once its ranks have; hlaunch ends these."""

    def __init__(self, folder, function, args):
        self.folder, self.function, self.args = folder, function, args
        self.pid = self.life = None

    def __enter__(self):
        flush()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        place = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)  # A socket's path may have 107 bytes.
        listener.bind(f"/proc/self/fd/{place}/forks")
        os.close(place)
        listener.listen(1024)
        self.life, its = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.life.close()
                _Serving(listener, its, self).serve()
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(0)
        its.close()
        listener.close()
        return self

    def __exit__(self, *_):
        self.life.shutdown(socket.SHUT_RDWR)  # Forks of other threads may hold it as well.
        self.life.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # The caller ignores SIGCHLD, or has waited for all of its children.


class _Rank:
    """A stand-in's connection, and the rank's process once it is known what it is to be."""

    def __init__(self, link):
        self.link, self.process, self.received, self.fds = link, None, b"", []
        self.end = None  # Readable once the process has ended.

    def take(self):
        """Reads what is there. Returns the words of a rank once they are complete; raises EOFError."""
        if self.process is not None:
            for number in self._receive():
                self.signal(number)
            return None
        self.received += self._receive()
        size = int.from_bytes(self.received[:4], "little")
        if len(self.received) < 4 or len(self.received) < 4 + size:
            return None
        return self.received[4:4 + size].split(b"\0")[:-1]

    def begin(self, process):
        """Starts the rank, and sends it the signals that came behind its words."""
        self.process = process
        process.start()
        self.close_fds()
        try:
            self.end = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # An old Python or kernel: what it forks holds that one, too.
            self.end = process.sentinel
        for number in self.received[4 + int.from_bytes(self.received[:4], "little"):]:
            self.signal(number)

    def _receive(self):
        try:
            data, extra, _, _ = self.link.recvmsg(65536, 4096, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, extra = b"", []
        for _, _, numbers in extra:
            self.fds += [int.from_bytes(numbers[i:i + 4], sys.byteorder)
                         for i in range(0, len(numbers), 4)]
        if not data:
            raise EOFError
        return data

    def signal(self, number):
        """To the rank's group, as hlaunch signals a worker's."""
        try:
            os.killpg(self.process.pid, number)
        except OSError:
            try:
                os.kill(self.process.pid, number)  # It has no group of its own yet.
            except OSError:
                pass

    def close(self):
        self.link.close()
        self.close_fds()
        if self.end is not None and self.end != self.process.sentinel:
            os.close(self.end)
        self.end = None

    def close_fds(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class _Serving:
    """The template's process."""

    def __init__(self, listener, life, template):
        self.listener, self.life, self.template = listener, life, template
        self.ranks = []
        self.at_childs_end = None  # What the caller does on SIGCHLD.

    def serve(self):
        os.setsid()  # What a terminal sends is for the caller.
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)  # So that what ranks leave behind can be ended.
        for number in RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.at_childs_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # Else codes may be lost.
        signal.set_wakeup_fd(-1)  # It is the loop of the caller.
        while self.life is not None or self.ranks:
            waits = [rank.link for rank in self.ranks]
            waits += [rank.end for rank in self.ranks if rank.process]
            waits += [self.listener, self.life] if self.life is not None else []
            ready = multiprocessing.connection.wait(waits)
            if self.life in ready:
                self.life.close()
                self.life = None
                self.listener.close()
            elif self.listener in ready:
                self.ranks.append(_Rank(self.listener.accept()[0]))
            for rank in [rank for rank in self.ranks if rank.link in ready]:
                self.hear(rank)
            for rank in [rank for rank in self.ranks if rank.process and rank.end in ready]:
                self.ended(rank)
            if not any(rank.process for rank in self.ranks) and has_children():
                kill_below(os.getpid())  # What ranks have left behind.

    def hear(self, rank):
        try:
            words = rank.take()
        except EOFError:  # Its stand-in is gone.
            self.ranks.remove(rank)
            if rank.process is not None:
                rank.signal(signal.SIGKILL)
                rank.process.join()
            rank.close()
            return
        if words is None:
            return
        rank.begin(multiprocessing.get_context("fork").Process(target=self.run, args=(rank, words)))

    def ended(self, rank):
        rank.process.join()
        try:
            rank.link.sendall(b"%d\n" % rank.process.exitcode)
        except OSError:
            pass  # The stand-in is gone as well.
        self.ranks.remove(rank)
        rank.close()

    def run(self, rank, words):
        """In the rank."""
        os.setsid()
        template = os.getppid()
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != template or template == 1:
            os._exit(1)
        own = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in rank.fds]
        for other in self.ranks:
            other.close()
        self.listener.close()  # Where the caller has closed its stdin, it may be descriptor 0.
        if self.life is not None:
            self.life.close()
        for number, fd in enumerate(own):
            os.dup2(fd, number)
            os.close(fd)
        become(words)
        for number in RESET:
            signal.signal(number, raise_signal)
        if self.at_childs_end is not None:  # Python knows it.
            signal.signal(signal.SIGCHLD, self.at_childs_end)
        write(self.template.folder, record(self.template.function)(*self.template.args))


def raise_signal(number, _):
    """A fork of torch's agent has its handler: what is below `finally` runs."""
    name = signal.Signals(number)
    raise SignalException(f"Process {os.getpid()} got signal: {name}", sigval=name)


def become(words):
    """Takes the CPUs, the working directory and the environment of the stand-in, and its streams."""
    cpus, folder, *entries = words
    try:
        os.sched_setaffinity(0, [int(cpu) for cpu in cpus.split(b",")])
    except OSError:
        pass
    os.chdir(folder)
    os.environ.clear()
    for entry in entries:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
    os.environ.pop("NCCL_ASYNC_ERROR_HANDLING", None)  # For torch before 2.2; a later one warns of it.
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = stream(1)  # In a notebook they are others.
    sys.stderr = sys.__stderr__ = stream(2)


def stream(number):
    """Each line is written at once."""
    return open(number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def kill_below(root):
    """Kills all descendants of `root`, also those that come meanwhile."""
    while True:
        found = below(root)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # It has ended.
        while root == os.getpid() and reap_one():
            pass


def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def reap_one():
    try:
        return os.waitpid(-1, 0)[0] != 0
    except ChildProcessError:
        return False


def below(root):
    """The descendants of `root` that have not ended."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        if state not in b"ZX":
            children.setdefault(int(parent), []).append(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]
