#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker, or a stranger, that checks the ports of a round without torch:

    reserved          rank 0: MASTER_PORT+1, +2 and JAX's port refuse a plain bind, and allow one
                      with SO_REUSEADDR; the port that Gaudi's cache binds plainly is free
    serve             rank 0 serves at MASTER_PORT itself, and all say hello there
    beside            the same at MASTER_PORT+1, beside the store
    stale HOST PORT FILE
                      a process of an old round: connects, speaks on one connection, is silent on
                      another; once FILE exists, prints the fate of both and of a new one
    knock HOST PORT   a stranger: whether the store there serves it, twice
    large BYTES       whether the store at MASTER_ADDR:MASTER_PORT accepts a value of this size
    empty             the store at MASTER_ADDR:MASTER_PORT has no key of a stale process
"""

import errno
import os
import socket
import struct
import sys
import time

RANK = int(os.environ.get("RANK", -1))
VALIDATE = b"\0" + struct.pack("<I", 0x3C85F7CE)


def text(word):
    return struct.pack("<Q", len(word)) + word


def set_key(key, value=b"old"):
    return b"\1" + text(key) + text(value)


def has_key(connection, key):
    connection.sendall(b"\5" + struct.pack("<Q", 1) + text(key))
    answer = connection.recv(1)
    if not answer:
        raise ConnectionResetError("closed")
    return answer == b"\0"


def place():
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def bind(port, reuse):
    server = socket.socket(socket.AF_INET6)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    server.bind(("::", port))
    server.listen()
    return server


def reserved():
    host, _, coordinator = os.environ["JAX_COORDINATOR_ADDRESS"].rpartition(":")
    address, port = place()
    assert host.strip("[]") == address, (host, address)
    if RANK != 0:
        return
    gaudi = (port + 100) & 0xFFFF
    bind(gaudi >> 8 | (gaudi & 0xFF) << 8, reuse=False).close()
    for kept in (port + 1, port + 2, int(coordinator)):
        try:
            bind(kept, reuse=False)
            raise AssertionError(f"port {kept} is free for anybody")
        except OSError as error:
            assert error.errno == errno.EADDRINUSE, error
        bind(kept, reuse=True).close()


def serve(distance=0):
    (host, port), world = place(), int(os.environ["WORLD_SIZE"])
    address = host, port + distance
    server = bind(address[1], reuse=True) if RANK == 0 else None
    deadline = time.monotonic() + 20
    while True:
        try:
            connection = socket.create_connection(address, 20)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nobody serves"
            time.sleep(0.05)
    connection.sendall(b"hello")
    if RANK == 0:
        accepted = [server.accept()[0] for _ in range(world)]
        for one in accepted:
            assert one.recv(5) == b"hello"
            one.sendall(b"hi")
    assert connection.recv(2) == b"hi"


def beside():
    serve(1)


def connect(address):
    return socket.create_connection(address, 20)


def attempt(connection, key, value=b"old"):
    """The fate of a connection: the outcome of a request on it."""
    connection.settimeout(20)
    try:
        connection.sendall(set_key(key, value))
        return "served" if has_key(connection, key) else "lost"
    except OSError:
        return "closed"


def stale(host, port, file):
    address = host, int(port)
    spoke, silent = connect(address), connect(address)
    spoke.sendall(VALIDATE + set_key(b"/stale/spoke"))
    assert has_key(spoke, b"/stale/spoke")
    print("HOLDS", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    silent.sendall(VALIDATE)
    print(f"spoke {attempt(spoke, b'/stale/spoke')}, silent {attempt(silent, b'/stale/silent')}",
          flush=True)
    new = connect(address)
    new.sendall(VALIDATE)
    print(f"new {attempt(new, b'/stale/new')}", flush=True)


def knock(host, port):
    for _ in range(2):
        with connect((host, int(port))) as connection:
            connection.sendall(VALIDATE)
            print("asked", flush=True)
            print(f"{host} {attempt(connection, b'/knocked')}", flush=True)


def large(size):
    connection = connect(place())
    connection.sendall(VALIDATE)
    print(f"{size} {attempt(connection, b'/large', bytes(int(size)))}", flush=True)


def empty():
    connection = connect(place())
    connection.sendall(VALIDATE)
    assert not has_key(connection, b"/stale/spoke")
    assert not has_key(connection, b"/stale/silent")


def main():
    action, *arguments = sys.argv[1:]
    {"reserved": reserved, "serve": serve, "beside": beside, "stale": stale, "knock": knock, "large": large,
     "empty": empty}[action](*arguments)
    print(f"OK {action}", flush=True)


if __name__ == "__main__":
    main()
