#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Which node hosts the rendezvous: the owner of the endpoint's address, under any name and whenever
that name resolves; behind a service or a NAT it is node rank 0 or a node with is_host=1."""

import pathlib
import signal
import sys

import jobs
import lab

RELAY = str(pathlib.Path(__file__).with_name("relay.py"))
NAME_SERVER = str(pathlib.Path(__file__).with_name("name_server.py"))
IS_HOST = ["--rdzv-conf", "is_host=1"]


class Service(jobs.JobTest):
    """node2 is no node of the job: its address is a service in front of a node."""

    count = 3
    endpoint = "node2:29400"

    def serve(self, backend, *options):
        relay = self.nodes[2].start(sys.executable, RELAY, 29400, backend.ip, *options)
        relay.wait_for("relay is up")
        return relay

    def run_two(self, first, second):
        """Runs a job on node0 and node1 with these options; both must succeed."""
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint, "-v",
                           "--join-timeout", "20", *options, jobs.WORKER, "env",
                           env={"PYTHON_EXEC": jobs.PYTHON})
                for node, options in zip(self.nodes, (first, second))]
        for run in runs:
            self.assertEqual(run.wait(20), jobs.OK, self.told(runs))
            self.assertEqual(len(jobs.environments(run)), 1, self.told(runs))
        return runs

    def test_node_rank_0_hosts_behind_it(self):
        relay = self.serve(self.nodes[0])
        runs = self.run_two(["--node-rank", "0"], ["--node-rank", "1"])
        self.assertEqual([jobs.environments(run)[0]["RANK"] for run in runs], ["0", "1"])
        relay.signal(signal.SIGKILL)
        self.assert_nothing_left()

    def test_a_node_with_is_host_hosts_behind_it(self):
        relay = self.serve(self.nodes[1])
        self.run_two([], IS_HOST)
        relay.signal(signal.SIGKILL)
        self.assert_nothing_left()

    def test_the_host_finds_home_where_its_own_way_through_it_is_closed(self):
        relay = self.serve(self.nodes[0], "no-hairpin")
        runs = self.run_two(["--node-rank", "0"], [])
        self.assertEqual(jobs.environments(runs[0])[0]["MASTER_ADDR"], self.nodes[0].ip)
        relay.signal(signal.SIGKILL)
        self.assert_nothing_left()

    def test_all_end_where_it_leads_even_if_two_would_host(self):
        relay = self.serve(self.nodes[1])
        self.run_two(["--node-rank", "0"], IS_HOST)
        relay.signal(signal.SIGKILL)
        self.assert_nothing_left()

    def test_a_failure_behind_it_is_everyones(self):
        relay = self.serve(self.nodes[0])
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                           "--node-rank", node.index, "--no-python", "sh", "-c",
                           "test $RANK = 0 || exit 7; sleep 60") for node in self.nodes[:2]]
        for run in runs:
            self.assertEqual(run.wait(20), 7, self.told(runs))
            self.assert_said(run, "rank 1")
        relay.signal(signal.SIGKILL)
        self.assert_nothing_left()


class Nobody(jobs.JobTest):
    """No node hosts: every node reports once what it believes, and gives up in time."""

    CASES = [  # job id, endpoint, options, the expected message
        ("refused", "node1:29477", [],
         r"nobody answers at node1:29477 for 5 s: node1 resolves to 10\.77\.0\.11, which is no "
         r"address of this host, and this node is not node rank 0 \(this host: eth0 10\.77\.0\.10, "
         r"eth0 fd77::10\); that port is refused.*; start hlaunch on the host.*--node-rank 0 or "
         r"--rdzv-conf is_host=1"),
        ("dropped", "10.77.0.12:29400", [],
         r"10\.77\.0\.12 is no address of this host.*nothing comes back.*firewall"),
        ("nameless", "nowhere:29400", [],
         r"nobody answers at nowhere:29400 .*cannot resolve 'nowhere'.*correct the name"),
        ("offered", "node1:29478", ["--node-rank", "0"],
         r"this is node rank 0 .*; this node listens on port 29478 and nobody was led here; "
         r"that port is refused.*check that node1 leads to this host's port 29478"),
        ("forbidden", "node0:29479", ["--rdzv-conf", "is_host=0"],
         r"node0 resolves to 127\.0\.1\.1, which is this host's loopback, and is_host=0 forbids"),
        ("static", "", ["--master-addr", "node1", "--master-port", "29480", "--node-rank", "1"],
         r"this is node rank 1 and rank 0 hosts at node1:29480.*refused.*start node rank 0 there"),
    ]
    count = 3

    def test_each_says_what_it_believes_and_gives_up_in_time(self):
        self.nodes[2].drop()
        # Otherwise the kernel reports every 3 s that there is no such host.
        done = self.nodes[0].run("ip", "neigh", "add", self.nodes[2].ip, "lladdr",
                                 "02:00:00:00:00:99", "dev", "eth0")
        self.assertEqual(done.code, 0, str(done))
        runs = {}
        for job, endpoint, options, _ in self.CASES:
            meet = ["--rdzv-endpoint", endpoint] if endpoint else []
            runs[job] = self.nodes[0].start(
                lab.HLAUNCH, "--nnodes", 2, "--rdzv-id", job, *meet, "--join-timeout", "10",
                *options, "--no-python", "true")
        for job, _, _, says in self.CASES:
            with self.subTest(job):
                self.assertEqual(runs[job].wait(15), jobs.BAD_ENDPOINT, str(runs[job]))
                self.assert_said(runs[job], says)
                self.assertEqual(runs[job].err.count("nobody answers"), 1, str(runs[job]))
        self.assert_nothing_left()

    def test_a_host_whom_nobody_meets_says_why_it_hosts(self):
        run = self.nodes[0].start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node0",
                                  "--join-timeout", "6", "--no-python", "true")
        self.assertEqual(run.wait(15), jobs.JOIN_TIMEOUT, str(run))
        self.assert_said(run, r"this node hosts the rendezvous at node0:29400, since node0 resolves "
                         r"to 127\.0\.1\.1.*no other node has come for 3 s")
        self.assert_nothing_left()


class Names(jobs.JobTest):
    def test_the_owner_hosts_once_a_late_name_is_known(self):
        self.endpoint = "late:29400"
        runs = self.start(jobs.WORKER, "env")
        for run in runs:
            run.wait_for("cannot resolve 'late'")
        for node in self.nodes:
            node.know("late", self.nodes[0].ip)
        self.assert_done(runs, jobs.OK, 20)

    def test_a_node_hosts_once_a_name_leads_to_it_that_led_elsewhere(self):
        self.endpoint = "moved:29400"
        for node in self.nodes:
            node.know("moved", self.nodes[1].ip)
        run = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])
        run[0].wait_for("waiting .*moved")
        for node in self.nodes:
            node.forget("moved")
            node.know("moved", self.nodes[0].ip)
        self.assert_done(run + self.start(jobs.WORKER, "env", nodes=self.nodes[1:]), jobs.OK, 20)

    def test_a_dead_name_server_keeps_nobody_from_ctrl_c(self):
        node = self.nodes[0]
        conf = node.folder / "resolv.conf"
        conf.write_text("nameserver 10.77.0.99\noptions timeout:20 attempts:1\n", encoding="utf-8")
        node.run("mount", "--bind", conf, "/etc/resolv.conf")
        # The server's host is known, so what is sent to it is lost. Otherwise the kernel reports
        # after 3 s that there is no such host, and then the resolver gives up.
        done = node.run("ip", "neigh", "add", "10.77.0.99", "lladdr", "02:00:00:00:00:99",
                        "dev", "eth0")
        self.assertEqual(done.code, 0, str(done))
        (self.lab.folder / "nsswitch.conf").write_text("hosts: files dns\n", encoding="utf-8")
        forms = [["--rdzv-endpoint", "job.example"], ["--master-addr", "job.example"],
                 ["--master-addr", "job.example", "--node-rank", "1"]]
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-id", f"j{index}", *form, "-v",
                           "--no-python", "true") for index, form in enumerate(forms)]
        for run in runs[::2]:  # The second one decides first, and prints nothing meanwhile.
            run.wait_for("waiting .*resolving 'job.example'")
        for run in runs:
            run.signal(signal.SIGINT)
        self.assert_done(runs, 128 + signal.SIGINT, 5)

    def test_a_name_server_that_is_silent_about_ipv6_delays_nobody(self):
        conf = self.lab.folder / "resolv.conf"
        # A resolver that waits for the answer has it after minutes.
        conf.write_text(f"nameserver {self.nodes[0].ip}\noptions timeout:30 attempts:5\n",
                        encoding="utf-8")
        (self.lab.folder / "nsswitch.conf").write_text("hosts: files dns\n", encoding="utf-8")
        for node in self.nodes:
            node.run("mount", "--bind", conf, "/etc/resolv.conf")
        server = self.nodes[0].start(sys.executable, NAME_SERVER, self.nodes[0].ip, "job.example",
                                     self.nodes[0].ip)
        server.wait_for("name server is up")
        self.endpoint = "job.example:29400"
        runs = self.start(jobs.WORKER, "env", options=["--join-timeout", "120"])
        for run in runs:
            self.assertEqual(run.wait(12), jobs.OK, self.told(runs))
        server.signal(signal.SIGKILL)
        self.assert_nothing_left()

    def test_the_second_interface_of_a_host_is_its_own(self):
        for node in self.nodes:
            node.add_interface("eth1", f"10.78.0.{node.index + 10}/24")
            node.know("node1-ib", "10.78.0.11")
        self.endpoint = "node1-ib:29400"
        runs = self.start(jobs.WORKER, "env")
        self.assert_done(runs, jobs.OK, 20)
        self.assertEqual(jobs.environments(runs[0])[0]["MASTER_ADDR"], "10.78.0.10")

    def test_a_node_is_reached_at_its_local_addr(self):
        """MASTER_ADDR is on the network that the user names, on the host of the rendezvous too."""
        for node in self.nodes:
            node.add_interface("eth1", f"10.78.0.{node.index + 10}/24")
        self.nodes[0].know("node0-ib", "10.78.0.10")
        for host in (0, 1):
            with self.subTest(host=host):
                self.endpoint = f"node{host}:2940{host}"
                named = (["--node-rank", "0", "--local-addr", "node0-ib"], ["--node-rank", "1"])
                runs = [run for node, words in zip(self.nodes, named)
                        for run in self.start(jobs.WORKER, "env", nodes=[node], options=words)]
                self.assert_done(runs, jobs.OK, 20)
                self.assertEqual(jobs.environments(runs[1])[0]["MASTER_ADDR"], "10.78.0.10")

    def test_a_local_addr_that_leads_nowhere_ends_at_once(self):
        run = self.nodes[0].start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node0:29400",
                                  "--local-addr", "nobody.invalid", "--no-python", "true")
        self.assert_done([run], jobs.BAD_ENDPOINT, 20)
        self.assertIn("--local-addr nobody.invalid: ", run.err)

    def test_an_ipv6_literal(self):
        self.endpoint = f"[{self.nodes[1].ip6}]:29400"
        runs = self.start(jobs.WORKER, "env")
        self.assert_done(runs, jobs.OK, 20)
        self.assertEqual(jobs.environments(runs[1])[0]["MASTER_ADDR"], self.nodes[0].ip6)

    def test_two_agents_on_the_owning_host(self):
        meet = ["--nnodes", 3, "--rdzv-endpoint", "node0:29400", jobs.WORKER, "env"]
        runs = [node.start(lab.HLAUNCH, *meet, env={"PYTHON_EXEC": jobs.PYTHON})
                for node in (self.nodes[0], self.nodes[0], self.nodes[1])]
        self.assert_done(runs, jobs.OK, 20)
        ranks = {jobs.environments(run)[0]["RANK"] for run in runs}
        self.assertEqual(ranks, {"0", "1", "2"})


class NamesOnIpv6(jobs.JobTest):
    ipv6_only = True

    def test_a_name_with_nothing_but_ipv6(self):
        self.endpoint = "node1:29400"
        self.assert_done(self.start(jobs.WORKER, "env"), jobs.OK, 20)


class Descriptors(jobs.JobTest):
    def test_workers_have_the_limit_that_hlaunch_was_given(self):
        for nnodes, count in ((1, 1), (2, 2)):
            runs = [node.start("sh", "-c", f"ulimit -Sn 300; ulimit -Hn 700; exec {lab.HLAUNCH} "
                               f"--nnodes {nnodes} --rdzv-endpoint node0 --no-python "
                               "sh -c 'echo limits $(ulimit -Sn) $(ulimit -Hn) of agent "
                               "$(grep files /proc/$PPID/limits)'") for node in self.nodes[:count]]
            self.assert_done(runs, jobs.OK, 20)
            for run in runs:
                self.assertRegex(run.out, r"limits 300 700 of agent Max open files +700 +700",
                                 str(run))

    def test_a_host_says_if_it_cannot_carry_all_nodes(self):
        def host(limit, nnodes):
            run = self.nodes[0].run(
                "sh", "-c", f"ulimit -n {limit}; exec {lab.HLAUNCH} --nnodes {nnodes} -v "
                "--nproc-per-node 8 --rdzv-endpoint node0 --join-timeout 1 --no-python true")
            self.assertEqual(run.code, jobs.JOIN_TIMEOUT, str(run))
            return run
        self.assert_said(host(256, 1000), r"this host carries about 16 nodes and --nnodes allows "
                         r"1000: of 256 descriptors .*raise the hard limit to 10096")
        self.assert_said(host(256, 16), r"this host carries about 16 nodes: ")
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
