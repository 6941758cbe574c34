#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""How nodes meet: the printed command, one shared port, and everything that does not fit."""

import dataclasses
import os
import re
import signal
import sys

import jobs
import lab

WAITING = r"waiting .*node"


class Join(jobs.JobTest):
    def test_the_command_it_prints_works_on_the_other_node(self):
        node0, node1 = self.nodes
        path = f"{lab.BIN}:/usr/sbin:/usr/bin:/sbin:/bin"
        env = {"PATH": path, "PYTHON_EXEC": jobs.PYTHON}
        first = node0.start("hlaunch", "--nnodes", "2", jobs.WORKER, "env", env=env)
        said = first.wait_for(r"^.*?(hlaunch --nnodes.*e2e_worker\.py env)\s*$")
        self.assertIn("waiting", first.wait_for(WAITING).group(0))
        second = node1.start("sh", "-c", said.group(1), env=env)
        self.assert_done([first, second], jobs.OK, 20)
        self.assertEqual(len(jobs.environments(first) + jobs.environments(second)), 2)

    def test_a_taken_port_is_passed_over_when_nobody_named_one(self):
        node0, node1 = self.nodes
        taken = node0.start(sys.executable, "-c", "import socket, time\n"
                            "s = socket.create_server(('::', 29400), family=socket.AF_INET6,"
                            " dualstack_ipv6=True)\nprint('taken', flush=True)\ntime.sleep(60)")
        taken.wait_for("taken")
        env = {"PYTHON_EXEC": jobs.PYTHON}
        first = node0.start(lab.HLAUNCH, "--nnodes", "2", jobs.WORKER, "env", env=env)
        command = first.wait_for(r"(--nnodes.*--rdzv-endpoint\S* ?\S*:(\d+) .*env)\s*$")
        self.assertNotEqual(command.group(2), "29400")
        second = node1.start("sh", "-c", f"{lab.HLAUNCH} {command.group(1)}", env=env)
        taken.signal(signal.SIGKILL)
        self.assert_done([first, second], jobs.OK, 20)

    def test_static_form_shares_the_port_that_was_named_in_every_round(self):
        seen = self.lab.folder / "seen"
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--node-rank", node.index, "--master-addr",
                           "node0", "--master-port", "29777", "--max-restarts", "1",
                           "--health-interval", 0, jobs.WORKER, "env", "await", seen, "finish", "1",
                           "fail", "1", "7", "0", "sleep", "600",
                           env={"PYTHON_EXEC": jobs.PYTHON}) for node in self.nodes]
        self.wait_for_workers(runs, 2)
        listening = self.nodes[0].run("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6").out
        # Listeners on loopback do not count: hlaunch serves the start of MPI programs there. The
        # checks while workers run are off, since they listen, too, a few seconds after the start.
        ports = {int(port, 16) for port in re.findall(
            r": (?!0100007F)[0-9A-F]+:([0-9A-F]{4}) \S+ 0A ", listening)}
        self.assertEqual(ports, {29777})
        seen.touch()
        self.assert_done(runs, jobs.OK, 20)
        workers = [facts for run in runs for facts in jobs.environments(run)]
        self.assertEqual(len(workers), 4, self.told(runs))
        self.assertEqual({facts["MASTER_PORT"] for facts in workers}, {"29777"})

    def test_two_nodes_meet_by_the_variables_that_are_set_on_them(self):
        meet = {"MASTER_ADDR": "node0", "MASTER_PORT": "29777", "PYTHON_EXEC": jobs.PYTHON}
        ranked, unranked = [
            [node.start(lab.HLAUNCH, *words, jobs.WORKER, "env",
                        env={**meet, **(more(node.index))}) for node in self.nodes]
            for words, more in (((), lambda i: {"NODE_RANK": i, "NNODES": 2, "MASTER_PORT": 29778}),
                                (("--nnodes", 2), lambda i: {}))]
        for runs in (ranked, unranked):
            for run in runs:
                self.assertEqual(run.wait(20), jobs.OK, self.told(runs))
            told = [jobs.environments(run)[0] for run in runs]
            self.assertEqual([facts["NODE_RANK"] for facts in told], ["0", "1"], self.told(runs))
        alone = self.nodes[1].start(lab.HLAUNCH, "--nnodes", 2, jobs.WORKER, "env",
                                    env={"NODE_RANK": "1", "PYTHON_EXEC": jobs.PYTHON})
        self.assert_done([alone], jobs.USAGE, 5)
        self.assert_said(alone, "NODE_RANK is 1, .* set MASTER_ADDR to the first node's name")

    def test_the_order_of_ranks_is_the_order_of_names_not_of_arrival(self):
        second = self.start(jobs.WORKER, "env", nodes=self.nodes[1:])
        second[0].wait_for("waiting|cannot|connect|not answer", 5)
        first = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])
        self.assert_done(first + second, jobs.OK, 20)
        self.assertEqual(jobs.environments(first[0])[0]["RANK"], "0")

    def test_it_says_whom_it_waits_for_and_gives_up_in_time(self):
        runs = self.start(jobs.WORKER, "env", nodes=self.nodes[:1], options=["--join-timeout", "2"])
        self.assert_done(runs, jobs.JOIN_TIMEOUT, 10)
        self.assert_said(runs[0], r"1 of 2 nodes")

    def test_with_nobody_there_the_other_node_gives_up_in_time(self):
        runs = self.start(jobs.WORKER, "env", nodes=self.nodes[1:], options=["--join-timeout", "2"])
        self.assert_done(runs, jobs.BAD_ENDPOINT, 10)
        self.assert_said(runs[0], r"node0:29400")


