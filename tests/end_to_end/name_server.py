#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A name server that knows one name and is silent about IPv6, as some are and as some firewalls make
them: it never answers a question for an IPv6 address.

name_server.py ADDRESS NAME ADDRESS_OF_NAME
"""

import socket
import struct
import sys

A, AAAA = 1, 28


def question(message):
    """The name and the type that are asked for, and where the question ends."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode())
        at += 1 + message[at]
    return ".".join(labels), struct.unpack_from(">H", message, at + 1)[0], at + 5


def answer(message, known, address):
    """The answer's bytes; None: there is none."""
    name, kind, end = question(message)
    if kind == AAAA:
        return None
    found = name == known and kind == A
    head = message[:2] + struct.pack(">HHHHH", 0x8580 if found else 0x8583, 1, found, 0, 0)
    record = struct.pack(">HHHIH", 0xC00C, A, 1, 60, 4) + socket.inet_aton(address)
    return head + message[12:end] + (record if found else b"")


def main(own, known, address):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((own, 53))
    print("name server is up", flush=True)
    while True:
        message, client = server.recvfrom(4096)
        said = answer(message, known, address)
        if said is not None:
            server.sendto(said, client)


if __name__ == "__main__":
    main(*sys.argv[1:])
