# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's worker for a rank that is a fork of the caller: `python -I -S stand_in.py FOLDER`.

It gives its environment, descriptors and CPUs to the process behind the folder's socket, which forks
the rank (see forks.py), passes signals on to it, and ends as the rank does. If it ends before, the
rank is killed. It starts in 15 ms, since it imports nothing but what Python is made of.

It sends its CPUs, its working directory, and its environment, as words that end with a
zero byte, after their length in four bytes; with descriptors 0 to 2. After that, each byte is a
signal. The answer is one line, the exit code, below 0 for a signal.
"""

import _signal
import _socket
import os
import sys

# Those that tell of the process itself stay what they are.
OWN = {_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCHLD, _signal.SIGSEGV, _signal.SIGBUS,
       _signal.SIGFPE, _signal.SIGILL, _signal.SIGPIPE}


def main(folder):
    link = connect(folder)
    words = [",".join(map(str, sorted(os.sched_getaffinity(0)))).encode(), os.getcwdb(),
             *(name + b"=" + value for name, value in os.environb.items())]
    data = b"".join(word + b"\0" for word in words)
    data = len(data).to_bytes(4, "little") + data
    fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
    sent = link.sendmsg([data], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
    link.sendall(data[sent:])
    for number in _signal.valid_signals() - OWN:
        try:
            _signal.signal(number, lambda number, _: pass_on(link, number))
        except OSError:
            pass  # The C library keeps some for itself.
    answer = b""
    while not answer.endswith(b"\n"):
        part = link.recv(16)
        if not part:
            sys.stderr.write("hlaunch: the process that forks the ranks has ended\n")
            return 1
        answer += part
    return end_as(int(answer))


def connect(folder):
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY)  # A socket's path may have 107 bytes.
    link.connect(f"/proc/self/fd/{place}/forks")
    os.close(place)
    return link


def pass_on(link, number):
    try:
        link.send(bytes([number]))
    except OSError:
        pass  # It has ended; its code is on the way.


def end_as(code):
    if code >= 0:
        return code
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # The rank has left its own.
    if -code not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
