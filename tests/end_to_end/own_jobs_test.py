#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""One's own jobs are found: commands without an endpoint ask the jobs of this user on this host."""

import contextlib
import json
import os
import signal

import jobs
import lab

STOPPED = 128 + signal.SIGTERM
NOBODY = 65534


class OwnJobTest(jobs.JobTest):
    """Sockets of jobs are abstract, and each node has its own network: it sees its own jobs alone."""

    def env(self):
        return {"PYTHON_EXEC": jobs.PYTHON, "XDG_STATE_HOME": self.nodes[0].folder / "state"}

    def job(self, name, *options, node=0):
        """Starts a job of one node, with two workers that sleep."""
        run = self.nodes[node].start(lab.HLAUNCH, "--rdzv-id", name, "--nproc-per-node", 2,
                                     "--shutdown-timeout", 1, *options, jobs.WORKER, "env", "sleep",
                                     600, env=self.env())
        self.wait_for_workers([run], 2)
        return run

    def says(self, pattern, *words, code=0, node=0, before=()):
        run = self.nodes[node].run(*before, lab.HLAUNCH, *words, env=self.env(), timeout=60)
        self.assertEqual(run.code, code, str(run))
        if pattern:
            self.assertRegex(run.out + run.err, pattern, str(run))
        return run.out

    def end(self, *runs):
        for run in runs:
            run.signal(signal.SIGTERM)
        self.assert_done(list(runs), (STOPPED, *jobs.OWN_CODES), 30)


class OwnJobs(OwnJobTest):
    """Jobs of one node: nothing but their process could answer."""

    count = 1

    def test_the_only_job_is_found_by_every_command(self):
        run = self.job("ann")
        self.says(r"(?m)^ann +running .*--rdzv-id ann", "ps")
        self.assertEqual(json.loads(self.says("", "ps", "--json"))["jobs"][0]["job_id"], "ann")
        self.says(r"job +ann\nstate +running\n(.*\n)+.*node0 .* 2 +running", "status")
        self.assertEqual(json.loads(self.says("", "status", "ann", "--json"))["world_size"], 2)
        self.assertEqual(json.loads(self.says("", "status", "--json"))["total_jobs"], 1)
        self.says(r"job ann, round 1: 2 workers\n", "why")
        self.says(r"job ann, round 1: 2 workers\n(.*\n)*rank", "why", "ann", "--rank", "1")
        self.assertEqual(json.loads(self.says("", "why", "--json"))["world_size"], 2)
        self.says(r"--rank 7: round 1 has 2 ranks", "why", "--rank", "7", code=jobs.USAGE)
        self.says(r"job ann, round 1: 2 workers\n\n(.*\n)*ranks? 0", "stacks")
        self.says(r"the output of job ann goes to .*--log-dir DIR.*--detach", "logs",
                  code=jobs.REFUSED)
        self.says(r"job ann was started without --detach", "attach", code=jobs.REFUSED)
        # Elsewhere than on a terminal `top` prints what is there, and ends with the job.
        top = self.nodes[0].start(lab.HLAUNCH, "top", env=self.env())
        self.assertTrue(lab.poll(lambda: "ann" in top.out, 30), str(top))
        page = self.nodes[0].folder / "page.html"
        self.says("", "status", "ann", "--html", page)
        self.assertIn("ann", page.read_text(encoding="utf-8"))
        self.says("runs without --detach .*: hlaunch stop ann ends that one", "stop",
                  code=jobs.REFUSED)
        self.says("stopped\njob ann", "stop", "ann")
        self.assertEqual(run.wait(30), STOPPED, str(run))
        self.assertEqual(top.wait(60), 0, str(top))
        self.says("no job of yours runs on this host", "ps")
        self.assert_nothing_left()

    def test_none_is_found_and_it_says_where_else_to_look(self):
        for word in ("why", "stacks", "top"):
            self.says("no job of yours runs on this host.*--rdzv-endpoint HOST.*hlaunch ps", word,
                      code=jobs.REFUSED)
        self.says("no job ann of yours runs on this host.*--rdzv-endpoint HOST", "why", "ann",
                  code=jobs.REFUSED)
        self.says("no job of yours runs on this host", "status")
        self.says("no detached job of yours runs here", "logs", code=jobs.REFUSED)

    def test_of_two_jobs_one_must_be_named_and_a_killed_one_is_gone(self):
        ann = self.job("ann")
        bob = self.job("bob", "--log-dir", self.nodes[0].folder / "logs", "--tee", "3")
        for word in ("why", "stacks", "logs"):
            self.says(rf"which job is meant\? Name one, as in hlaunch {word} bob:\n +JOB.*\n +bob .*"
                      r"\n +ann ", word, code=jobs.USAGE)
        self.assertEqual(json.loads(self.says("", "status", "--json"))["total_jobs"], 2)
        self.says(r"(?m)^bob +running .*\nann +running", "status")
        self.says("job ann, round 1", "why", "ann")
        self.says(r"job bob keeps its output in .*/logs/bob_.*:\n(.*\n)* +attempt_0/0/stdout.log\n",
                  "logs", "bob")
        # Nothing of a killed job is left, so the other one is the only one.
        agent = jobs.agent_of(ann)
        os.kill(ann.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):  # Without its keeper it ends by itself.
            os.kill(agent, signal.SIGKILL)
        self.assertTrue(lab.poll(lambda: not lab.children(agent) and ann.process.poll() is not None,
                                 20), str(ann))
        self.says("job bob, round 1", "why")
        self.says("stopped", "kill", "bob")
        self.assert_done([bob], (STOPPED, 128 + signal.SIGINT, *jobs.OWN_CODES), 30)

    def test_of_two_jobs_of_one_name_none_is_stopped(self):
        runs = [self.job("ann"), self.job("ann")]
        self.says(r"(?m)^ann +running .*\nann +running", "ps")
        for word in ("stop", "kill", "why"):
            self.says(r"2 jobs with the name ann run here \(pids \d+, \d+\)", word, "ann", code=jobs.USAGE)
        self.assertEqual([run.process.poll() for run in runs], [None, None])
        self.end(*runs)

    def test_a_job_that_ctrl_z_stopped_is_ended(self):
        run = self.job("ann")
        os.kill(run.pid, signal.SIGSTOP)
        self.says("stopped\njob ann", "stop", "ann")
        os.kill(run.process.pid, signal.SIGCONT)  # The lab's own process stopped with it.
        self.assertEqual(run.wait(30), STOPPED, str(run))

    def test_a_job_that_stands_still_is_told_of(self):
        run = self.job("ann")
        agent = jobs.agent_of(run)
        os.kill(agent, signal.SIGSTOP)
        self.says(r"a job that does not answer: pid \d+", "ps")
        for word in ("why", "logs", "stop"):
            self.says(r"a job that does not answer: pid \d+", word, "ann", code=jobs.REFUSED)
        os.kill(agent, signal.SIGCONT)
        self.end(run)

    def test_another_user_finds_and_asks_nothing_and_root_asks_all(self):
        run = self.job("ann")
        as_nobody = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
        self.says("no job of yours runs on this host", "ps", before=as_nobody)
        self.says("no job ann of yours runs on this host", "why", "ann", before=as_nobody,
                  code=jobs.REFUSED)
        # Whoever finds the socket's name by himself is not answered.
        ask = ("import socket, re; name = re.search(r'@(hlaunch-job/\\S+)', open('/proc/net/unix')"
               ".read()).group(1); s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + name); "
               "print('heard', s.recv(1))")
        strange = self.nodes[0].run(*as_nobody, jobs.PYTHON, "-c", ask, timeout=60)
        self.assertRegex(strange.out + strange.err, r"heard b''|reset", str(strange))
        self.says("job ann, round 1", "why")
        # Nor does he keep the owner waiting who knocks all the time, forty times at once.
        knock = ("import socket, re, threading; name = re.search(r'@(hlaunch-job/\\S+)', open("
                 "'/proc/net/unix').read()).group(1)\n"
                 "def knock():\n while True:\n  s = socket.socket(socket.AF_UNIX)\n  try:\n"
                 "   s.connect(chr(0) + name); s.recv(1)\n  except OSError: pass\n"
                 "for _ in range(40): threading.Thread(target=knock, daemon=True).start()\n"
                 "print('knocks', flush=True); threading.Event().wait(120)")
        stranger = self.nodes[0].start(*as_nobody, jobs.PYTHON, "-c", knock)
        self.assertTrue(lab.poll(lambda: "knocks" in stranger.out, 30), str(stranger))
        answered = lab.poll(lambda: self.nodes[0].run(lab.HLAUNCH, "why", env=self.env(),
                                                      timeout=60).code == 0, 20)
        self.assertTrue(answered, str(run))
        stranger.signal(signal.SIGKILL)
        stranger.wait(30)
        self.end(run)

    def test_a_detached_job_of_one_node_is_asked_too(self):
        run = self.nodes[0].run(lab.HLAUNCH, "--detach", "--rdzv-id", "eve", "--shutdown-timeout", 1,
                                jobs.WORKER, "env", "sleep", 600, env=self.env(), timeout=60)
        self.assertEqual(run.code, 0, str(run))
        self.says("job eve, round 1: 1 worker", "why")
        self.says("job +eve\nstate +running\nwhy ", "status", "eve")
        listed = json.loads(self.says("", "ps", "--json"))["jobs"]
        self.assertEqual([job["job_id"] for job in listed], ["eve"])
        self.assertTrue(listed[0]["log"].endswith("/eve/log"), listed)
        self.says("stopped", "stop")
        self.assert_nothing_left()


