#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An own cluster: users start jobs on its hosts and cannot touch each other's jobs, and the death
of a daemon disturbs no job."""

import json
import os
import pathlib
import re
import signal
import time
import unittest

import jobs
import lab
import own_cluster_lab

STOPPED = 128 + signal.SIGTERM
ROUNDS = int(os.environ.get("HLAUNCH_KILLS", "4"))  # Deaths of each daemon.


class ClusterTest(lab.LabTest):
    """A cluster of `count` hosts, with the head on node0."""

    count, settings, forms = 3, "", True

    def setUp(self):
        if reason := own_cluster_lab.missing():
            self.skipTest(reason)
        super().setUp()
        self.cluster = own_cluster_lab.OwnCluster(self.lab, self.settings)
        self.addCleanup(self.cluster.close)
        self.addCleanup(self.lab.close)  # This runs before the cluster's close.
        if self.forms:
            self.cluster.form()

    def submit(self, name, index, *words, **options):
        """Submits a job with --detach; returns its number."""
        run = self.cluster.as_user(name, index, "--detach", *words, **options)
        self.assertEqual(run.code, 0, f"{run}\n{self.cluster.told()}")
        self.assertRegex(run.out, r"\A\d+\n\Z", str(run))
        return run.out.strip()

    def job(self, number, name="eve"):
        """What `ps` prints about a job, to an administrator by default, who sees all jobs."""
        found = [job for job in self.cluster.json(name, 0, "ps", "-a", "-e")["jobs"]
                 if job["number"] == int(number)]
        self.assertEqual(len(found), 1, number)
        return found[0]

    def await_state(self, number, *states, timeout=20):
        lab.poll(lambda: self.job(number)["state"] in states, timeout, 0.1)
        job = self.job(number)
        self.assertIn(job["state"], states, f"{job}\n{self.cluster.told()}")
        return job

    def ranks(self, run, count, timeout=20):
        """Waits until `count` ranks have printed their line in a command; [(rank, pid)]."""
        def said():
            return sorted({(int(rank), int(pid)) for rank, pid in
                           re.findall(r"rank (\d+) of \d+ pid (\d+)", run.out)})
        lab.poll(lambda: len(said()) >= count or run.process.poll() is not None, timeout)
        self.assertEqual([rank for rank, _ in said()], list(range(count)),
                         f"{run}\n{self.cluster.told()}")
        return said()

    def refused(self, name, index, *words, says=".", **options):
        """The command fails with this message."""
        run = self.cluster.as_user(name, index, *words, **options)
        self.assertNotEqual(run.code, 0, str(run))
        self.assertRegex(run.err, says, str(run))
        return run

    def home(self, name):
        return self.cluster.home / name

    def interrupt(self, run):
        """Interrupts a command as Ctrl-C does."""
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(30), 128 + signal.SIGINT, str(run))

    def end_of(self, number, code):
        job = self.await_state(number, "ended", timeout=30)
        self.assertEqual(job["exit_code"], code, f"{job}\n{self.cluster.told()}")
        return job


class Jobs(ClusterTest):
    """What a user can do with jobs."""

    def test_a_job_is_followed_from_any_host(self):
        run = self.cluster.user("ann", 1, "--nnodes", 2, "--nproc-per-node", 2, "tick.py", 5)
        self.assertEqual(run.wait(30), 0, f"{run}\n{self.cluster.told()}")
        self.ranks(run, 4)
        for rank in range(4):
            self.assertRegex(run.out, rf"(?m)^\[{rank}\] tick 4$")

    def test_the_exit_code_is_the_jobs(self):
        run = self.cluster.user("ann", 2, "--nnodes", 3, "tick.py", 1, 7)
        self.assertEqual(run.wait(30), 7, f"{run}\n{self.cluster.told()}")

    def test_ctrl_c_stops_it(self):
        run = self.cluster.user("ann", 0, "--nnodes", 2, "tick.py")
        self.ranks(run, 2)
        self.interrupt(run)
        self.assertEqual(self.cluster.json("ann", 0, "ps")["jobs"], [])

    def test_a_detached_job_is_listed_read_and_stopped(self):
        number = self.submit("ann", 1, "--nnodes", 2, "tick.py")
        follows = self.cluster.user("ann", 2, "logs", number, "-f")
        self.ranks(follows, 2)
        job = self.await_state(number, "running")
        self.assertEqual(job["user"], "ann")
        self.assertEqual(len(job["parts"]), 2, job)
        listed = self.cluster.as_user("ann", 0, "ps")
        self.assertRegex(listed.out, rf"(?m)^ *{number} +ann .*running")
        # `status` without a job says the same.
        stands = self.cluster.as_user("ann", 0, "status")
        self.assertRegex(stands.out, rf"(?m)^ *{number} +ann .*running")
        self.assertEqual(self.cluster.as_user("ann", 0, "stop", number).code, 0)
        self.end_of(number, STOPPED)
        self.assertEqual(follows.wait(20), 0, str(follows))
        # The log can be read after the end too.
        read = self.cluster.as_user("ann", 0, "logs", number)
        self.assertEqual(read.code, 0, str(read))
        self.assertIn("tick 0", read.out)

    def test_kill_ends_it_at_once(self):
        number = self.submit("ann", 1, "--nnodes", 2, "--no-python", "sh", "-c", "trap '' TERM; sleep 600")
        self.await_state(number, "running")
        self.assertEqual(self.cluster.as_user("ann", 2, "kill", number).code, 0)
        self.end_of(number, 128 + signal.SIGKILL)

    def test_a_job_that_waits_says_for_what(self):
        first = self.submit("ann", 0, "--nnodes", 3, "--exclusive", "tick.py")
        self.await_state(first, "running")
        second = self.submit("bob", 1, "--nnodes", 2, "--nproc-per-node", 4, "tick.py")
        job = self.await_state(second, "waiting")
        self.assertRegex(job["why"], "needs 2 nodes")
        self.assertEqual(self.cluster.as_user("ann", 0, "stop", first).code, 0)
        self.await_state(second, "running", timeout=30)
        self.assertEqual(self.cluster.as_user("bob", 0, "stop", second).code, 0)
        self.await_state(second, "ended")

    def test_what_can_never_run_is_refused_at_once(self):
        for words, why in ((("--nnodes", 4), "needs 4 nodes .*3 could have them"),
                           (("--cluster", "hlaunchd", "--nproc-per-node", 99), "99 slots; none could have them")):
            run = self.cluster.as_user("ann", 0, "--detach", *words, "tick.py")
            self.assertEqual(run.code, 196, str(run))
            self.assertRegex(run.err, why)
        self.assertEqual(self.cluster.json("eve", 0, "ps", "-a", "-e")["jobs"], [])

    def test_a_drained_host_gets_no_job_and_says_why(self):
        drained = self.cluster.root(0, "drain", "node2", "--reason", "ECC errors")
        self.assertEqual(drained.code, 0, str(drained))
        host = self.cluster.hosts()["node2"]
        self.assertEqual((host["state"], host["why"]), ("drained", "ECC errors"))
        number = self.submit("ann", 2, "--nnodes", 3, "tick.py")
        job = self.await_state(number, "waiting")
        self.assertRegex(job["why"], "node2 is drained: ECC errors")
        self.refused("ann", 0, "undrain", "node2", says="admin")
        self.assertEqual(self.cluster.root(0, "undrain", "node2").code, 0)
        self.await_state(number, "running")
        self.assertEqual(self.cluster.as_user("ann", 0, "stop", number).code, 0)
        self.await_state(number, "ended")

    def test_undrain_disturbs_no_job(self):
        run = self.cluster.user("ann", 0, "--nodes", "node1,node2", "tick.py", 10**9)
        before = self.ranks(run, 2)
        number = self.cluster.json("ann", 0, "ps")["jobs"][0]["number"]
        drained = self.cluster.root(0, "drain", "node2", "--reason", "ECC errors")
        self.assertEqual(drained.code, 0, str(drained))
        self.assertEqual(self.cluster.root(0, "undrain", "node2").code, 0)
        time.sleep(3)  # The agent looks for its notice each second.
        lab.poll(lambda: self.job(number)["round"], 20, 0.1)
        job = self.await_state(number, "running")
        self.assertEqual((job["round"], job["restarts"]), (1, 0), f"{job}\n{run}")
        self.assertEqual(self.ranks(run, 2), before)
        self.assertEqual(self.cluster.hosts()["node2"]["state"], "busy", self.cluster.hosts())
        self.interrupt(run)


class CannotStart(ClusterTest):
    count, forms = 2, False

    def test_who_follows_is_told_the_cause(self):
        folder = self.home("ann") / "only-on-node0"
        folder.mkdir()
        folder.chmod(0o777)
        self.cluster.nodes[1].run("mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", f"/home/ann/{folder.name}")
        self.cluster.form()
        run = self.lab.nodes[0].start(*self.cluster.login("ann"), "sh", "-c", f"cd {folder.name} && exec \"$@\"", "sh",
                                      lab.HLAUNCH, "--nnodes", 2, "--no-python", "true")
        self.assertEqual(run.wait(60), jobs.CODES["NotStarted"], f"{run}\n{self.cluster.told()}")
        self.assertRegex(run.err, "job 1 was not started: node 1 .node1. .*: host node1: ", str(run))


class Strangers(ClusterTest):
    """Two users at once on shared hosts: neither can read, signal or stop the other's job."""

    def setUp(self):
        super().setUp()
        words = ("--nnodes", 3, "--nproc-per-node", 2, "-x", "SECRET", "tick.py", 10**9, 0)
        self.anns = self.submit("ann", 0, *words, "--password=annsword", env={"SECRET": "annssecret"})
        self.bobs = self.submit("bob", 1, *words, "--password=bobsword", env={"SECRET": "bobssecret"})
        for number in (self.anns, self.bobs):
            self.await_state(number, "running")

    def tearDown(self):
        for name, number in (("ann", self.anns), ("bob", self.bobs)):
            self.assertEqual(self.job(number)["state"], "running", self.cluster.told())
            self.assertEqual(self.cluster.as_user(name, 2, "stop", number).code, 0)
            self.await_state(number, "ended")
        super().tearDown()

    def test_nobody_stops_signals_or_reads_the_others_job(self):
        for index in range(3):
            for words in (("stop", self.anns), ("kill", self.anns), ("logs", self.anns),
                          ("attach", self.anns), ("why", self.anns), ("stacks", self.anns)):
                self.refused("bob", index, *words)

    def test_ps_tells_others_neither_command_nor_environment(self):
        listed = self.cluster.as_user("bob", 1, "ps", "-a", "--json")
        theirs = [job for job in json.loads(listed.out)["jobs"] if job["number"] == int(self.anns)]
        self.assertEqual(theirs[0]["user"], "ann")
        self.assertFalse(theirs[0].get("words"), theirs)
        for run in (listed, self.cluster.as_user("bob", 1, "ps", "-a")):
            self.assertNotIn("annssecret", run.out)
            self.assertNotIn("annsword", run.out)
        own = self.cluster.json("ann", 0, "ps")["jobs"]
        self.assertEqual([job["number"] for job in own], [int(self.anns)])
        self.assertIn("--password=annsword", own[0]["words"])

    def test_processes_and_files_are_closed(self):
        """Another user's process gets no signal, environment, memory or files of a job."""
        tries = 0
        for index, node in enumerate(self.nodes):
            for pid, words in node.processes().items():
                proc = pathlib.Path(f"/proc/{node.init}/root/proc/{pid}")
                if not words or self.uid(proc) != own_cluster_lab.USERS["ann"]:
                    continue
                tries += 1
                script = (f"kill -0 {pid} && echo GOT; cat /proc/{pid}/environ && echo GOT;"
                          f"cat /proc/{pid}/maps && echo GOT; ls /proc/{pid}/fd/ && echo GOT")
                tried = node.run(*self.cluster.login("bob"), "sh", "-c", script)
                self.assertNotIn("GOT", tried.out, f"{words}: {tried}")
                self.assertNotIn(lab.TOKEN, words)
            tried = node.run(*self.cluster.login("bob"), "sh", "-c",
                             "find /home/ann /run /var/lib /tmp -xdev -user ann -type f -readable "
                             "2>/dev/null")
            self.assertEqual(tried.out, "", index)
        self.assertGreater(tries, 2)

    @staticmethod
    def uid(proc):
        try:
            return proc.stat().st_uid
        except OSError:
            return -1

    def test_users_without_rights_touch_no_host(self):
        for words in (("drain", "node1", "--reason", "x"), ("cluster", "token"),
                      ("cluster", "throw-out", "node1")):
            self.refused("bob", 0, *words)
        # A member of the administrators' group may drain a host.
        self.assertEqual(self.cluster.as_user("eve", 1, "drain", "node1", "--reason", "x").code, 0)
        self.assertEqual(self.cluster.as_user("eve", 1, "undrain", "node1").code, 0)


