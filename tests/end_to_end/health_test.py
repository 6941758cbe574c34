#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""No job starts on a bad node. A folder of files describes each host; one of them is bad."""

import json
import os
import re
import signal
import subprocess

import jobs
import lab

BAD = 2  # The bad node's index, one of the nodes that start first.
BAD_MEMORY = str(lab.BIN.parent / "tests/workers/bad_memory/hlaunch")
PORT = "sys/class/infiniband/mlx5_0/ports/1"
XID_79 = "6,1,9990000000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def describe(node, rate=400, log="6,1,5,-;Linux version 6.1"):
    """Describes a host with one InfiniBand port and this kernel log."""
    root = node.folder / "machine"
    for name, text in {"state": "4: ACTIVE", "phys_state": "5: LinkUp",
                       "rate": f"{rate} Gb/sec (4X NDR)"}.items():
        put(root / PORT / name, text)
    put(root / "proc/uptime", "10000.00 10000.00")
    put(root / "dev/kmsg", log)
    return root


class HealthTest(jobs.JobTest):
    count = 5

    command = [jobs.WORKER, "env"]

    bad_memory = None  # The node with bad memory.

    def program(self, node):
        return BAD_MEMORY if node is self.bad_memory else lab.HLAUNCH

    def start_on(self, nodes, nnodes, *options):
        return [node.start(self.program(node), "--nnodes", nnodes, "--rdzv-endpoint", "node0:29400",
                           "--sysroot", node.folder / "machine", *options, *self.command,
                           env={"PYTHON_EXEC": jobs.PYTHON})
                for node in nodes]

    @staticmethod
    def limit_link(node, rate, burst):
        subprocess.run(["nsenter", "-t", str(node.init), "-n", "--", "tc", "qdisc", "add", "dev",
                        "eth0", "root", "tbf", "rate", rate, "burst", burst, "latency", "80ms"],
                       check=True, timeout=10 * lab.PATIENCE)

    def give_equal_links(self):
        """Makes the links slow enough that they, and not a busy machine, limit what is measured."""
        for node in self.nodes:
            self.limit_link(node, "100mbit", "8kb")

    def refuse(self, node, ports):
        """A firewall refuses what this node sends to these ports of node0, until the stdin of the
        run that is returned is closed."""
        rule = ["OUTPUT", "-p", "tcp", "-d", self.nodes[0].ip, "--dport", ports, "-j", "REJECT",
                "--reject-with", "tcp-reset"]
        node.run("iptables", "-A", *rule)
        return node.start("sh", "-c", 'read _; iptables -D "$@"', "sh", *rule,
                          stdin=subprocess.PIPE)

    def start_with_spare(self, *options):
        """Starts four nodes, then lets node4 join as a spare, and then the round begin."""
        # A node may lack the master store for 8 s. So no program starts within that time, and the
        # nodes try again at short intervals, as they do for a refusal.
        spare, last = self.refuse(self.nodes[4], "29400"), self.refuse(self.nodes[3], "30000:65535")
        waiting = self.start_on(self.nodes[4:], 4, *options)
        waiting[0].wait_for("waiting .* refused")
        runs = self.start_on(self.nodes[:4], 4, *options) + waiting
        runs[0].wait_for("waiting .* for the other nodes", 10)
        spare.process.stdin.close()
        runs[4].wait_for("stands by as a spare")
        last.process.stdin.close()
        return runs

    def ranks(self, runs):
        found = [facts for run in runs for facts in jobs.environments(run)]
        self.assertEqual({facts["TORCHELASTIC_RESTART_COUNT"] for facts in found}, {"0"})
        return sorted(int(facts["RANK"]) for facts in found)


