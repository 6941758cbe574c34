#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A stranger who attacks a port of a job without its token: stranger.py HOST PORT KIND

    garbage      random bytes, connection after connection
    half-tls     a ClientHello that stops half way, on many connections
    slow-http    half an HTTP request, on many connections, then a bit more
    half-value   half of a large value for the store, on many connections
    rank         "I am rank 1", to a rank of hlaunch's collectives

Goes on until it is ended; prints "begun" after the first attack.
"""

import contextlib
import os
import random
import socket
import struct
import sys
import time

MANY = 64
# The first bytes of torch 2.2's client: VALIDATE and its number; then SET, key, length of the
# value.
STORE = (b"\0" + struct.pack("<I", 0x3C85F7CE) + b"\1" + struct.pack("<Q", 8) + b"stranger"
         + struct.pack("<Q", 8 << 20))
# The TLS record of a handshake that announces 512 bytes.
TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)


def hello(sender, to, world):
    """A greeting of comm/connection/greeting.h from a rank without the secret."""
    return (b"hlc3" + struct.pack("<iiiqiI", sender, to, world, 1, 0, 1) + os.urandom(16)
            + b"stranger".ljust(64, b"\0"))


class Stranger:
    def __init__(self, host, port):
        self.address, self.held = (host, int(port)), []

    def connect(self):
        return socket.create_connection(self.address, timeout=1)

    def hold(self, first, more):
        """Opens one more connection and sends `first`. If there are many, the oldest sends `more`
        and closes."""
        with contextlib.suppress(OSError):
            one = self.connect()
            one.sendall(first)
            self.held.append(one)
        if len(self.held) >= MANY:
            with contextlib.suppress(OSError), self.held.pop(0) as oldest:
                oldest.sendall(more)

    def garbage(self):
        with self.connect() as one:
            one.sendall(random.randbytes(random.choice([1, 8, 128, 65536])))
            one.settimeout(0.05)
            one.recv(4096)

    def half_tls(self):
        self.hold(TLS, bytes(100))

    def slow_http(self):
        self.hold(b"GET /me", b"t")

    def half_value(self):
        self.hold(STORE + bytes(1 << 20), bytes(1 << 20))

    def rank(self):
        with self.connect() as one:
            one.sendall(hello(1, 0, 4))
            one.settimeout(0.5)
            one.recv(4096)
            one.sendall(b"\0" + bytes(48) + bytes(4096))
            one.recv(4096)


def main():
    host, port, kind = sys.argv[1:]
    harm = getattr(Stranger(host, port), kind.replace("-", "_"))
    said = False
    while True:
        with contextlib.suppress(OSError):  # The job refuses it; it tries again.
            harm()
        if not said:
            print("begun", flush=True)
        said = True
        time.sleep(0.002)


if __name__ == "__main__":
    main()
