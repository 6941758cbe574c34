# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sends the same byte streams to hlaunch's store and to PyTorch's own server, and compares the
replies.

store_differential_test.py SERVER [--seed N] [--streams N], where SERVER is the program
c10d_server_main. PyTorch's server is that of this interpreter; without one the exit code is 77. The
intended differences of hlaunch are in DIFFERENCES: a script shows each row, and a random stream
ends when it meets one. Any other difference fails.
"""

import argparse
import collections
import random
import re
import socket
import struct
import subprocess
import sys
import unittest

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"skipped: {sys.executable} has no torch: {error}")
    sys.exit(77)

MODERN = hasattr(dist.TCPStore, "queue_push")  # 2.13, else 1.13.
SERVER = None  # Path of c10d_server_main.
PATIENCE = 20  # Seconds; a slower reply counts as none.

# hlaunch is told the dialect. Otherwise it would wait to tell a delete_key of 1.13 from an append
# of 2.1. Below are the codes on the wire, and the parts of a reply: i a 64-bit number, b a byte, t
# a text, n a 32-bit number, p a number and, unless it is 0, a text, l a list of texts.
if MODERN:
    CODES = {"set": 1, "compare_set": 2, "get": 3, "add": 4, "check": 5, "wait": 6, "num_keys": 7,
             "delete": 8, "append": 9, "multi_get": 10, "multi_set": 11, "cancel_wait": 12,
             "ping": 13, "push": 14, "pop": 15, "queue_len": 16, "list_keys": 17, "barrier": 18}
    HELLO = bytes.fromhex("00cef7853c")
else:
    CODES = {"set": 0, "compare_set": 1, "get": 2, "add": 3, "check": 4, "wait": 5, "num_keys": 6,
             "watch": 7, "delete": 8}
    HELLO = b""
REPLIES = {"set": "", "compare_set": "t", "get": "t", "add": "i", "check": "b", "wait": "b",
           "num_keys": "i", "delete": "i", "append": "", "multi_set": "", "cancel_wait": "b",
           "ping": "n", "push": "", "pop": "p", "queue_len": "i", "list_keys": "l",
           "barrier": "b", "watch": "b"}
KEYS = [b"/a", b"/b", b"/c/d", b"", b"\xff\x00/", b"/" + b"k" * 300]
MOST = (1 << 63) - 1  # The greatest counter; a larger sum wraps around.
VALUES = [b"", b"1", b"-7", b"40", b" 5", b"+5", b"12ab", b"x", b"\x00\xff", b"v" * 5000,
          b"%d" % MOST, b"%d" % -MOST, b"%d" % (MOST + 1), b"%d" % -(MOST + 2)]
NUMBERS = [-3, 0, 1, 1, 2, 40, MOST, -MOST, -MOST - 1]


def text(value):
    return struct.pack("<Q", len(value)) + value


def texts(values):
    return struct.pack("<Q", len(values)) + b"".join(map(text, values))


def number(value):
    return struct.pack("<q", value)


class Command(collections.namedtuple("Command", "op keys values number")):
    """One request. `bytes()` is what is sent, `reply()` the shape of the reply: see REPLIES."""

    def __new__(cls, op, *keys, values=(), number=0):
        return super().__new__(cls, op, keys, tuple(values), number)

    def bytes(self):
        if self.op in ("check", "wait", "multi_get"):
            rest = texts(self.keys)
        elif self.op == "multi_set":
            rest = struct.pack("<Q", len(self.keys)) + b"".join(
                text(key) + text(value) for key, value in zip(self.keys, self.values))
        elif self.op == "ping":
            rest = struct.pack("<I", self.number)
        else:
            rest = b"".join(map(text, self.keys)) + b"".join(map(text, self.values))
            rest += number(self.number) if self.op in ("add", "barrier") else b""
        return bytes([CODES[self.op]]) + rest

    def reply(self):
        return "t" * len(self.keys) if self.op == "multi_get" else REPLIES[self.op]


class Closed(Exception):
    """The server has closed the connection."""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(HELLO)

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed from error

    def take(self, size):
        data = b""
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionError as error:
                raise Closed from error
            if not piece:
                raise Closed
            data += piece
        return data

    def take_reply(self, shape):
        data = b""
        for field in shape:
            if field in "ip":
                data += self.take(8)
            elif field in "bn":
                data += self.take(1 if field == "b" else 4)
            if field == "t" or field == "p" and data[-8:] != bytes(8):
                size = self.take(8)
                data += size + self.take(struct.unpack("<Q", size)[0])
            if field == "l":  # The order is that of a hash table.
                count = struct.unpack("<q", self.take(8))[0]
                data += b"".join(sorted(self.take_reply("t") for _ in range(count)))
        return data

    def waiting(self):
        """The data that has arrived unasked; does not wait for more."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1 << 16) or b"closed"
        except BlockingIOError:
            return b""
        except ConnectionError:
            return b"closed"
        finally:
            self.socket.settimeout(PATIENCE)