class Deaths(ClusterTest):
    """The daemons are killed in turn while five jobs run. No worker notices."""

    def setUp(self):
        super().setUp()
        self.numbers, self.follows = {}, {}
        for number in range(5):
            name = ("ann", "bob")[number % 2]
            job = self.submit(name, number % 3, "--nnodes", 2 + number % 2, "tick.py")
            self.numbers[job] = name
        for job in self.numbers:
            self.await_state(job, "running")
        self.before = {job: self.await_ranks(job) for job in self.numbers}
        self.figures = own_cluster_lab.Figures()
        self.addCleanup(self.figures.tell)

    def ranks_of(self, job):
        return self.job(job)["max_nodes"]

    def await_ranks(self, job):
        """Returns what the job's log has once all ranks have printed their first line. The state is
        "running" as soon as one rank has."""
        count = self.ranks_of(job)
        lab.poll(lambda: len(self.said(job)[0]) == count, 20, 0.2)
        said = self.said(job)
        self.assertEqual(len(said[0]), count, f"{job}: {said[0]}\n{self.cluster.told()}")
        return said

    def said(self, job):
        """(pids of the ranks, {rank: its ticks}) from the job's log."""
        run = self.cluster.as_user(self.numbers[job], 0, "logs", job)
        self.assertEqual(run.code, 0, str(run))
        pids = sorted(re.findall(r"(?m)^\[(\d+)\] rank \d+ of \d+ pid (\d+)$", run.out))
        ticks = {}
        for rank, tick in re.findall(r"(?m)^\[(\d+)\] tick (\d+)$", run.out):
            ticks.setdefault(int(rank), []).append(int(tick))
        return pids, ticks

    def assert_undisturbed(self):
        for job in self.numbers:
            (pids, ticks), (before, _) = self.said(job), self.before[job]
            self.assertEqual(len(pids), self.ranks_of(job), f"{job}: {pids}\n{self.cluster.told()}")
            self.assertEqual(pids, before)
            for rank, counted in ticks.items():
                self.assertEqual(counted, list(range(len(counted))), f"job {job}, rank {rank}")

    def assert_ps_is_right(self, what, since, *indices):
        """`ps` is right on these hosts; records how long after `since` that is."""
        wanted = {int(job): ("running", name) for job, name in self.numbers.items()}

        def listed(index):
            run = self.cluster.as_user("eve", index, "ps", "-a", "--json")
            if run.code != 0:
                return run.err
            return {job["number"]: (job["state"], job["user"]) for job in json.loads(run.out)["jobs"]}
        for where, index in indices:
            right = self.figures.wait(f"{what}: ps is right on {where}", since,
                                      lambda index=index: listed(index) == wanted, 5)
            self.assertTrue(right, f"{listed(index)}, wanted {wanted}\n{self.cluster.told()}")

    def die(self, which):
        died = 0 if which == "head" else which
        what = "the head is killed" if which == "head" else "a daemon is killed"
        for _ in range(ROUNDS):
            since = time.monotonic()
            self.cluster.kill(which)
            self.cluster.start(which)
            self.assert_ps_is_right(what, since, ("another host", (died + 1) % self.count), ("its host", died))
        self.cluster.await_all_here()
        self.assert_undisturbed()

    def test_node_daemons_die(self):
        for index in range(self.count):
            self.die(index)
        self.end()

    def test_the_head_dies(self):
        self.die("head")
        self.end()

    def test_the_head_is_off_for_a_while(self):
        self.cluster.kill("head")
        job = next(iter(self.numbers))
        ticks = self.last_tick(job)
        self.assertTrue(lab.poll(lambda: self.last_tick(job) > ticks + 20, 10, 0.2))
        since = time.monotonic()
        self.cluster.start("head")
        self.assert_ps_is_right("the head starts", since, ("another host", 1), ("its host", 0))
        self.cluster.await_all_here()
        self.assert_undisturbed()
        self.end()

    def last_tick(self, job):
        """Reads the log folders of the job's parts, since there is no head to ask."""
        logs = [node.folder / "spool/hlaunch" / job / "job/log" for node in self.nodes]
        said = [log.read_text(encoding="utf-8", errors="replace")[-4000:] for log in logs if log.exists()]
        return max((int(tick) for text in said for tick in re.findall(r"tick (\d+)", text)), default=0)

    def end(self):
        """All jobs end when their users stop them, and only the daemons are left."""
        for job, name in self.numbers.items():
            run = self.cluster.as_user(name, 1, "stop", job)
            self.assertEqual(run.code, 0, f"{run}\n{self.cluster.told()}")
            self.end_of(job, STOPPED)
        for index, node in enumerate(self.nodes):
            left = lab.poll(lambda node=node: not self.jobs_processes(node), 10)
            self.assertTrue(left, f"node{index}: {self.jobs_processes(node)}")

    @staticmethod
    def jobs_processes(node):
        return {pid: words for pid, words in node.processes().items()
                if "tick.py" in words or "hlaunch-holder" in words}


