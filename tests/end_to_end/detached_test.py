#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`--detach`: a job outlives its terminal, can be followed, and ends when its user stops it."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile

import hosts_test
import jobs
import lab

STOPPED = 128 + signal.SIGTERM


class Commands:
    """Runs `hlaunch attach`, `logs` and `stop` on node0; jobs are kept in a folder of the lab."""

    def env(self):
        return {"PYTHON_EXEC": jobs.PYTHON, "XDG_STATE_HOME": self.nodes[0].folder / "state"}

    def command(self, *words, **more):
        return self.nodes[0].start(lab.HLAUNCH, *words, env=self.env(), **more)

    def assert_says(self, pattern, *words, code=0):
        run = self.command(*words)
        self.assertEqual(run.wait(30), code, str(run))
        self.assertRegex(run.out + run.err, pattern, str(run))
        return run

    def detached(self, run, timeout=30):
        """The id that a command with --detach has printed."""
        self.assertEqual(run.wait(timeout), 0, str(run))
        self.assertRegex(run.out, r"\A\S+\n\Z", str(run))
        return run.out.strip()

    def holder(self):
        """The process that holds the job, as the test sees it."""
        found = lab.poll(lambda: [pid for pid in lab.descendants(self.nodes[0].init)
                                  if lab.name_of(pid) == "hlaunch-holder"], 10)
        self.assertEqual(len(found), 1)
        return found[0]

    def conductor(self):
        keeper = lab.children(self.holder())[0]
        return lab.children(keeper)[0]

    def kill_ssh(self, to=""):
        """Kills the job's ssh processes to this host (all hosts if `to` is empty). The end of
        one may end others."""
        found = [pid for pid in lab.descendants(self.holder())
                 if re.match(f"ssh .*{to}", lab.command_line(pid))]
        self.assertTrue(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class OnOneHost(Commands, jobs.JobTest):
    count = 1

    def test_a_job_is_followed_listed_and_stopped(self):
        run = self.command("--detach", "--rdzv-id", "ann", "--nproc-per-node", 2,
                           "--shutdown-timeout", 1, jobs.WORKER, "family", "env", "sleep", 600)
        self.assertEqual(self.detached(run), "ann", str(run))
        self.assertRegex(run.err, "hlaunch attach ann")
        follows, attached = self.command("logs", "-f"), self.command("attach", "--tail", "all")
        lines = self.command("logs", "-f", "--rank", 1)
        for each in (follows, attached):
            self.assertTrue(lab.poll(lambda: each.out.count("ENV") == 2, 20), str(each))
        self.assertTrue(lab.poll(lambda: "[1] ENV" in lines.out, 20), str(lines))
        for pid in [*lab.children(self.holder()), self.conductor()]:
            self.assertRegex(lab.name_of(pid), "^hlaunch(-keeper)?$")
            self.assertIn("--rdzv-id ann", lab.command_line(pid))
            self.assertNotIn("/proc/self/exe", lab.command_line(pid))
        self.assert_says("job +ann\nstate +running\nwhy ", "status")
        status = self.assert_says(".", "status", "ann", "--json")
        self.assertEqual(json.loads(status.out)["state"], "running")
        self.assert_says("ann +running", "ps")
        self.assert_says("a detached job ann is running", "--detach", "--rdzv-id", "ann", "x.py",
                         code=jobs.REFUSED)
        # Ctrl-C ends `attach` only, not the job.
        left = self.command("attach")
        self.assertTrue(lab.poll(lambda: "ENV" in left.out, 10), str(left))
        os.kill(left.pid, signal.SIGINT)
        self.assertEqual(left.wait(10), 128 + signal.SIGINT, str(left))
        self.assertRegex(left.err, "detached; job ann goes on")
        self.assert_says("stopped\njob +ann\nstate +ended, exit code 143", "stop")
        self.assertEqual(attached.wait(10), STOPPED, str(attached))
        self.assertEqual(follows.wait(10), 0, str(follows))
        self.assertEqual(lines.wait(10), 0, str(lines))
        self.assertNotIn("[0]", lines.out)
        self.assert_nothing_left()
        # After the end.
        self.assert_says("SIGTERM", "logs")
        self.assert_says("nothing to stop", "stop", "ann")
        self.assert_says("no detached job of yours runs", "stop", code=jobs.REFUSED)
        self.assert_says("ann +ended, exit code 143", "status")
        mode = (self.nodes[0].folder / "state/hlaunch/ann/log").stat().st_mode
        self.assertEqual(mode & 0o777, 0o600)

    def test_stop_names_a_holder_that_stands_still(self):
        self.detached(self.command("--detach", "--rdzv-id", "ann", jobs.WORKER, "env", "sleep", 600))
        holder = self.holder()
        os.kill(holder, signal.SIGSTOP)
        stop = self.command("stop", "ann")
        stop.wait_for(r"what holds job ann \(pid \d+\) does not answer: it is stopped, as by SIGSTOP; "
                      r"kill -CONT \d+ lets it end the job", 20)
        os.kill(holder, signal.SIGCONT)
        self.assertEqual(stop.wait(20), 0, str(stop))
        self.assert_nothing_left()

    def test_the_exit_code_is_the_jobs(self):
        go = self.nodes[0].folder / "go"
        run = self.command("--detach", jobs.WORKER, "env", "await", go, "fail", 0, 37, 0)
        job = self.detached(run)
        attached = self.command("attach")
        self.assertTrue(lab.poll(lambda: "ENV" in attached.out, 20), str(attached))
        go.touch()
        self.assertEqual(attached.wait(20), 37, str(attached))
        self.assertIn("planted failure of rank 0", attached.err)
        self.assertEqual(self.command("attach", job).wait(10), 37)
        self.assert_nothing_left()

    def test_an_empty_name_ends_no_job(self):
        self.detached(self.command("--detach", jobs.WORKER, "env", "sleep", 600))
        for word in ("stop", "kill", "logs", "why", "status"):
            self.assert_says("got an empty word", word, "", code=jobs.USAGE)
        self.assert_says("running", "status")
        # No time was given, so none was too short.
        run = self.assert_says("stopped\n", "kill")
        self.assertNotIn("in time", run.err)
        self.assert_says("ended, exit code 143", "status")

    def test_a_job_that_was_started_with_another_home_is_found(self):
        self.detached(self.command("--detach", "--rdzv-id", "ann", jobs.WORKER, "env", "sleep", 600))
        other = {"PYTHON_EXEC": jobs.PYTHON, "XDG_STATE_HOME": self.nodes[0].folder / "other"}
        for words, pattern in ((("logs", "ann"), "ENV"), (("logs",), "ENV"),
                               (("stop", "ann"), "stopped\njob +ann")):
            said = []
            def match():
                said.append(self.nodes[0].run(lab.HLAUNCH, *words, env=other, timeout=60))
                return said[-1].code == 0 and re.search(pattern, said[-1].out)
            self.assertTrue(lab.poll(match, 30), str(said[-1]))
        self.assert_nothing_left()

    def test_root_is_told_whose_a_detached_job_is(self):
        state = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # The lab's folders are root's alone.
        self.addCleanup(shutil.rmtree, state)
        state.chmod(0o777)
        run = self.nodes[0].run("setpriv", "--reuid=65534", "--clear-groups", lab.HLAUNCH, "--detach",
                                "--rdzv-id", "bob", "--no-python", "sleep", 600,
                                env={"XDG_STATE_HOME": state, "TMPDIR": state}, timeout=60)
        self.assertEqual(run.code, 0, str(run))
        self.assert_says("job bob is a detached job of user 65534.*sudo -u '#65534' hlaunch stop bob",
                         "stop", "bob", code=jobs.REFUSED)
        run = self.nodes[0].run("setpriv", "--reuid=65534", "--clear-groups", lab.HLAUNCH, "stop",
                                "bob", env={"HOME": ""}, timeout=60)
        self.assertRegex(run.out, "stopped", str(run))
        self.assert_nothing_left()

    def test_what_does_not_start_is_said_at_once(self):
        run = self.command("--detach", "--no-python", "/no/such/program")
        self.assertEqual(run.wait(20), jobs.NOT_FOUND, str(run))
        self.assertRegex(run.err, "/no/such/program")
        self.assertEqual(run.out, "")
        self.assert_says("--stdin", "--detach", "--stdin", "x.py", code=jobs.USAGE)
        self.assert_says("--hosts", "--detach", "--nnodes", 2, "--rdzv-endpoint", "a", "x.py",
                         code=jobs.USAGE)
        self.assert_nothing_left()

    def test_a_grace_ends_what_does_not(self):
        # The signal is ignored, as in a background process of a shell.
        run = self.nodes[0].start("env", "--ignore-signal=INT", lab.HLAUNCH, "--detach",
                                  "--shutdown-timeout", 300, jobs.WORKER, "stubborn", "env",
                                  "sleep", 600, env=self.env())
        self.detached(run)
        follows = self.command("logs", "-f")
        self.assertTrue(lab.poll(lambda: "ENV" in follows.out, 10), str(follows))
        self.assert_says("stopped", "stop", "--grace", 1)
        self.assert_nothing_left()

    def test_a_grace_ends_what_heard_both_signals_at_once(self):
        self.detached(self.command("--detach", "--shutdown-timeout", 300, jobs.WORKER, "stubborn",
                                   "env", "sleep", 600))
        follows = self.command("logs", "-f")
        self.assertTrue(lab.poll(lambda: "ENV" in follows.out, 10), str(follows))
        holder = self.holder()
        os.kill(holder, signal.SIGSTOP)
        stop = self.command("stop", "--grace", 1)
        self.assertTrue(lab.poll(lambda: self.awaits(holder, signal.SIGINT), 10), str(stop))
        os.kill(holder, signal.SIGCONT)
        self.assertEqual(stop.wait(30), 0, str(stop))
        self.assert_nothing_left()

    @staticmethod
    def awaits(pid, number):
        """Whether a process has not taken this signal yet."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        return int(re.search(r"ShdPnd:\t(\w+)", status)[1], 16) >> (number - 1) & 1

    def test_nothing_outlives_its_holder(self):
        self.detached(self.command("--detach", jobs.WORKER, "env", "family", "sleep", 600))
        os.kill(self.holder(), signal.SIGKILL)
        self.assert_nothing_left(10)
        self.assert_says("was killed", "attach", code=jobs.AGENT_LOST)
        self.assert_says("lost", "status")


class OnHosts(Commands, hosts_test.SshTest):
    count = 3

    def detach(self, *words):
        return self.launch("--detach", *words, env=self.env())

    def alive(self):
        return [len([line for line in node.processes().values()
                     if re.match(rf"\S*python\S* .*{jobs.WORKER}", line)]) for node in self.nodes]

    def test_a_job_outlives_its_terminal_and_a_connection(self):
        script = self.nodes[0].folder / "terminal"
        script.write_text(f"{lab.HLAUNCH} --hosts node0,node1,node2 --loss-limit 6 --detach "
                          f"--shutdown-timeout 3 {jobs.WORKER} env await {script}-go fail 2 37 0 "
                          "sleep 60\nsleep 600\n", encoding="utf-8")
        terminal = self.nodes[0].start("setsid", "-w", "sh", script, env=self.env())
        # The id is printed before this line.
        self.assertTrue(lab.poll(lambda: "hlaunch stop" in terminal.err, 40), str(terminal))
        job = terminal.out.strip()
        # All processes of the terminal's session are killed, as when it closes.

        def sleeps():
            return [pid for pid in lab.descendants(terminal.pid)
                    if lab.command_line(pid).startswith("sleep")]
        self.assertTrue(lab.poll(sleeps, 10), str(terminal))
        os.killpg(os.getpgid(sleeps()[0]), signal.SIGKILL)
        terminal.wait(10)
        attached = self.command("attach", "--tail", "all")
        self.assertTrue(lab.poll(lambda: attached.out.count("ENV") == 3, 20), str(attached))
        status = self.assert_says(".", "status", job, "--json")
        self.assertEqual(len(json.loads(status.out)["nodes"]), 3, str(status))
        self.assert_says(f"job {job}, round 1: 3 workers", "why")
        # The agent is unaffected by a broken connection.
        self.kill_ssh("node2")
        self.assertTrue(lab.poll(lambda: "connection to node2 broke" in attached.err, 10),
                        str(attached))
        self.assertEqual(sum(self.alive()), 3, str(attached))
        pathlib.Path(f"{script}-go").touch()
        self.assertEqual(attached.wait(30), 37, str(attached))
        self.assertEqual(self.command("logs", "-f").wait(10), 0)
        self.assert_nothing_left()

    def test_stop_leaves_nothing_on_any_host(self):
        run = self.detach(jobs.WORKER, "env", "family", "sleep", 600)
        job = self.detached(run)
        everywhere = lambda: all(self.alive())
        self.assertTrue(lab.poll(everywhere, 20), str(run))
        self.kill_ssh()  # The job goes on without any connection.
        follows = self.command("logs", "-f", job)
        self.assertTrue(lab.poll(lambda: follows.out.count(" broke") == 2, 10), str(follows))
        self.assertTrue(everywhere(), self.alive())
        self.assert_says("exit code 143", "stop", job)
        self.assertEqual(follows.wait(10), 0, str(follows))
        self.assert_nothing_left()

    def test_agents_end_once_the_conductor_is_killed(self):
        self.detached(self.detach(jobs.WORKER, "env", "family", "sleep", 600))
        os.kill(self.conductor(), signal.SIGKILL)
        self.assert_nothing_left(4 * hosts_test.LOSS_LIMIT)
        self.assertEqual(self.command("attach").wait(10), jobs.AGENT_LOST)

    def test_a_lone_host_ends_with_its_connection(self):
        self.detached(self.launch("--detach", jobs.WORKER, "env", "sleep", 600, hosts="node1",
                                  env=self.env()))
        attached = self.command("attach", "--tail", "all")
        self.assertTrue(lab.poll(lambda: "ENV" in attached.out, 20), str(attached))
        self.kill_ssh()
        self.assertEqual(attached.wait(20), jobs.NODE_LOST, str(attached))
        self.assertIn("its workers are ended there", attached.err)
        self.assert_nothing_left()

    def test_a_host_that_cannot_be_started_is_said_at_once(self):
        self.ssh.end_sshd(self.nodes[2])
        run = self.detach(jobs.WORKER, "env", "sleep", 600)
        self.assertEqual(run.wait(30), hosts_test.NOT_STARTED, str(run))
        self.assertRegex(run.err, "cannot start on node2")
        self.assertEqual(run.out, "")
        self.assert_nothing_left()


if __name__ == "__main__":
    if os.geteuid() != 0:
        lab.skip("sshd needs root")
    lab.main()