class Ours:
    def __init__(self):
        self.process = subprocess.Popen(
            [SERVER, "torch2.2+" if MODERN else "torch1.13"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Theirs:
    def __init__(self):
        self.store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
        self.port = self.store.port

    def close(self):
        self.store = None


class Side:
    """A server, its connections, and one more to ask whether the server has handled a command."""

    def __init__(self, server, count):
        self.server = server
        self.connections = [Connection(server.port) for _ in range(count)]
        self.control = Connection(server.port)
        # PyTorch's server is its own first client, and has counted itself.
        self.ask(Command("delete", b"init/"))

    def close(self):
        for connection in (*self.connections, self.control):
            connection.close()
        self.server.close()

    def ask(self, command):
        self.control.send(command.bytes())
        return self.control.take_reply(command.reply())

    def run(self, index, command, blocks):
        """The result of `command`: its reply, and what the other connections receive because of
        it."""
        connection = self.connections[index]
        mark = Command("add", b"mark", number=0)
        try:
            if blocks:  # The reply before it shows that it was read.
                connection.send(mark.bytes() + command.bytes())
                reply = connection.take_reply("i")
            else:
                connection.send(command.bytes() + mark.bytes())
                reply = connection.take_reply(command.reply())
                reply += connection.take_reply("i")
        except Closed:
            reply = b"closed"
            connection.close()
            self.connections[index] = Connection(self.server.port)
            self.control.close()  # The last to connect is served last.
            self.control = Connection(self.server.port)
        self.ask(mark)
        heard = [b"" if other is connection and reply != b"closed" and not blocks
                 else other.waiting() for other in self.connections]
        return reply, heard


class Stream:
    """Commands to both servers, and the state that tells which commands would block."""

    CONNECTIONS = 3

    def __init__(self):
        self.sides = [Side(Ours(), self.CONNECTIONS), Side(Theirs(), self.CONNECTIONS)]
        self.blocked = {}  # By connection: the command in which it waits.
        self.log = []

    def close(self):
        for side in self.sides:
            side.close()

    def ask(self, command):
        """The stores' answer, which must be the same."""
        ours, theirs = (side.ask(command) for side in self.sides)
        if ours != theirs:
            raise AssertionError(self.told(command, ours, theirs))
        return ours

    def told(self, command, ours, theirs):
        def short(what):
            return re.sub(r"([kv])\1{20,}", r"\1..\1", str(what))
        return "\n".join(map(short, [*self.log, f"{command}: hlaunch {ours}, torch {theirs}"]))

    def there(self, keys):
        return self.ask(Command("check", *keys)) == b"\0"

    def counter(self, key):
        """The 64-bit number at the start of the value of `key`; 0 if there is no such key, None if
        the value does not start with a number."""
        if MODERN and text(key) not in self.ask(Command("list_keys")):
            return 0
        if not MODERN and not self.there([key]):
            return 0
        digits = re.match(rb"\s*[-+]?\d+", self.ask(Command("get", key))[8:])
        return int(digits[0]) if digits and -MOST - 1 <= int(digits[0]) <= MOST else None

    def blocks(self, command):
        if command.op == "wait":
            return not self.there(command.keys)
        if command.op == "barrier":
            arrived = self.counter(command.keys[0])
            return arrived is not None and (arrived == MOST or arrived + 1 < command.number)
        return False

    def run(self, index, command):
        """Runs a command on both sides; returns both answers, each (reply, what others
        received)."""
        blocks = self.blocks(command)
        answers = [side.run(index, command, blocks) for side in self.sides]
        self.log.append(f"{index}: {command} -> {answers[0]!r}")
        if blocks:
            self.blocked[index] = command
        if command.op == "cancel_wait" or answers[0][0] == b"closed":
            self.blocked.pop(index, None)
        for other, heard in enumerate(answers[0][1]):
            if heard:
                self.blocked.pop(other, None)
        return answers


# ---- Intended differences. {name: (why, script)}; a script is a list of (connection, command), and
# the answers of (hlaunch, torch) to its last one.

Case = collections.namedtuple("Case", "why script ours theirs")
QUIET = [b""] * Stream.CONNECTIONS
MARK = number(0)


def woken(who):
    return [b"\0" if index == who else b"" for index in range(Stream.CONNECTIONS)]


DIFFERENCES = {}
if not MODERN:
    DIFFERENCES["get of nothing"] = Case(
        "the value of a key that is not there is empty, as in PyTorch's server since 2.4; that of"
        " 1.13 ends the connection",
        [(0, Command("get", b"/k"))], (text(b"") + MARK, QUIET), (b"closed", QUIET))
    DIFFERENCES["compare_set creates"] = Case(
        "whoever waits for a key is woken when a compare_set creates it, as in PyTorch's server"
        " since 2.4; not in that of 1.13",
        [(1, Command("wait", b"/k")), (0, Command("compare_set", b"/k", values=[b"", b"v"]))],
        (text(b"v") + MARK, woken(1)), (text(b"v") + MARK, QUIET))
else:
    DIFFERENCES.update({
        "compare_set wakes": Case(
            "a compare_set that sets nothing wakes nobody; PyTorch's wakes those who wait for a key"
            " that is still not there",
            [(1, Command("wait", b"/k")),
             (0, Command("compare_set", b"/k", values=[b"old", b"new"]))],
            (text(b"old") + MARK, QUIET), (text(b"old") + MARK, woken(1))),
        "barrier opened by others": Case(
            "a barrier opens with its last arrival alone; PyTorch's with any change of its counter",
            [(1, Command("barrier", b"/k", number=3)), (0, Command("add", b"/k", number=0))],
            (number(1) + MARK, QUIET), (number(1) + MARK, woken(1))),
        "queue in a list": Case(
            "a queue that holds something is there; in PyTorch's not for a wait that names a key"
            " that is missing too",
            [(0, Command("push", b"/q", values=[b"v"])), (1, Command("wait", b"/q", b"/k")),
             (0, Command("set", b"/k", values=[b"v"]))],
            (MARK, woken(1)), (MARK, QUIET)),
        "old places in line": Case(
            "what has come counts once; PyTorch's counts a client again that a push has served",
            [(1, Command("wait", b"/q", b"/k")), (0, Command("push", b"/q", values=[b"v"])),
             (0, Command("set", b"/q", values=[b"v"]))],
            (MARK, QUIET), (MARK, woken(1))),
        "barrier is a key": Case(
            "the counter of a barrier is a key, so whoever waits for it is woken; not in PyTorch's",
            [(1, Command("wait", b"/k")), (0, Command("barrier", b"/k", number=2))],
            (MARK, woken(1)), (MARK, QUIET)),
    })


def explained(stream, command, blocked, ours, theirs):
    """The name of the row of DIFFERENCES that explains two answers, or None."""
    if ours[0] != theirs[0]:
        if command.op == "get" and theirs[0] == b"closed" and not MODERN:
            return "get of nothing"
        return None
    for index, wait in blocked.items():
        we, they = ours[1][index], theirs[1][index]
        if we == they:
            continue
        if wait.op == "barrier":
            return "barrier opened by others" if they and command.op != "barrier" else None
        # A row counts only if hlaunch is right by the meaning of a wait. A key that came may be
        # gone again.
        if not we and stream.there(wait.keys) or not set(command.keys) & set(wait.keys):
            return None
        if not MODERN:
            return "compare_set creates" if we and command.op == "compare_set" else None
        if they:
            return "compare_set wakes" if command.op == "compare_set" else "old places in line"
        return "barrier is a key" if command.op == "barrier" else "queue in a list"
    return None


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def keys(self):
        return [self.random.choice(KEYS) for _ in range(self.random.choice([0, 1, 1, 2, 3, 5]))]

    def command(self):
        op = self.random.choice([op for op in CODES if op != "watch"])
        key, value = self.random.choice(KEYS), self.random.choice(VALUES)
        if op in ("set", "append", "push"):
            return Command(op, key, values=[value])
        if op == "compare_set":
            return Command(op, key, values=[self.random.choice(VALUES), value])
        if op in ("check", "wait", "multi_get"):
            return Command(op, *self.keys())
        if op == "multi_set":
            keys = self.keys()
            return Command(op, *keys, values=[self.random.choice(VALUES) for _ in keys])
        if op == "add":
            return Command(op, key, number=self.random.choice(NUMBERS))
        if op == "barrier":
            return Command(op, key, number=self.random.choice([0, 1, 2, 3]))
        if op == "ping":
            return Command(op, number=self.random.getrandbits(32))
        if op in ("num_keys", "cancel_wait", "list_keys"):
            return Command(op)
        return Command(op, key)


class DifferentialTest(unittest.TestCase):
    seed = 1
    streams = 20
    length = 60

    def stream(self):
        stream = Stream()
        self.addCleanup(stream.close)
        return stream

    def test_random_streams(self):
        compared = collections.Counter()
        met = collections.Counter()
        for seed in range(self.seed, self.seed + self.streams):
            with self.subTest(seed=seed):
                met[self.one_stream(Generator(seed), compared)] += 1
        print(f"torch {torch.__version__}: {sum(compared.values())} commands: {dict(compared)}; "
              f"streams ended by: {dict(met)}", flush=True)
        self.assertEqual(set(compared), set(CODES) - {"watch"}, "no stream had the others")

    def one_stream(self, generator, compared):
        stream = self.stream()
        for _ in range(self.length):
            free = [i for i in range(Stream.CONNECTIONS) if i not in stream.blocked]
            command = generator.command()
            if command.op == "cancel_wait":
                index = generator.random.randrange(Stream.CONNECTIONS)
            elif free:
                index = generator.random.choice(free)
            else:
                index, command = next(iter(stream.blocked)), None
                if not MODERN:
                    return "all wait"
                command = Command("cancel_wait")
            if not MODERN and command.op == "get" and generator.random.random() < 0.95 and (
                    not stream.there(command.keys)):
                continue  # A known difference; few streams would get further.
            blocked = dict(stream.blocked)
            ours, theirs = stream.run(index, command)
            compared[command.op] += 1
            if ours != theirs:
                name = explained(stream, command, blocked, ours, theirs)
                if name not in DIFFERENCES:
                    self.fail(f"{name}, while {blocked} wait:\n{stream.told(command, ours, theirs)}")
                return name
        return "its length"

    def test_differences_are_as_the_table_says(self):
        for name, case in DIFFERENCES.items():
            with self.subTest(name):
                stream = self.stream()
                for index, command in case.script:
                    answers = stream.run(index, command)
                self.assertEqual(answers[0], case.ours, case.why)
                self.assertEqual(answers[1], case.theirs, case.why)

    @unittest.skipIf(MODERN, "watch_key was removed in 2.1")
    def test_a_watcher_hears_the_same(self):
        generator = Generator(self.seed)
        stream = self.stream()
        watchers = [Connection(side.server.port) for side in stream.sides]
        for watcher in watchers:
            self.addCleanup(watcher.close)
            for key in KEYS[:2]:
                watcher.send(Command("watch", key).bytes())
                self.assertEqual(watcher.take(1), b"\3")
        heard = [b"", b""]
        for _ in range(600):
            command = generator.command()
            if command.op in ("set", "compare_set", "add", "delete"):
                ours, theirs = stream.run(0, command)
                self.assertEqual(ours, theirs, command)
                heard = [done + watcher.waiting() for done, watcher in zip(heard, watchers)]
        stream.run(0, Command("set", KEYS[0], values=[b"end"]))
        heard = [done + watcher.waiting() for done, watcher in zip(heard, watchers)]
        # Compared only now: PyTorch's server holds an empty value back until more is sent after it.
        self.assertEqual(heard[0], heard[1])
        self.assertGreater(len(heard[0]), 1000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--seed", type=int, default=DifferentialTest.seed)
    parser.add_argument("--streams", type=int, default=DifferentialTest.streams)
    args, rest = parser.parse_known_args()
    SERVER = args.server
    DifferentialTest.seed, DifferentialTest.streams = args.seed, args.streams
    unittest.main(argv=[sys.argv[0], *rest])