class OwnJobsOfTwoNodes(OwnJobTest):
    """Each node of a job is found on its own host, and asks the job's rendezvous."""

    count = 2

    def test_a_command_on_either_host_finds_the_whole_job(self):
        runs = self.start(jobs.WORKER, "env", "sleep", 600, env={"HLAUNCH_TOKEN": lab.TOKEN},
                          options=["--rdzv-id", "ann", "--shutdown-timeout", 1])
        self.wait_for_workers(runs, 2)
        for node in (0, 1):
            self.says(r"(?m)^ann +running ", "ps", node=node)
            self.says(r"job +ann\nstate +running\n(.*\n)+.*node1 .*running", "status", node=node)
            self.says("job ann, round 1: 2 workers\n", "why", node=node)
        self.says("job ann, round 1: 2 workers\n", "stacks", "ann", node=1)
        self.end(*runs)

    def test_two_agents_on_a_host_are_one_job(self):
        agents = [self.nodes[0].start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "localhost:29407",
                                      "--rdzv-id", "twin", "--shutdown-timeout", 1, jobs.WORKER, "env",
                                      "sleep", 600, env=self.env()) for _ in range(2)]
        self.wait_for_workers(agents, 2)
        listed = json.loads(self.says("", "ps", "--json"))
        self.assertEqual([job["job_id"] for job in listed["jobs"]], ["twin"], listed)
        self.says("job twin, round 1: 2 workers\n", "why")
        self.says("stopped", "stop", "twin")
        self.assert_done(agents, (STOPPED, *jobs.OWN_CODES), 30)


if __name__ == "__main__":
    lab.main()
