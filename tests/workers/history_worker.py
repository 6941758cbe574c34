#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker whose clients record the master store's answers: history_worker.py FOLDER CLIENTS

Each client is a process with its own connection, which speaks like torch 2.2 and later. A killed
client is replaced. Requests and answers go to FOLDER/HOST-RANK-NUMBER.ops, one line before each
request and one after it (fault/linearity.py reads them), with the machine's clock. All clients use
the same few keys, which change soon: KEYS in each EPOCH. Ends once FOLDER/end exists.
"""

import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time

EPOCH, KEYS = 0.4, 3
PATIENCE = 600  # Seconds for an answer: the store may stand still.
WAIT = 0.2
PAUSES = (0, 0.001, 0.003, 0.01)
HANG_UP = 0.03  # The share of operations that end with the connection, at any moment.
VALIDATE = b"\0" + struct.pack("<I", 0x3C85F7CE)
SET, COMPARE_SET, GET, ADD, CHECK, WAIT_FOR, DELETE, CANCEL, PING = 1, 2, 3, 4, 5, 6, 8, 12, 13
NAMES = ("set", "get", "add", "compare_set", "delete", "check", "wait")
WEIGHTS = (4, 6, 5, 5, 2, 2, 2)
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close is a reset.


def text(word):
    return struct.pack("<Q", len(word)) + word.encode()


def listed(key):
    return struct.pack("<Q", 1) + text(key)


class Client:
    def __init__(self, folder, name):
        self.out = os.open(f"{folder}/{name}.ops", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.random = random.Random(name)
        self.values = self.random.randrange(1, 1 << 30) << 24  # Values that no other client uses.
        self.seen = {}  # The last seen value: {key: value}.
        self.connection = None

    def say(self, *words):
        os.write(self.out, json.dumps(words).encode() + b"\n")

    def connect(self):
        place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        self.connection = socket.create_connection(place, PATIENCE)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.sendall(VALIDATE)

    def hang_up(self):
        if self.random.random() < 0.5:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.connection.close()
        self.connection = None

    def read(self, size):
        data = b""
        while len(data) < size:
            more = self.connection.recv(size - len(data))
            if not more:
                raise ConnectionResetError("closed")
            data += more
        return data

    def read_number(self):
        return struct.unpack("<q", self.read(8))[0]

    def read_text(self):
        return self.read(self.read_number()).decode()

    # ---- What is asked and answered ----

    def draw(self):
        """(name, key, words) of the next operation."""
        name = self.random.choices(NAMES, WEIGHTS)[0]
        key = f"{int(time.monotonic() / EPOCH)}-{self.random.randrange(KEYS)}"
        self.values += 1
        words = {"set": (str(self.values),), "add": (self.random.choice((-1, 1, 1000)),),
                 "compare_set": (self.seen.get(key, ""), str(self.values))}.get(name, ())
        return name, key, words

    def request(self, name, key, words):
        if name == "set":  # The protocol has no answer to it.
            return (bytes([SET]) + text(key) + text(words[0])
                    + bytes([PING]) + struct.pack("<I", self.values & 0xFFFFFFFF))
        if name == "add":
            return bytes([ADD]) + text(key) + struct.pack("<q", words[0])
        if name == "compare_set":
            return bytes([COMPARE_SET]) + text(key) + text(words[0]) + text(words[1])
        if name in ("check", "wait"):
            return bytes([CHECK if name == "check" else WAIT_FOR]) + listed(key)
        return bytes([GET if name == "get" else DELETE]) + text(key)

    def answer(self, name):
        """The result; None for a wait that was given up."""
        if name == "set":
            nonce, = struct.unpack("<I", self.read(4))
            assert nonce == self.values & 0xFFFFFFFF, nonce
            return None
        if name == "wait":
            return self.answer_of_wait()
        if name in ("get", "compare_set"):
            return self.read_text()
        if name == "check":
            return self.read(1) == b"\0"
        return self.read_number() if name == "add" else self.read_number() > 0

    def answer_of_wait(self):
        if not select.select([self.connection], [], [], WAIT)[0]:
            self.connection.sendall(bytes([CANCEL]))
            if self.read(1) == b"\1":
                return None
            assert self.read(1) == b"\1"  # The key came at that moment.
            return True
        assert self.read(1) == b"\0"
        return True

    def ask(self):
        if not self.connection:
            self.connect()
        name, key, words = self.draw()
        request = self.request(name, key, words)
        self.say("begin", key, name, words, time.monotonic())
        if self.random.random() < HANG_UP:
            self.connection.sendall(request[:self.random.randrange(1, 2 * len(request))])
            self.hang_up()
            return
        self.connection.sendall(request)
        result = self.answer(name)
        end = time.monotonic()
        if name == "wait" and not result:
            self.say("not", 0, 0)
            return
        self.say("end", result, end)
        if name in ("get", "compare_set", "add"):
            self.seen = {key: str(result)}

    def work(self, is_over):
        while not is_over():
            try:
                self.ask()
            except ConnectionError:
                self.connection = None
                time.sleep(0.05)
            time.sleep(self.random.choice(PAUSES))


def start(folder, number, is_over):
    """Starts a client process; returns its pid."""
    pid = os.fork()
    if pid == 0:
        Client(folder, f"{socket.gethostname()}-{os.environ['RANK']}-{number}").work(is_over)
        os._exit(0)
    return pid


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    parent = os.getpid()

    def is_over():
        return os.path.exists(f"{folder}/end") or parent not in (os.getpid(), os.getppid())
    started = count
    running = {start(folder, number, is_over) for number in range(count)}
    while running:
        pid, status = os.wait()
        running.remove(pid)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and not is_over():
            running.add(start(folder, started, is_over))
            started += 1
        elif status:
            sys.exit(f"a client came to {status}")
    print("OK history", flush=True)


if __name__ == "__main__":
    main()
