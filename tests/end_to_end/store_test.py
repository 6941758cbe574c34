#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The master store's life: what torch does with it, who may serve it, which ports are kept beside
it, and what of an old round is still there in the next one."""

import os
import re
import shutil
import signal

import jobs
import lab
import torch_test

CALLS = str(lab.WORKERS / "torch_calls.py")
OWN_STORE = str(lab.WORKERS / "torch_own_store.py")
OWN_RANKS = str(lab.WORKERS / "torch_own_ranks.py")
PORTS = str(lab.WORKERS / "port_worker.py")
SLIM = {"OMP_NUM_THREADS": "1"}


class Calls1(torch_test.WithTorch):
    """FSDP of torch 1.13 cannot be imported on Python 3.11, and torch 1.13 has no device meshes."""

    wanted, python = "1.13", staticmethod(torch_test.Torch1.python)
    lacks = {"extended_store_calls", "queues", "new_stores", "store_barrier", "device_mesh", "fsdp",
             "fully_shard"}

    def test_two_nodes_with_two_workers_each(self):
        runs = self.start(CALLS, options=["--nproc-per-node", 2],
                          env={"PYTHON_EXEC": self.python(), **SLIM})
        self.assert_done(runs, jobs.OK, 150)
        self.assertEqual(set(re.findall(r"^\[0\] OK (\w+)$", runs[0].out, re.M)),
                         {"store_calls", "extended_store_calls", "queues", "new_stores",
                          "store_barrier", "groups", "ddp", "device_mesh", "fsdp", "fully_shard",
                          "missing_rank"} - self.lacks, self.told(runs))


class Calls2(Calls1):
    wanted, python, lacks = "2.", staticmethod(torch_test.Torch2.python), set()


class Proxy1(torch_test.WithTorch):
    """--store-proxy: the workers of the other nodes reach the store through their own agent."""

    wanted, python = "1.13", staticmethod(torch_test.Torch1.python)
    asked, secret = ["--store-proxy"], {}

    def test_real_clients_work_through_it(self):
        runs = self.start(CALLS, options=["--nproc-per-node", 2, *self.asked],
                          env={"PYTHON_EXEC": self.python(), **SLIM, **self.secret})
        self.assert_done(runs, jobs.OK, 150)
        self.assertIn("OK store_calls", runs[0].out, self.told(runs))

    def test_a_node_has_one_connection_however_many_workers_ask(self):
        end = self.lab.folder / "end"
        runs = self.start("--no-python", "sh", "-c",
                          f"{PORTS} empty && exec {jobs.WORKER} env await {end}",
                          options=["--nproc-per-node", 3, *self.asked, "--preflight", "off"],
                          env=self.secret)
        facts = self.wait_for_workers(runs, 6)
        places = {(fact["GROUP_RANK"], fact["MASTER_ADDR"]) for fact in facts}
        self.assertEqual(places, {("0", self.nodes[0].ip), ("1", "127.0.0.1")}, self.told(runs))
        port = int(next(fact["MASTER_PORT"] for fact in facts if fact["GROUP_RANK"] == "0"))
        peer = "".join(f"{int(part):02X}" for part in reversed(self.nodes[1].ip.split(".")))

        def from_node1():
            tables = self.nodes[0].run("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6").out
            return re.findall(rf":{port:04X} [0-9A-F]*{peer}:[0-9A-F]+ 01 ", tables)
        lab.poll(lambda: len(from_node1()) == 1, 5, 0.2)  # A closed one may stay a moment.
        self.assertEqual(len(from_node1()), 1, self.told(runs))
        end.touch()
        self.assert_done(runs, jobs.OK, 30)


class Proxy2(Proxy1):
    wanted, python = "2.", staticmethod(torch_test.Torch2.python)


class Sealed2(Proxy2):
    """With a token the proxy's traffic is encrypted."""

    secret = {"HLAUNCH_TOKEN": lab.TOKEN}


class Vouched2(torch_test.WithTorch):
    """With a token agents say whose the connections are, also torch's many."""

    wanted, python = "2.", staticmethod(torch_test.Torch2.python)

    def test_real_clients_are_served(self):
        runs = self.start(CALLS, options=["--nproc-per-node", 2],
                          env={"PYTHON_EXEC": self.python(), **SLIM, "HLAUNCH_TOKEN": lab.TOKEN})
        self.assert_done(runs, jobs.OK, 150)
        self.assertIn("OK store_calls", runs[0].out, self.told(runs))
        self.assertNotIn("refused a connection", self.told(runs))


