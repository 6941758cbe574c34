#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what it costs that the master store asks an agent whose a connection is.

    tests/bench/store/vouch_speed.py [--connections 8192] [--rounds 5]

Two nodes run a job with a token, and node1 connects to its store, one connection after another and
then all at once, each with one request. In turns, the store asks node1's agent about each
connection, or knows node1's address by --store-allow and asks nobody. All share this machine's
processors. This bench asserts nothing.
"""

import argparse
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "end_to_end"))
import jobs  # noqa: E402
import lab  # noqa: E402

CLIENT = """
import resource, selectors, socket, struct, sys, time
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
ASK = (b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\5" + struct.pack("<QQ", 1, 1) + b"k")
times = []
for _ in range(300):
    began = time.perf_counter()
    with socket.create_connection((host, port)) as one:
        one.sendall(ASK)
        assert one.recv(1)
    times.append(time.perf_counter() - began)
times.sort()
began = time.perf_counter()
events, left = selectors.DefaultSelector(), count
for _ in range(count):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex((host, port))
    events.register(one, selectors.EVENT_WRITE)
while left:
    for key, _ in events.select(60):
        if key.events == selectors.EVENT_WRITE:
            key.fileobj.sendall(ASK)
            events.modify(key.fileobj, selectors.EVENT_READ)
        else:
            assert key.fileobj.recv(1)
            events.unregister(key.fileobj)
            left -= 1
print(times[150] * 1e6, time.perf_counter() - began)
"""


def ticks(pid):
    return sum(map(int, lab.fields(pid)[11:13])) * 10  # Milliseconds.


def measure(test, options, *allowed):
    runs = test.start("--no-python", jobs.WORKER, "env", "sleep", 600, options=allowed,
                      env={"HLAUNCH_TOKEN": lab.TOKEN})
    facts = test.wait_for_workers(runs, 2)[0]
    agents = [jobs.agent_of(run) for run in runs]
    before = [ticks(pid) for pid in agents]
    client = test.nodes[1].run(sys.executable, "-c", CLIENT, facts["MASTER_ADDR"],
                               facts["MASTER_PORT"], options.connections, timeout=120)
    spent = [ticks(pid) - was for pid, was in zip(agents, before)]
    runs[0].signal(15)
    for run in runs:
        run.wait(30)
    if client.code != 0:
        sys.exit(str(client))
    return [*map(float, client.out.split()), *spent]


class Vouching(jobs.JobTest):
    def runTest(self):
        parser = argparse.ArgumentParser()
        parser.add_argument("--connections", type=int, default=8192)
        parser.add_argument("--rounds", type=int, default=5)
        options = parser.parse_args()
        unasked = f"--store-allow=members,{self.nodes[1].ip}"
        ways = {"asked": [], "unasked": [unasked]}
        told = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, words in ways.items():
                told[way].append(measure(self, options, *words))
        for way, rows in told.items():
            one, burst, store, agent = map(statistics.median, zip(*rows))
            print(f"{way:8} one connection with its request {one:.0f} us; {options.connections} at "
                  f"once {burst:.3f} s; CPU of the store's agent {store:.0f} ms, of node1's "
                  f"{agent:.0f} ms")


if __name__ == "__main__":
    import unittest
    unittest.main(argv=sys.argv[:1], verbosity=0)