@dataclasses.dataclass
class Misfit:
    """A second hlaunch that does not fit the job whose node0 is waiting."""

    name: str
    options: list
    code: object
    says: str
    env: dict = dataclasses.field(default_factory=dict)
    on: int = 1  # The node it starts on.


MISFITS = [
    Misfit("other job id", ["--nnodes", "2", "--rdzv-id", "other"], jobs.REFUSED,
           r"other.*mine|mine.*other"),
    Misfit("other job, same host", ["--nnodes", "2", "--rdzv-id", "other"],
           (jobs.REFUSED, jobs.PORT_IN_USE), r"29400|mine.*other", on=0),
    Misfit("other nnodes", ["--nnodes", "3", "--rdzv-id", "mine"], jobs.REFUSED, r"nnodes|nodes"),
    Misfit("wrong token", ["--nnodes", "2", "--rdzv-id", "mine"], jobs.REFUSED, r"token",
           {"HLAUNCH_TOKEN": lab.OTHER_TOKEN}),
    Misfit("no token", ["--nnodes", "2", "--rdzv-id", "mine"], jobs.REFUSED, r"token",
           {"HLAUNCH_TOKEN_FILE": "none"}),
]


@dataclasses.dataclass
class Unable:
    """A reason why a node cannot start though its options match the job's."""

    name: str
    command: list
    code: int
    says: str
    env: dict = dataclasses.field(default_factory=dict)


UNABLE = [
    Unable("no script", ["missing.py"], jobs.NOT_FOUND, r"missing\.py"),
    Unable("no interpreter", [jobs.WORKER, "env"], jobs.NOT_FOUND, r"/nowhere/python",
           {"PYTHON_EXEC": "/nowhere/python"}),
    Unable("no run bit", ["--no-python", "/etc/passwd"], jobs.NOT_EXECUTABLE, r"/etc/passwd"),
    Unable("bad value", ["--nproc-per-node", "many", jobs.WORKER, "env"], jobs.USAGE,
           r"--nproc-per-node 'many'"),
    Unable("unknown option", ["--bogus", jobs.WORKER, "env"], jobs.USAGE, r"--bogus"),
    Unable("no place for logs", ["--log-dir", "/proc/nowhere", jobs.WORKER, "env"], jobs.USAGE,
           r"/proc/nowhere"),
]