class Vouched1(Vouched2):
    wanted, python = "1.13", staticmethod(torch_test.Torch1.python)


class OwnStore1(torch_test.WithTorch):
    """The table in launcher/manual/environment.md: programs that serve the store at MASTER_PORT."""

    wanted, python, error = "1.13", staticmethod(torch_test.Torch1.python), "RuntimeError"
    explicit = "RuntimeError"  # TCPStore(is_master=True) with the agent's store.
    count = 1

    def table(self, *options, code=jobs.OK, arguments=()):
        run = self.start(OWN_STORE, *arguments, options=options,
                         env={"PYTHON_EXEC": self.python(), **SLIM})[0]
        self.assert_done([run], code, 120)
        return run, [tuple(line.split(" | ")) for line in run.out.splitlines() if " | " in line]

    def test_the_agent_serves(self):
        run, table = self.table("--master-store=agent", code=1, arguments=["--uncaught"])
        self.assertEqual(table, [("TCPStore(is_master=True)", "as set", self.explicit),
                                 ("TCPStore(is_master=True)", "unset", self.error),
                                 ("tcp://", "as set", "joins"), ("tcp://", "unset", self.error),
                                 ("env://", "as set", "joins"), ("env://", "unset", self.error)],
                         str(run))
        self.assert_said(run, r"advice: port \d+ is MASTER_PORT.*--master-store=worker")

    def test_rank_0_serves(self):
        run, table = self.table()  # This is the default for a lone worker.
        # torch treats "False", which hlaunch sets in this case, like an unset variable.
        self.assertEqual(table, [(form, setting, "serves")
                                 for form in ("TCPStore(is_master=True)", "tcp://", "env://")
                                 for setting in ("as set", "unset")], str(run))


class OwnStore2(OwnStore1):
    wanted, python, error = "2.", staticmethod(torch_test.Torch2.python), "DistNetworkError"
    explicit = "joins"  # torch reports "failed to bind … so ignoring the error".


class OwnStoreOnTwoNodes(torch_test.WithTorch):
    wanted, python = "1.13", staticmethod(torch_test.Torch1.python)

    def test_rank_0_serves_and_the_others_find_it(self):
        runs = self.start(OWN_STORE, options=["--master-store", "worker"],
                          env={"PYTHON_EXEC": self.python(), **SLIM})
        self.assert_done(runs, jobs.OK, 120)
        self.assertIn("env:// | as set | serves", runs[0].out, self.told(runs))


class OwnRanks(torch_test.WithTorch):
    """Programs that start the job's ranks themselves, as the tutorial of torch.distributed does."""

    wanted, python, count = "2.", staticmethod(torch_test.Torch2.python), 1

    def ranks(self, form, *options):
        runs = self.start(OWN_RANKS, form, options=options,
                          env={"PYTHON_EXEC": self.python(), **SLIM})
        self.assert_done(runs, jobs.OK, 150)
        return re.findall(r"OK: rank (\d of \d)", self.told(runs))

    def test_a_lone_worker_starts_two_or_is_a_rank_as_ever(self):
        for form in ("tutorial", "chosen", "given"):
            with self.subTest(form):
                self.assertCountEqual(self.ranks(form), ["0 of 2", "1 of 2"])
        self.assertEqual(self.ranks("none"), ["0 of 1"])


class OwnRanksOnTwoNodes(OwnRanks):
    count = 2

    def test_a_lone_worker_starts_two_or_is_a_rank_as_ever(self):
        self.assertCountEqual(self.ranks("given", "--per-node"),
                              ["0 of 4", "1 of 4", "2 of 4", "3 of 4"])
        self.assertCountEqual(self.ranks("none"), ["0 of 2", "1 of 2"])


