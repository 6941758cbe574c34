# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that read and write in the ways in which Python programs do."""

import preloaded

preloaded.tell()

import io
import logging
import os
import sys
import time


def reads_lines():
    for line in sys.stdin:
        print("read", repr(line), flush=True)
    print("end", repr(sys.stdin.read()))


def reads_by_input():
    print(repr(input("prompt ")), repr(sys.stdin.readline()))
    input()
    input()


def reads_bytes():
    print(sys.stdin.buffer.read(3), os.read(0, 2), sys.stdin.buffer.read())


def partial_lines():
    sys.stdout.write("no end")
    sys.stdout.flush()
    time.sleep(0.1)
    sys.stdout.write(", and now\nlast without end")


def progress():
    for step in range(4):
        sys.stderr.write(f"\rstep {step}")
        time.sleep(0.01)
    sys.stderr.write("\n")


def bytes_of_all_kinds():
    sys.stdout.buffer.write(bytes(range(32, 256)) + b"\r\nx\n")
    os.write(1, b"written around the buffer\n")
    print("caf\u00e9 \u20ac \U0001f600")
    print("\udcff" if sys.stdout.errors == "surrogateescape" else "strict")


def cannot_be_written():
    print("\udcff")


def one_descriptor():
    os.dup2(1, 2)
    for number in range(20):
        print("out", number)
        print("err", number, file=sys.stderr)


def many_lines():
    for number in range(20000):
        print(number, "x" * (number % 90))


def loses_what_is_not_flushed():
    print("lost")
    os._exit(0)


def forks_with_a_full_buffer():
    print("twice")
    if os.fork() == 0:
        sys.exit(0)
    os.wait()


def reconfigures():
    sys.stdout.reconfigure(encoding="latin-1", line_buffering=True, errors="replace")
    print("\u00fc\u20ac", sys.stdout.encoding)
    sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-16-le", write_through=True)
    print("wide", end="")


def closes():
    print("before")
    sys.stdout.flush()
    sys.stderr.close()
    os.close(1)
    sys.exit("nobody sees this")


def logs():
    logging.warning("plain")
    logging.basicConfig(level=logging.INFO, force=True,
                        format="%(levelname)s %(name)s %(processName)s %(threadName)s %(module)s %(lineno)d %(message)s")
    logging.getLogger("a.b").info("with %s", "words")
    try:
        raise ValueError("logged")
    except ValueError:
        logging.exception("failed")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
