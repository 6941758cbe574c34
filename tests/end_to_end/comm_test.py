#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Collectives between hosts: right results over a bad network, and every failure named in time."""

import os
import pathlib
import re
import signal
import subprocess

import lab

RANK = os.environ.get("HLAUNCH_COMM_RANK",
                      str(pathlib.Path(lab.BIN).parent / "tests/workers/hlaunch_test_comm_rank"))
PER_HOST = 2


class Ranks(lab.LabTest):
    """Two ranks on each host, started as a launcher does."""

    def start_ranks(self, seconds, elements, timeout=120):
        size = PER_HOST * len(self.nodes)
        self.ranks = []
        for rank in range(size):
            environment = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": PER_HOST,
                           "MASTER_ADDR": self.nodes[0].ip, "MASTER_PORT": 29555}
            self.ranks.append(self.nodes[rank // PER_HOST].start(
                RANK, seconds, elements, timeout, env=environment))

    def wait_begun(self):
        for rank in self.ranks:
            rank.wait_for("begun", 20)

    def assert_done(self, timeout=120):
        for rank in self.ranks:
            rank.wait(timeout)
        for rank in self.ranks:
            self.assertRegex(rank.out, r"done after \d+ calls", "\n".join(map(str, self.ranks)))

    def failures(self, but=(), timeout=30):
        """(message, seconds) of each rank that is not in `but`."""
        found = []
        for number, rank in enumerate(self.ranks):
            if number in but:
                continue
            rank.wait(timeout)
            match = re.search(r"^(.*); ([\d.]+) s after", rank.out, re.MULTILINE)
            self.assertIsNotNone(match, str(rank))
            found.append((match[1], float(match[2])))
        return found

    def in_node(self, node, *command):
        """Runs a command of this machine in the network of a node."""
        subprocess.run(["nsenter", "-t", str(node.init), "-n", "--", *command], check=True)


class BadNetwork:
    """The tests for any number of hosts."""

    def lose_packets(self):
        for node in self.nodes:
            self.in_node(node, "iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "-m",
                         "statistic", "--mode", "random", "--probability", "0.02", "-j", "DROP")

    def test_results_are_right(self):
        for elements in (1, 50000):
            self.start_ranks(1, elements)
            self.assert_done()

    def test_results_are_right_while_packets_are_lost(self):
        self.lose_packets()
        self.start_ranks(2, 20000)
        self.assert_done()

    def test_results_are_right_while_packets_take_long_and_are_lost(self):
        for node in self.nodes:
            node.lengthen(0.01)
        self.assertGreater(self.way_there_and_back(), 0.04)
        self.start_ranks(2, 20000)
        self.assert_done()
        self.lose_packets()
        self.start_ranks(2, 20000)
        self.assert_done()

    def way_there_and_back(self):
        """The round-trip time between two hosts in seconds; a refusal counts as an answer."""
        timed = ("import socket, time; s = socket.socket(); begun = time.monotonic(); "
                 f"s.connect_ex(('{self.nodes[1].ip}', 9)); print(time.monotonic() - begun)")
        self.nodes[0].run("/usr/bin/python3", "-c", timed)  # They resolve each other's addresses.
        return float(self.nodes[0].run("/usr/bin/python3", "-c", timed).out)

    def test_a_rank_that_is_killed_is_named_to_all(self):
        self.start_ranks(60, 50000, timeout=600)  # A time-out must not be what tells them.
        self.wait_begun()
        self.ranks[3].signal(signal.SIGKILL)
        for text, _ in self.failures(but=[3]):
            self.assertRegex(text, r"UNAVAILABLE: rank 3( on node1)? went away")

    def test_a_rank_that_stands_still_is_named_to_all(self):
        self.start_ranks(60, 1000, timeout=10)
        self.wait_begun()
        self.ranks[2].signal(signal.SIGSTOP)
        self.addCleanup(self.end_stopped, self.ranks[2])
        for text, _ in self.failures(but=[2]):
            self.assertRegex(text, r"DEADLINE_EXCEEDED: rank \d waited in vain for rank 2 on node1 in")

    @staticmethod
    def end_stopped(rank):
        rank.signal(signal.SIGKILL)
        os.kill(rank.process.pid, signal.SIGCONT)  # nsenter has stopped with its child.

    def test_a_link_that_is_cut_is_no_hang(self):
        self.start_ranks(60, 200000, timeout=10)
        self.wait_begun()
        self.nodes[1].drop()
        for text, _ in self.failures(timeout=40):
            self.assertRegex(text, r"(DEADLINE_EXCEEDED|UNAVAILABLE): .*rank \d")


class CommOnTwoHosts(BadNetwork, Ranks):
    count = 2

    def test_large_messages_go_over_several_connections(self):
        self.start_ranks(2, 3000000)
        self.assert_done()
        self.start_ranks(600, 3000000)  # They run on until the connections are counted.
        self.wait_begun()

        def connections():
            shown = self.nodes[0].run("ss", "-Htn", "state", "established", "dst",
                                      self.nodes[1].ip).out
            return len(shown.splitlines())
        # Two pairs of ranks split messages, each in both directions.
        self.assertTrue(lab.poll(lambda: connections() >= 16, 10, 0.1), connections())
        self.ranks[3].signal(signal.SIGKILL)
        for text, _ in self.failures(but=[3]):
            self.assertRegex(text, r"UNAVAILABLE: rank 3( on node1)? went away")

    def test_results_are_right_over_a_slow_link(self):
        # Excess packets wait in the queue: tens of milliseconds for each packet.
        for node in self.nodes:
            self.in_node(node, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "50mbit",
                         "burst", "32kb", "latency", "80ms")
        self.start_ranks(2, 20000)
        self.assert_done()


class CommOnFourHosts(BadNetwork, Ranks):
    count = 4

    def test_a_host_that_loses_power_is_no_hang(self):
        self.start_ranks(60, 30000, timeout=10)
        self.wait_begun()
        self.nodes[2].power_off()
        for text, _ in self.failures(but=[4, 5], timeout=40):
            self.assertRegex(text, r"(DEADLINE_EXCEEDED|UNAVAILABLE): .*rank [45]")


if __name__ == "__main__":
    lab.main()