class Ports(jobs.JobTest):
    static = ["--nnodes", 2, "--master-addr", "node0", "--master-port", 29777]

    def test_neighbours_are_kept_for_those_who_name_them(self):
        runs = self.start(PORTS, "reserved")
        self.assert_done(runs, jobs.OK, 30)

    def test_neighbours_of_the_static_forms_port_too(self):
        runs = [node.start(lab.HLAUNCH, *self.static, "--node-rank", node.index, PORTS, "reserved",
                           env={"PYTHON_EXEC": jobs.PYTHON}) for node in self.nodes]
        self.assert_done(runs, jobs.OK, 30)

    def test_rank_0_serves_the_store_itself(self):
        runs = self.start(PORTS, "serve", options=["--nproc-per-node", 2, "--master-store=worker"])
        self.assert_done(runs, jobs.OK, 30)

    def test_rank_0_serves_beside_the_static_forms_port(self):
        runs = [node.start(lab.HLAUNCH, *self.static, "--node-rank", node.index,
                           "--master-store=worker", PORTS, "serve",
                           env={"PYTHON_EXEC": jobs.PYTHON}) for node in self.nodes]
        self.assert_done(runs, jobs.OK, 30)
        self.assert_said(runs[0], "MASTER_PORT is a port of its own")

    def test_only_node_rank_0_decides_who_serves(self):
        options = [["--node-rank", 0, "--master-store=worker"], ["--node-rank", 1]]
        runs = [self.start(PORTS, "serve", nodes=[node], options=words)[0]
                for node, words in zip(self.nodes, options)]
        self.assert_done(runs, jobs.OK, 30)


class StaleWorker(jobs.JobTest):
    """The static form has one port, so only the connection tells an old client from a new one."""

    def test_old_connections_are_closed_and_descendants_ended(self):
        fail, go, end = (self.lab.folder / name for name in ("fail", "go", "end"))
        runs = [node.start(lab.HLAUNCH, *Ports.static, "--node-rank", node.index, "--max-restarts",
                           1, "--shutdown-timeout", 1, "--no-python", "sh", "-c",
                           f"case $TORCHELASTIC_RESTART_COUNT in 0) exec {jobs.WORKER} family env"
                           f" await {fail} fail 0 7 0 ;; *) {PORTS} empty && exec {jobs.WORKER} env"
                           f" await {end} ;; esac") for node in self.nodes]
        self.wait_for_workers(runs, 2)
        stranger = self.nodes[1].start(PORTS, "stale", "node0", 29777, go)
        stranger.wait_for("HOLDS")
        fail.touch()
        self.wait_for_workers(runs, 4)
        old = [words for node in self.nodes for words in node.processes().values()
               if "e2e_worker.py family" in words and not words.startswith(str(lab.BIN))]
        self.assertEqual(old, [], self.told(runs))
        go.touch()
        stranger.wait_for("spoke closed, silent closed")
        stranger.wait_for("new served")  # It names no round: the protocol of c10d has none.
        end.touch()
        self.assert_done([*runs, stranger], jobs.OK, 60)


class Knocks(jobs.JobTest):
    """node0 and node1 run a job, and processes of all nodes try to use its master store."""

    count = 3
    secret = {}

    def job(self, *options, form=("--rdzv-endpoint", "node0:29400"), addresses=None, user=0):
        self.end = self.lab.folder / "end"
        self.end.unlink(missing_ok=True)
        runs = [node.start(*self.as_user(user), lab.HLAUNCH, "--nnodes", 2, *form, "--node-rank", node.index, *options,
                           "--no-python", "sh", "-c", f"{PORTS} empty && exec {jobs.WORKER} env"
                           f" await {self.end}", env={"PYTHON_EXEC": jobs.PYTHON, **self.secret})
                for node in self.nodes[:2]]
        facts = self.wait_for_workers(runs, 2)
        self.assertEqual({fact["MASTER_ADDR"] for fact in facts}, addresses or {self.nodes[0].ip})
        return runs, facts[-1]["MASTER_ADDR"], facts[-1]["MASTER_PORT"]

    def as_user(self, user):
        return [] if user == 0 else ["setpriv", f"--reuid={user}", f"--regid={user}",
                                     "--clear-groups"]

    def knock(self, node, address, port, answer, user=0):
        run = node.run(*self.as_user(user), PORTS, "knock", address, port)  # It is soon over.
        self.assertEqual(run.out.count(f"{address} {answer}\n"), 2, str(run))

    def job_with_a_second_address(self):
        """A job whose second node comes to the store from an address of another interface."""
        self.nodes[1].add_interface("eth1", "10.78.0.11/24")
        runs, address, port = self.job()
        self.nodes[0].run("ip", "route", "add", "10.78.0.0/24", "dev", "eth0")
        self.nodes[1].run("ip", "route", "replace", f"{address}/32", "dev", "eth0", "src",
                          "10.78.0.11")
        return runs, address, port

    def finish(self, runs):
        self.end.touch()
        self.assert_done(runs, jobs.OK, 30)

    def said_of_connections(self, run):
        return [line for line in jobs.own_lines(run) if "connection from" in line]


