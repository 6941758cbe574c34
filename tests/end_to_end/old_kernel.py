#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs a program as on Linux 4.18, as far as system calls can tell.

    old_kernel.py [--error NAME] [--only CALL] PROGRAM [ARGUMENT…]

Every newer system call fails with ENOSYS: their numbers start at 424, on all machines. So does a
clone that asks for a pidfd (Linux 5.2), an argument that 4.18 would ignore.

--error: they fail with another error. An old container runtime refuses calls that it does not know
with EPERM. --only: no other call fails than this one of CALLS or NEEDED.
"""

import argparse
import ctypes
import errno
import os
import platform
import struct
import sys

FIRST_NEW = 424  # pidfd_send_signal, of Linux 5.1.
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
CLONE_PIDFD = 0x1000
# Those that hlaunch and the C library of its programs make; None is the clone with a pidfd.
CALLS = {"pidfd_send_signal": 424, "pidfd_open": 434, "clone3": 435, "close_range": 436,
         "openat2": 437, "faccessat2": 439, "epoll_pwait2": 441, "clone": None}
# Those that are as old as Linux and without which no job can be watched.
NEEDED = {"x86_64": {"waitid": 247, "prctl": 157},
          "aarch64": {"waitid": 95, "prctl": 167}}[platform.machine()]
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # The low half of REFUSE is the error.
# struct seccomp_data: the call's number is at 0, the low half of its first argument at 16.
LOAD, JUMP_GE, JUMP_EQ, JUMP_SET, RETURN = 0x20, 0x35, 0x15, 0x45, 0x06


def operations(only, error):
    """Each has the number of operations to skip if the condition holds, and if it does not."""
    number = {**CALLS, **NEEDED}.get(only)
    newer = (JUMP_GE, 4, 0, FIRST_NEW) if only is None else (JUMP_EQ, 4, 0, number or 2**32 - 1)
    clone = CLONE if number is None else 2**32 - 1
    return [(LOAD, 0, 0, 0), newer, (JUMP_EQ, 0, 2, clone), (LOAD, 0, 0, 16),
            (JUMP_SET, 1, 0, CLONE_PIDFD), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE | error)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("operations", ctypes.c_char_p)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--error", default="ENOSYS")
    parser.add_argument("--only", choices=[*CALLS, *NEEDED])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    words = parser.parse_args()
    refusal = operations(words.only, getattr(errno, words.error))
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("=HBBI", op, so, not_so, value)
                    for op, so, not_so, value in refusal)
    program = Program(len(refusal), code)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0):
        sys.exit(f"no filter of system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(words.command[0], words.command)


if __name__ == "__main__":
    main()
