#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What a token protects: nothing of a job is read on the wire, and strangers do not harm it."""

import contextlib
import hashlib
import hmac
import os
import pathlib
import sys
import threading

import jobs
import lab

ATTACKER = lab.WORKERS / "rapid_reset.py"
JOB, REASON = "a-job-of-ours", "a-reason-of-ours"
# All that passes this host's interface, into a file.
SNIFF = """
import socket, sys
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
with open(sys.argv[1], "wb", buffering=0) as out:
    print("listening to the wire", flush=True)
    while True:
        out.write(packets.recv(65536))
"""
FAIL = f"import os, sys, time; time.sleep(20 * (1 - int(os.environ['NODE_RANK']))); sys.exit('{REASON}')"
STEPS = "import time\nfor step in range(%d):\n    time.sleep(0.1)\n    print('step', step, flush=True)"


def server_name(token):
    """As rendezvous/trust derives it; it can be read on the wire."""
    key = hmac.digest(b"hlaunch token v1", token.encode(), hashlib.sha256)
    return hmac.digest(key, b"server name\x01", hashlib.sha256)[:16].hex() + ".hlaunch"


class OnTheWire(jobs.JobTest):
    def heard(self, env):
        """What a listener at node1 reads of a job of both nodes that fails."""
        packets = self.nodes[1].folder / "packets"
        listener = self.nodes[1].start(sys.executable, "-c", SNIFF, packets)
        listener.wait_for("listening to the wire")
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node0:29400", "--rdzv-id",
                           JOB, "--no-python", jobs.PYTHON, "-c", FAIL, env=env)
                for node in self.nodes]
        for run in runs:
            self.assertEqual(run.wait(30), 1, self.told(runs))
        listener.signal(9)
        listener.wait(10)
        self.assert_said(runs[0], REASON)
        return packets.read_bytes()

    def test_nothing_of_a_job_with_a_token_is_read(self):
        in_clear = self.heard({})
        for words in (JOB, REASON):  # The listener listens.
            self.assertIn(words.encode(), in_clear)
        encrypted = self.heard({"HLAUNCH_TOKEN": lab.TOKEN})
        for words in (JOB, REASON, lab.TOKEN):
            self.assertNotIn(words.encode(), encrypted)
        self.assertIn(server_name(lab.TOKEN).encode(), encrypted)

    def test_the_token_is_not_in_any_processs_environment(self):
        runs = self.start(jobs.PYTHON, "-c", STEPS % 600, options=["--no-python"],
                          env={"HLAUNCH_TOKEN": lab.TOKEN})
        for run in runs:
            run.wait_for("step 1")
        seen = 0
        for pid in [pid for run in runs for pid in (run.pid, *run.descendants())]:
            with contextlib.suppress(OSError):  # It has ended meanwhile.
                environment = pathlib.Path("/proc", str(pid), "environ").read_bytes()
                self.assertNotIn(lab.TOKEN.encode(), environment, lab.command_line(pid))
                seen += 1
        self.assertGreaterEqual(seen, 6)  # A keeper, an agent and a worker on each node.
        runs[0].signal(15)
        for run in runs:
            run.wait(20)


class Strangers(jobs.JobTest):
    count = 3
    SECONDS = 5
    MOST = 128 << 20  # Bytes that an agent may have: 22 MB without an attack, gigabytes without a guard.

    def attack(self, host, name):
        """The attack of node2 on node0's port, to its end; the agent's greatest size meanwhile."""
        pid = jobs.agent_of(host)
        attacker = self.nodes[2].start(sys.executable, ATTACKER, "node0", 29400, self.SECONDS, name)
        most, done = 0, threading.Event()

        def watch():
            nonlocal most
            while not done.wait(0.1):
                with contextlib.suppress(OSError):  # The job is over.
                    sizes = pathlib.Path("/proc", str(pid), "statm").read_text(encoding="ascii")
                    most = max(most, int(sizes.split()[1]) * os.sysconf("SC_PAGESIZE"))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            attacker.wait(10 * self.SECONDS)
        finally:
            done.set()
            watcher.join()
        print(f"{name}: {attacker.out.strip()}; the agent had {most >> 20} MiB", flush=True)
        return most

    def test_rapid_reset_does_not_reach_the_job(self):
        runs = self.start(jobs.PYTHON, "-c", STEPS % (100 * self.SECONDS), nodes=self.nodes[:2],
                          options=["--nnodes", 2, "--no-python"],
                          env={"HLAUNCH_TOKEN": lab.TOKEN})
        for run in runs:
            run.wait_for("step 1")
        for name in ("clear", "stranger.hlaunch", server_name(lab.TOKEN)):
            self.assertLess(self.attack(runs[0], name), self.MOST, name)
        self.assert_said(runs[0], "it has no token", "it has another token")
        for run in runs:  # It has gone on meanwhile.
            before = run.out.count("step")
            self.assertTrue(lab.poll(lambda run=run, before=before: run.out.count("step") > before, 5))
        runs[0].signal(15)
        self.assert_done(runs, [143, jobs.NODE_STOPPED], 20)


if __name__ == "__main__":
    lab.main()