class Access(Knocks):
    """Which addresses may use the master store of a job without a token."""

    refused = r"refused a connection from {0}, which no node of the round has announced; if it is " \
              r"yours, name it on node rank 0: --store-allow=members,{0}"

    def test_a_stranger_is_refused_with_one_line_and_members_are_served(self):
        runs, address, port = self.job()
        self.knock(self.nodes[2], address, port, "closed")
        self.knock(self.nodes[1], address, port, "served")
        self.knock(self.nodes[0], "127.0.0.1", port, "served")
        self.finish(runs)
        self.assertEqual(len(self.said_of_connections(runs[0])), 1, str(runs[0]))
        self.assert_said(runs[0], self.refused.format(self.nodes[2].ip))

    def test_a_member_is_served_whichever_of_its_addresses_it_comes_from(self):
        runs, address, port = self.job_with_a_second_address()
        self.knock(self.nodes[1], address, port, "served")
        self.finish(runs)
        self.assertEqual(self.said_of_connections(runs[0]), [], str(runs[0]))

    def test_all_are_served_where_it_is_asked_for(self):
        runs, address, port = self.job("--store-allow=all")
        self.knock(self.nodes[2], address, port, "served")
        self.finish(runs)
        self.assertEqual(self.said_of_connections(runs[0]), [], str(runs[0]))

    def test_who_is_named_besides_the_members_is_served(self):
        runs, address, port = self.job("--store-allow", f"members,{self.nodes[2].ip}/32")
        self.knock(self.nodes[2], address, port, "served")
        self.finish(runs)
        self.assertEqual(self.said_of_connections(runs[0]), [], str(runs[0]))

    def test_the_static_forms_one_port_knows_its_members_too(self):
        form = ("--master-addr", "node0", "--master-port", 29777)
        runs, address, port = self.job(form=form)
        self.knock(self.nodes[2], address, port, "closed")
        self.knock(self.nodes[1], address, port, "served")
        self.finish(runs)

    def test_it_serves_at_master_addr_and_no_other_address(self):
        runs, address, port = self.job()
        self.assertEqual(address, self.nodes[0].ip)
        self.knock(self.nodes[1], self.nodes[0].ip6, port, "closed")
        self.knock(self.nodes[1], address, port, "served")
        self.finish(runs)
        self.assert_said(runs[0], "the store serves MASTER_ADDR, which is " + address)


