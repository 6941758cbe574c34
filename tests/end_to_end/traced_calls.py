# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Counts the system calls of a command and of the processes that it forks, by ptrace.

A process counts until it executes another program, but for the command itself.
"""

import ctypes
import os
import platform
import signal
import struct

NUMBERS = {  # Of x86_64 and aarch64.
    "clone": (56, 220), "execve": (59, 221), "mkdir": (83, None), "mkdirat": (258, 34),
    # How often these return depends on who runs when.
    "poll": (7, None), "ppoll": (271, 73), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "futex": (202, 98), "recvfrom": (45, 207),
}
WAITS = ("poll", "ppoll", "epoll_wait", "epoll_pwait", "futex", "recvfrom")
CLONE_THREAD = 0x10000
TRACE_ME, CONTINUE_TO_CALL, SET_OPTIONS, CALL_INFO = 0, 24, 0x4200, 0x420E
CALLS, FORKS, EXECS, END_WITH_US = 1, 2 | 4 | 8, 16, 0x100000
ALL_CHILDREN = 0x40000000  # __WALL
EXEC_EVENT, ENTRY = 4, 1

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long


def name_of(number):
    column = 1 if platform.machine() == "aarch64" else 0
    return next((name for name, numbers in NUMBERS.items() if numbers[column] == number), number)


class Calls:
    """The calls of one command: what was called, each with the pid and the first argument."""

    def __init__(self, command, env):
        self.calls = []  # (pid, name or number, first argument)
        self.status = None
        self.first = os.fork()
        if self.first == 0:
            self.become(command, env)
        os.waitpid(self.first, 0)
        self.ptrace(SET_OPTIONS, self.first, CALLS | FORKS | EXECS | END_WITH_US)
        self.counted, self.gone = {self.first}, set()
        self.ptrace(CONTINUE_TO_CALL, self.first, 0)
        while self.status is None:
            self.take(*os.waitpid(-1, ALL_CHILDREN))

    @staticmethod
    def become(command, env):
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nowhere, fd)
        LIBC.ptrace(TRACE_ME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execve(command[0], command, env)

    @staticmethod
    def ptrace(request, pid, data):
        LIBC.ptrace(request, pid, None, data)

    def take(self, pid, status):
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if pid == self.first:
                self.status = status
            return
        number, passed_on = os.WSTOPSIG(status), 0
        if number == signal.SIGTRAP | 0x80:
            self.note(pid)
        elif number == signal.SIGTRAP:
            if status >> 16 == EXEC_EVENT and pid != self.first:
                self.gone.add(pid)
        elif number != signal.SIGSTOP:  # Of a new process.
            passed_on = number
        self.ptrace(CONTINUE_TO_CALL, pid, passed_on)

    def note(self, pid):
        info = ctypes.create_string_buffer(88)
        LIBC.ptrace(CALL_INFO, pid, ctypes.c_void_p(len(info)), ctypes.addressof(info))
        kind, = struct.unpack_from("B", info, 0)
        number, argument = struct.unpack_from("QQ", info, 24)
        if kind == ENTRY and pid not in self.gone:
            self.calls.append((pid, name_of(number), argument))

    def count(self, *names):
        return sum(1 for _, name, _ in self.calls if name in names)

    def threads(self):
        return sum(1 for _, name, argument in self.calls
                   if name == "clone" and argument & CLONE_THREAD)

    def without_waits(self):
        return sum(1 for _, name, _ in self.calls if name not in WAITS)