class Health(HealthTest):
    def test_a_spare_replaces_a_node_with_half_the_others_fabric(self):
        for index, node in enumerate(self.nodes):
            describe(node, rate=200 if index == BAD else 400)
        runs = self.start_with_spare()
        self.assert_done(runs, [jobs.OK, jobs.OK, jobs.REFUSED, jobs.OK, jobs.OK], 30)
        why = r"node2: fabric 200 Gbit/s, 2 times worse where others have 400 Gbit/s"
        self.assert_said(runs[0], "round 1 is measured once more: " + why,
                         "round 2 cannot start: " + why)
        self.assert_said(runs[BAD], "this node was excluded: " + why)
        self.assertEqual(jobs.environments(runs[BAD]), [])
        self.assertEqual(self.ranks(runs), [0, 1, 2, 3])

    def test_a_fault_in_the_kernel_log_excludes_a_node_the_job_can_do_without(self):
        for index, node in enumerate(self.nodes):
            describe(node, log=XID_79 if index == BAD else "6,1,5,-;fine")
        runs = self.start_on(self.nodes[:4], "3:4", "--last-call", 10)
        self.assert_done(runs, [jobs.OK, jobs.OK, jobs.REFUSED, jobs.OK], 30)
        self.assert_said(runs[0], "round 1 cannot start: node2: kernel log: Xid 79 within the hour")
        self.assertEqual(self.ranks(runs), [0, 1, 2])

    def test_a_bad_node_that_the_job_needs_runs_and_is_named(self):
        for index, node in enumerate(self.nodes):
            describe(node, log=XID_79 if index == BAD else "6,1,5,-;fine")
        runs = self.start_on(self.nodes[:3], 3)
        self.assert_done(runs, jobs.OK, 30)
        self.assert_said(runs[0], "node2: kernel log: Xid 79 .*the job cannot do without")
        self.assertEqual(self.ranks(runs), [0, 1, 2])

    def test_a_job_that_wants_no_bad_node_ends(self):
        for index, node in enumerate(self.nodes):
            describe(node, log=XID_79 if index == BAD else "6,1,5,-;fine")
        runs = self.start_on(self.nodes[:3], 3, "--preflight-action", "fail")
        self.assert_done(runs, jobs.PREFLIGHT, 30)
        self.assert_said(runs[0], "round 1 cannot start: node2: kernel log: Xid 79")

    def test_healthy_nodes_hear_nothing_of_it(self):
        self.give_equal_links()
        for node in self.nodes:
            describe(node)
        runs = self.start_on(self.nodes[:3], 3, "--preflight", "full")
        self.assert_done(runs, jobs.OK, 30)
        for run in runs:
            self.assertNotRegex(run.err, "warn|excluded|measured once more")

    def test_check_says_which_check_fails(self):
        root = describe(self.nodes[0], log=XID_79)
        done = subprocess.run([lab.HLAUNCH, "check", "--json", "--sysroot", root],
                              capture_output=True, text=True, timeout=30 * lab.PATIENCE, check=False)
        self.assertEqual(done.returncode, jobs.PREFLIGHT, done.stderr)
        failed = [each["name"] for each in json.loads(done.stdout)["checks"]
                  if each["state"] == "fail"]
        self.assertEqual(failed, ["kernel log"])


class Doctor(HealthTest):
    """The checks without a job."""

    count = 3
    command = []

    def doctor(self, *options):
        return [node.start(self.program(node), "doctor", "--nnodes", 3, "--rdzv-endpoint", "node0:29400",
                           "--sysroot", node.folder / "machine", *options)
                for node in self.nodes]

    def setUp(self):
        super().setUp()
        for node in self.nodes:
            describe(node)

    def test_healthy_nodes_are_shown_with_pairs_and_figures(self):
        self.give_equal_links()
        runs = self.doctor()
        self.assert_done(runs, jobs.OK, 60)
        for run in runs:
            self.assertRegex(run.out, r"joint check +ok")
        for a, b in ((0, 1), (0, 2), (1, 2)):
            self.assertRegex(runs[0].out, rf"node{a} +node{b} +[\d.]+ us +[\d.]+ Gbit/s +ok")
        self.assertRegex(runs[0].out, r"fabric +400 Gbit/s +node0 +400 Gbit/s")
        self.assertNotRegex(runs[1].out, "AND NODE")

    def test_a_node_that_gets_wrong_sums_is_named_with_advice(self):
        self.bad_memory = self.nodes[BAD]
        runs = self.doctor("--json")
        self.assert_done(runs, jobs.PREFLIGHT, 60)
        self.assert_said(runs[0], "node2: numbers that it added up with node0, node1 came out wrong")
        for run in runs:
            found = json.loads(run.out)
            self.assertEqual(found["state"], "warn")
            self.assertEqual([pair["failed"] for pair in found["pairs"]
                              if BAD in (pair["node"], pair["and_node"])], [True, True])
            advice = [check["advice"] for check in found["checks"] if check["name"] == "joint check"]
            self.assertRegex(advice[0], "use node2 for nothing before")

    def test_one_node_is_checked_as_by_check(self):
        root = describe(self.nodes[0], log=XID_79)
        run = self.nodes[0].run(lab.HLAUNCH, "doctor", "--sysroot", root)
        self.assertEqual(run.code, jobs.PREFLIGHT, str(run))
        self.assertRegex(run.out, "kernel log +fail")

    def test_a_script_is_refused(self):
        run = self.nodes[0].run(lab.HLAUNCH, "doctor", "train.py")
        self.assertEqual(run.code, jobs.USAGE, str(run))
        self.assert_said(run, r"takes the options of a job and no script; .* hlaunch \./doctor")


