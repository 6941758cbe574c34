#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A stranger that claims to be a voter of a job's record:
    false_voter.py HOST PORT JOB TERM NAME SECONDS

Calls PassWitnessMessage with an append of that term, as a leader sends it. NAME is an argument of
rapid_reset.py. Prints the outcome: "answered", "refused" by a status, "closed", or "silent" after
SECONDS.
"""

import struct
import sys

import rapid_reset
from rapid_reset import PREFACE, frame

DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS = 1, 4
PATH = b"/hlaunch.v1.Rendezvous/PassWitnessMessage"


def varint(number):
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def text(tag, words):
    return bytes([tag]) + varint(len(words)) + words


def append(job, term):
    """A PassWitnessMessageRequest."""
    sender = (b"\x09" + struct.pack("<Q", 7) + text(0x12, b"stranger") + text(0x1A, b"10.77.0.13")
              + b"\x20" + varint(29400))
    ballot = b"\x08" + varint(term) + b"\x10" + varint(1)
    return (text(0x0A, job.encode()) + b"\x10\x01" + text(0x1A, sender) + b"\x21" + bytes(8)
            + b"\x28" + varint(term) + text(0x32, ballot) + b"\x40" + varint(1))


def request(message):
    """Literals without indexing (RFC 7541): :path, :authority, content-type and te."""
    headers = (b"\x83\x86" + text(0x04, PATH) + text(0x01, b"a")
               + b"\x0f\x10" + text(16, b"application/grpc")[1:]
               + b"\x00" + text(2, b"te")[1:] + text(8, b"trailers")[1:])
    body = b"\0" + struct.pack(">I", len(message)) + message
    return frame(HEADERS, END_HEADERS, 1, headers) + frame(DATA, END_STREAM, 1, body)


def frames(connection):
    """Yields (kind, flags, stream) of each frame that arrives."""
    received = connection.makefile("rb")
    while len(head := received.read(9)) == 9:
        received.read(int.from_bytes(head[:3], "big"))
        yield head[3], head[4], int.from_bytes(head[5:], "big")


def call(host, port, secured, message, seconds):
    with rapid_reset.connect(host, port, secured, seconds) as connection:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + request(message))
        for kind, flags, stream in frames(connection):
            if stream == 1 and kind == DATA:
                return "answered"
            if kind == HEADERS and flags & END_STREAM:
                return "refused"
            if kind == GOAWAY:
                break
    return "closed"


def main():
    host, port, job, term, name, seconds = sys.argv[1:]
    secured, message = rapid_reset.secured_by(name), append(job, int(term))
    try:
        print(call(host, int(port), secured, message, float(seconds)))
    except TimeoutError:
        print("silent")
    except OSError:
        print("closed")


if __name__ == "__main__":
    main()