class Vouched(Knocks):
    """With a token agents say whose a connection is. The job is root's, and another user of its
    hosts tries to use its store."""

    secret = {"HLAUNCH_TOKEN": lab.TOKEN}
    OTHER = 54321

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be two users")
        super().setUp()

    def assert_only_the_jobs_user_is_served(self, address, port):
        self.knock(self.nodes[1], address, port, "served")
        self.knock(self.nodes[1], address, port, "closed", self.OTHER)
        self.knock(self.nodes[0], address, port, "served")
        self.knock(self.nodes[0], "127.0.0.1", port, "closed", self.OTHER)
        self.knock(self.nodes[0], address, port, "closed", self.OTHER)
        self.knock(self.nodes[2], address, port, "closed")

    def test_another_user_of_its_hosts_is_refused_with_one_line_for_each_address(self):
        runs, address, port = self.job()
        self.assert_only_the_jobs_user_is_served(address, port)
        self.finish(runs)
        said = self.said_of_connections(runs[0])
        self.assertEqual(len(said), 4, str(runs[0]))
        self.assert_said(runs[0], f"refused a connection from {self.nodes[1].ip}: it is of the "
                         f"user {self.OTHER} there, who is not the job's; if it is yours, name it "
                         f"on node rank 0: --store-allow=members,{self.nodes[1].ip}",
                         "refused a connection from 127.0.0.1, since the store is for this job's "
                         f"user: a connection of the user {self.OTHER}; to serve all users there: "
                         "--store-allow=members,127.0.0.1")

    def test_a_users_job_serves_him_and_root(self):
        for folder in self.lab.folder, *(node.folder for node in self.nodes):
            folder.chmod(0o777)
        runs, address, port = self.job(user=self.OTHER)
        for node in self.nodes[:2]:
            self.knock(node, address, port, "served", self.OTHER)
            self.knock(node, address, port, "served")
            self.knock(node, address, port, "closed", self.OTHER + 1)
        self.finish(runs)

    def test_the_static_forms_one_port_knows_users_too(self):
        runs, address, port = self.job(form=("--master-addr", "node0", "--master-port", 29777))
        self.assert_only_the_jobs_user_is_served(address, port)
        self.finish(runs)

    def test_all_users_of_a_named_address_are_served(self):
        runs, address, port = self.job(f"--store-allow=members,127.0.0.0/8,{self.nodes[1].ip}")
        self.knock(self.nodes[1], address, port, "served", self.OTHER)
        self.knock(self.nodes[0], "127.0.0.1", port, "served", self.OTHER)
        self.knock(self.nodes[0], address, port, "closed", self.OTHER)
        self.finish(runs)

    def test_all_users_of_its_hosts_are_served_where_it_is_asked_for(self):
        runs, address, port = self.job("--any-user")
        for node in self.nodes[:2]:
            self.knock(node, address, port, "served", self.OTHER)
        self.knock(self.nodes[2], address, port, "closed")
        self.finish(runs)

    def test_another_user_is_refused_at_a_nodes_proxy(self):
        runs, _, port = self.job("--store-proxy", addresses={self.nodes[0].ip, "127.0.0.1"})
        self.knock(self.nodes[1], "127.0.0.1", port, "served")
        self.knock(self.nodes[1], "127.0.0.1", port, "closed", self.OTHER)
        self.finish(runs)
        self.assert_said(runs[1], "store proxy: refused a connection, since it is for this job's "
                         f"user: a connection of the user {self.OTHER}")

    def test_an_agent_answers_for_all_addresses_of_its_host(self):
        runs, address, port = self.job_with_a_second_address()
        self.knock(self.nodes[1], address, port, "served")
        self.knock(self.nodes[1], address, port, "closed", self.OTHER)
        self.finish(runs)

    def test_all_of_an_address_that_is_translated_are_served_and_it_is_said(self):
        if not shutil.which("iptables"):
            self.skipTest("no iptables here")
        node, translated = self.nodes[1], lab.SUBNET + ".50"
        node.run("ip", "address", "add", f"{translated}/24", "dev", "eth0")
        rule = node.run("iptables", "-t", "nat", "-A", "POSTROUTING", "-p", "tcp", "-s", node.ip,
                        "-j", "SNAT", "--to-source", translated)
        if rule.code != 0:
            self.skipTest(f"no network address translation here: {rule.err}")
        runs, address, port = self.job()
        self.knock(node, address, port, "served")
        self.knock(node, address, port, "served", self.OTHER)
        self.knock(self.nodes[2], address, port, "closed")
        self.finish(runs)
        self.assert_said(runs[0], f"addresses are translated on the way from {translated}, so "
                         "nobody can say whose a connection is")

    def test_the_next_round_asks_as_well(self):
        runs, address, port = self.job("--max-restarts", 1, "--shutdown-timeout", 1)
        worker = next(pid for pid, words in self.nodes[1].processes().items()
                      if "e2e_worker" in words and not words.startswith(str(lab.BIN)))
        self.nodes[1].run("kill", "-9", worker)
        facts = self.wait_for_workers(runs, 4)[-1]
        self.assert_only_the_jobs_user_is_served(facts["MASTER_ADDR"], facts["MASTER_PORT"])
        self.finish(runs)
        self.assertNotIn("lost the master store", self.told(runs))

    def test_who_comes_while_its_agent_stands_still_is_served_once_that_goes_on(self):
        runs, address, port = self.job()
        agent = jobs.agent_of(runs[1])
        os.kill(agent, signal.SIGSTOP)
        knock = self.nodes[1].start(*self.as_user(0), PORTS, "knock", address, port)
        knock.wait_for("asked")
        self.assertNotIn("served", knock.out)
        os.kill(agent, signal.SIGCONT)
        self.assertEqual(knock.wait(30), 0, str(knock))
        self.assertEqual(knock.out.count(f"{address} served\n"), 2, str(knock))
        self.finish(runs)
        self.assertEqual(self.said_of_connections(runs[0]), [], self.told(runs))


class Limits(jobs.JobTest):
    count = 1

    def large(self, size, *options):
        run = self.start("--no-python", PORTS, "large", size, options=options)[0]
        self.assert_done([run], jobs.OK, 30)
        return run

    def test_a_value_over_the_limit_is_refused_with_the_option_that_raises_it(self):
        run = self.large(9 << 20, "--master-store", "agent")
        self.assertIn(f"{9 << 20} closed", run.out, str(run))
        self.assert_said(run, "9437184, at most 8388608; raise it with --store-max-value")
        run = self.large(9 << 20, "--store-max-value", "16M")
        self.assertIn(f"{9 << 20} served", run.out, str(run))


if __name__ == "__main__":
    lab.main()