class Running(HealthTest):
    """A state that gets worse while workers run is reported once, here and at the first node."""

    count = 3
    command = [jobs.WORKER, "env", "await", "go"]

    def setUp(self):
        super().setUp()
        for node in self.nodes:
            put(describe(node) / PORT / "counters/link_downed", "0")
        self.runs = self.start_on(self.nodes, 3, "--health-interval", 0.3, *self.logs())
        self.wait_for_workers(self.runs, 3)

    def logs(self):
        return ["--log-dir", self.nodes[0].folder / "logs"]

    def await_first_turn(self):
        """Adds link losses on BAD until one is reported, since losses before the first check are
        not. Returns their number."""
        for count in range(1, 50):
            put(self.nodes[BAD].folder / "machine" / PORT / "counters/link_downed", str(count))
            if lab.poll(lambda: "node2: link losses: " in self.runs[0].err, 0.2):
                return count
        return self.fail(self.told(self.runs))

    def end(self, nodes=None):
        for node in nodes or self.nodes:
            (node.folder / "go").touch()

    def assert_once(self, run, pattern):
        said = [line for line in jobs.own_lines(run) if re.search(pattern, line)]
        self.assertEqual(len(said), 1, str(run))

    def test_a_link_that_was_lost_and_half_a_fabric_are_named_once(self):
        root = self.nodes[BAD].folder / "machine"
        many = 100 + self.await_first_turn()
        put(root / PORT / "counters/link_downed", str(many))
        put(root / PORT / "rate", "200 Gb/sec (4X HDR)")
        lost = rf"link losses: \d+ more since the workers started: since boot: mlx5_0/1: {many}"
        half = "fabric: 200 Gbit/s where there were 400"
        for words in (lost, half):
            self.runs[0].wait_for(f"node2: {words}", 10)
        put(root / PORT / "rate", "400 Gb/sec (4X NDR)")
        self.runs[0].wait_for("node2: fabric: as at first again", 10)
        self.end()
        self.assert_done(self.runs, jobs.OK, 20)
        for words in (lost, half):
            self.assert_once(self.runs[BAD], words)
            self.assert_once(self.runs[0], f"node2: {words}")
            self.assertNotRegex(self.runs[1].err, words)
        events = [json.loads(line) for path in (self.nodes[0].folder / "logs").rglob("events.jsonl")
                  for line in path.read_text(encoding="utf-8").splitlines()]
        told = {(event["host"], event["check"]) for event in events
                if event["event"] == "health_worse"}
        self.assertLessEqual({("node2", "fabric"), ("node0", "node2: fabric")}, told)

    def test_a_device_that_fails_is_named_at_once(self):
        self.await_first_turn()
        put(self.nodes[BAD].folder / "machine/dev/kmsg", XID_79)
        self.runs[0].wait_for("node2: kernel log: 1 more since the workers started: Xid 79", 10)
        self.end()
        self.assert_done(self.runs, jobs.OK, 20)

    def test_a_node_whose_workers_go_on_alone_is_named(self):
        self.end(self.nodes[:2])
        self.runs[0].wait_for("node2: the end: 2 of 3 nodes have finished", 10)
        self.end()
        self.assert_done(self.runs, jobs.OK, 20)

    def test_a_node_that_does_not_answer_is_named_until_it_does(self):
        watch = lab.poll(lambda: [pid for pid in lab.descendants(self.runs[BAD].pid)
                                  if " --watch " in lab.command_line(pid)], 60)
        self.assertEqual(len(watch), 1, str(self.runs[BAD]))
        os.kill(watch[0], signal.SIGSTOP)
        self.runs[0].wait_for("other nodes: their health is not known: .*node rank 2", 60)
        os.kill(watch[0], signal.SIGCONT)
        self.runs[0].wait_for("other nodes: as at first again", 60)
        os.kill(watch[0], signal.SIGKILL)
        self.runs[BAD].wait_for("health: nobody looks after it until the next round", 20)
        self.end()
        self.assert_done(self.runs, jobs.OK, 20)


class Together(HealthTest):
    """Nodes measure each other. A spare replaces the bad node, and the training finishes."""

    command = [lab.ROOT / "deploy/examples/train_ddp.py", "--steps", 5]

    def setUp(self):
        super().setUp()
        done = subprocess.run([jobs.PYTHON, "-c", "import torch"], check=False, timeout=600)
        if done.returncode != 0:
            self.skipTest(f"no torch for {jobs.PYTHON} (Debian: python3-torch)")
        for node in self.nodes:
            describe(node)

    def assert_replaced(self, runs, why, rounds):
        self.assert_done(runs, [jobs.OK, jobs.OK, jobs.REFUSED, jobs.OK, jobs.OK], 90)
        self.assert_said(runs[0], f"round {rounds} cannot start: node2: {why}")
        self.assert_said(runs[BAD], f"this node was excluded: node2: {why}")
        self.assertNotRegex(runs[BAD].out, "step")
        self.assertRegex(runs[0].out, "OK: 4 ranks hold identical parameters")

    def test_a_node_that_gets_wrong_sums_is_replaced(self):
        self.bad_memory = self.nodes[BAD]
        runs = self.start_with_spare()
        self.assert_replaced(
            runs, r"numbers that it added up with node\d(, node\d)* came out wrong", 1)

    def test_a_node_behind_a_slow_link_is_replaced(self):
        self.limit_link(self.nodes[BAD], "50mbit", "32kb")
        runs = self.start_with_spare("--preflight", "full")
        self.assert_replaced(
            runs, r"0\.\d+ Gbit/s and [\d.e+]+ us with other nodes at best where others have up to "
            r"[\d.e+]+ Gbit/s", 2)

    def test_a_node_with_half_the_others_fabric_is_replaced(self):
        describe(self.nodes[BAD], rate=200)
        runs = self.start_with_spare()
        self.assert_replaced(runs, "fabric 200 Gbit/s, 2 times worse", 2)


if __name__ == "__main__":
    lab.main()
