#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs a program as on Linux 4.18, as far as system calls can tell.

    old_kernel.py PROGRAM [ARGUMENT…]

Every newer system call fails with ENOSYS: their numbers start at 424, on all machines. So does a
clone that asks for a pidfd (Linux 5.2), an argument that 4.18 would ignore.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

FIRST_NEW = 424  # pidfd_send_signal, of Linux 5.1.
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
CLONE_PIDFD = 0x1000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS
# struct seccomp_data: the call's number is at 0, the low half of its first argument at 16.
LOAD, JUMP_GE, JUMP_EQ, JUMP_SET, RETURN = 0x20, 0x35, 0x15, 0x45, 0x06
# Each operation has the number of operations to skip if the condition holds, and if it does not.
OPERATIONS = [(LOAD, 0, 0, 0), (JUMP_GE, 4, 0, FIRST_NEW), (JUMP_EQ, 0, 2, CLONE),
              (LOAD, 0, 0, 16), (JUMP_SET, 1, 0, CLONE_PIDFD), (RETURN, 0, 0, ALLOW),
              (RETURN, 0, 0, REFUSE)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("operations", ctypes.c_char_p)]


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("=HBBI", op, so, not_so, value)
                    for op, so, not_so, value in OPERATIONS)
    program = Program(len(OPERATIONS), code)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0):
        sys.exit(f"no filter of system calls: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