class CannotStart(jobs.JobTest):
    def test_who_waits_for_a_node_that_cannot_start_ends_at_once_with_its_cause(self):
        for unable in UNABLE:
            with self.subTest(unable.name):
                waiting = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])
                waiting[0].wait_for(WAITING)
                other = self.nodes[1].start(
                    lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint, *unable.command,
                    env={"PYTHON_EXEC": jobs.PYTHON, **unable.env})
                self.assert_done([*waiting, other], unable.code, 20)
                self.assert_said(waiting[0], "job failed: node1 cannot start: .*" + unable.says)
                self.assertEqual(len(jobs.said_at_once(other)), 1, str(other))

    def test_a_host_that_cannot_start_tells_who_waits_for_it(self):
        waiting = self.start(jobs.WORKER, "env", nodes=self.nodes[1:])
        waiting[0].wait_for("waiting .*node0:29400")
        host = self.start("missing.py", nodes=self.nodes[:1])
        self.assert_done(host + waiting, [jobs.NOT_FOUND, jobs.REFUSED], 20)
        self.assert_said(waiting[0], r"node0 cannot start: .*missing\.py")

    def test_where_others_may_come_it_is_named_and_the_job_waits_on(self):
        meet = ["--rdzv-endpoint", "node0:29400", "--nnodes", "2:3", "--last-call", "0"]
        env = {"PYTHON_EXEC": jobs.PYTHON}
        waiting = self.nodes[0].start(lab.HLAUNCH, *meet, jobs.WORKER, "env", env=env)
        waiting.wait_for(WAITING)
        other = self.nodes[1].start(lab.HLAUNCH, *meet, "missing.py", env=env)
        waiting.wait_for(r"node1 cannot start: .*missing\.py")
        self.assertEqual(other.wait(20), jobs.NOT_FOUND, str(other))
        other = self.nodes[1].start(lab.HLAUNCH, *meet, jobs.WORKER, "env", env=env)
        self.assert_done([waiting, other], jobs.OK, 20)

    def test_who_waits_for_a_node_whose_local_addr_is_not_known_hears_so(self):
        waiting = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])[0]
        waiting.wait_for(WAITING)
        other = self.start(jobs.WORKER, "env", nodes=self.nodes[1:],
                           options=["--local-addr", "nobody.invalid"])[0]
        waiting.wait_for(r"node1 cannot start: --local-addr nobody\.invalid: ")
        self.assertEqual(other.wait(20), jobs.BAD_ENDPOINT, str(other))
        fitting = self.start(jobs.WORKER, "env", nodes=self.nodes[1:])
        self.assert_done([waiting, *fitting], jobs.OK, 20)

    def test_who_waits_hears_of_a_node_that_is_refused(self):
        waiting = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])[0]
        waiting.wait_for(WAITING)
        for words, says in [(["--nnodes", 3], "--nnodes 2.* says 3"),
                            (["--nnodes", 2, "--rdzv-id", "b"], "the job at .* not 'b'")]:
            other = self.nodes[1].run(lab.HLAUNCH, *words, "--rdzv-endpoint", self.endpoint,
                                      "--no-python", "true")
            self.assertEqual(other.code, jobs.REFUSED, str(other))
            waiting.wait_for(r"node1 \(10\.77\.0\.11\) was refused: .*" + says)
        fitting = self.start(jobs.WORKER, "env", nodes=self.nodes[1:])
        self.assert_done([waiting, *fitting], jobs.OK, 20)


class Refusal(jobs.JobTest):
    def test_what_does_not_fit_is_told_at_once_and_the_job_goes_on(self):
        env = {"PYTHON_EXEC": jobs.PYTHON, "HLAUNCH_TOKEN": lab.TOKEN}
        meet = ["--rdzv-endpoint", "node0:29400"]
        fitting = [lab.HLAUNCH, "--nnodes", "2", "--rdzv-id", "mine", *meet, jobs.WORKER, "env"]
        first = self.nodes[0].start(*fitting, env=env)
        first.wait_for(WAITING)
        for misfit in MISFITS:
            with self.subTest(misfit.name):
                other = self.nodes[misfit.on].start(
                    lab.HLAUNCH, *misfit.options, *meet, jobs.WORKER, "env",
                    env={**env, **misfit.env})
                self.assertIn(other.wait(5), misfit.code if isinstance(misfit.code, tuple)
                              else (misfit.code,), str(other))
                self.assertEqual(len(jobs.said_at_once(other)), 1, str(other))
                self.assertRegex(other.err, misfit.says)
                self.assertEqual(self.nodes[1].left_over(), {})
        second = self.nodes[1].start(*fitting, env=env)
        self.assert_done([first, second], jobs.OK, 20)

    def test_a_port_of_another_program_is_named(self):
        server = self.nodes[0].start(
            sys.executable, "-c", "import socket, time\ns = socket.create_server(('::', 29400), "
            "family=socket.AF_INET6, dualstack_ipv6=True)\nprint('up', flush=True)\ntime.sleep(60)")
        server.wait_for("up")
        run = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])[0]
        self.assertEqual(run.wait(10), jobs.PORT_IN_USE, str(run))
        self.assertEqual(len(jobs.said_at_once(run)), 1, str(run))
        self.assertRegex(run.err, r"29400 .*\(python\S*, pid \d+\)")

    def test_a_rendezvous_that_stands_still_is_no_program_of_somebody_else(self):
        first, = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])
        first.wait_for(WAITING)
        agent, = [pid for pid in first.descendants() if lab.name_of(pid) == "hlaunch-agent"]
        os.kill(agent, signal.SIGSTOP)
        self.addCleanup(lambda: lab.name_of(agent) and os.kill(agent, signal.SIGCONT))
        second, = self.start(jobs.WORKER, "env", nodes=self.nodes[:1])
        second.wait_for("waiting 6 s for rendezvous")  # Others' programs are told after 5.
        os.kill(agent, signal.SIGCONT)
        self.assert_done([first, second], jobs.OK, 20)


if __name__ == "__main__":
    lab.main()
