#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The lab keeps its promises: hosts are separate, faults take effect, and leaks are found."""

import signal
import sys

import lab

CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7000), 0.5).close()
except OSError as error:
    sys.exit(f"no: {error}")
"""
LISTEN = """
import socket
server = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
while True:
    server.accept()[0].close()
"""


class Hosts(lab.LabTest):
    def reach(self, address):
        return self.nodes[1].run(sys.executable, "-c", CONNECT, address, timeout=5).code == 0

    def test_nodes_have_names_and_reach_each_other_until_they_are_cut(self):
        node0, node1 = self.nodes
        self.assertEqual(node1.run("hostname").out, "node1\n")
        self.assertIn("127.0.1.1", node0.run("getent", "ahostsv4", "node0").out)
        self.assertIn(node0.ip, node1.run("getent", "ahostsv4", "node0").out)
        node0.start(sys.executable, "-c", LISTEN).wait_for("listening")
        self.assertTrue(self.reach(node0.ip) and self.reach(node0.ip6) and self.reach("node0"))
        node1.cut()
        self.assertFalse(self.reach(node0.ip))
        node1.heal()
        self.assertTrue(lab.poll(lambda: self.reach(node0.ip), 5))
        node0.drop()
        self.assertFalse(self.reach(node0.ip))
        node0.heal()
        self.assertTrue(lab.poll(lambda: self.reach(node0.ip), 5))

    def test_power_off_ends_all_of_one_node(self):
        runs = [node.start("sleep", "60") for node in self.nodes]
        lab.poll(lambda: all(node.processes() for node in self.nodes), 5)
        self.nodes[1].power_off()
        self.assertEqual(runs[1].wait(5), 128 + signal.SIGKILL)
        self.assertIsNone(runs[0].process.poll())

    def test_a_process_that_is_left_over_is_found(self):
        self.nodes[0].run("sh", "-c", "setsid sleep 60 >/dev/null 2>&1 &")
        self.assertEqual(list(self.nodes[0].left_over(0.2).values()), ["sleep 60"])
        with self.assertRaises(AssertionError):
            self.assert_nothing_left(0.2)

    def test_exit_codes_are_those_of_a_shell(self):
        self.assertEqual(self.nodes[0].run("sh", "-c", "exit 7").code, 7)
        self.assertEqual(self.nodes[0].run("sh", "-c", "kill -9 $$").code, 128 + signal.SIGKILL)


class HostsWithIpv6Only(lab.LabTest):
    ipv6_only = True

    def test_there_is_no_ipv4_between_nodes(self):
        self.nodes[0].start(sys.executable, "-c", LISTEN).wait_for("listening")
        connect = [sys.executable, "-c", CONNECT]
        self.assertEqual(self.nodes[1].run(*connect, "node0").code, 0)
        self.assertNotEqual(self.nodes[1].run(*connect, self.nodes[0].ip).code, 0)


if __name__ == "__main__":
    lab.main(needs_hlaunch=False)