class HostsGo(ClusterTest):
    """A host loses its power and comes back."""

    def test_a_host_that_was_off_takes_jobs_again(self):
        number = self.submit("ann", 0, "--nodes", "node1,node2", "--nnodes", 2, "tick.py")
        self.await_state(number, "running")
        self.cluster.reboot(2)
        self.assertTrue(lab.poll(lambda: self.cluster.hosts()["node2"]["state"] == "away", 30, 0.2))
        self.cluster.start(2)
        self.cluster.await_connected(2)
        self.assertEqual(self.cluster.as_user("ann", 0, "stop", number).code, 0)
        self.await_state(number, "ended", timeout=60)
        run = self.cluster.user("ann", 0, "--nodes", "node2", "tick.py", 3)
        self.assertEqual(run.wait(30), 0, f"{run}\n{self.cluster.told()}")

    def test_logs_that_lack_a_hosts_output_say_so_and_end_with_3(self):
        number = self.submit("ann", 0, "--nodes", "node1,node2", "--nnodes", 2, "tick.py", 1)
        self.end_of(number, 0)
        whole = self.cluster.as_user("ann", 0, "logs", number)
        self.assertEqual(whole.code, 0, str(whole))
        self.assertRegex(whole.out, r"rank 0 (.|\n)*rank 1 |rank 1 (.|\n)*rank 0 ")
        self.cluster.reboot(2)
        self.assertTrue(lab.poll(lambda: self.cluster.hosts()["node2"]["state"] == "away", 30, 0.2))
        part = self.cluster.as_user("ann", 0, "logs", number)
        self.assertEqual(part.code, 3, str(part))
        self.assertRegex(part.err, "node2")
        self.assertNotRegex(part.err, "node1")
        self.assertRegex(part.out, "tick 0")  # The other host's.


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    lab.main()
