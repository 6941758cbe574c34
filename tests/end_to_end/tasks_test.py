#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Many copies of hlaunch that a real mpirun starts on one host form one job: one copy is the agent,
and each copy runs a worker. slurm_test.py has the same for srun."""

import os
import re
import shutil
import signal

import jobs
import lab

# Each launcher with its option that labels output lines by process, and its environment.
LAUNCHERS = [
    (["mpirun.openmpi", "--oversubscribe", "--tag-output"],
     {"OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}),
    (["mpiexec.hydra", "-prepend-rank"], {}),
]


class Mpirun(jobs.JobTest):
    count = 1

    def each(self):
        """Yields each launcher that is installed, with its environment."""
        there = [launcher for launcher in LAUNCHERS if shutil.which(launcher[0][0])]
        if not there:
            self.skipTest("no mpirun here (Debian: openmpi-bin, mpich)")
        for words, env in there:
            with self.subTest(words[0]):
                yield words, {"PYTHON_EXEC": jobs.PYTHON, **env}

    def start_all(self, words, env, *more):
        return self.nodes[0].start(*words, "-np", "4", lab.HLAUNCH, *more, env=env)

    def test_each_process_runs_the_worker_of_its_number_and_shows_its_output(self):
        for words, env in self.each():
            run = self.start_all(words, env, "--log-prefix", "none", jobs.WORKER, "env")
            self.assert_done([run], jobs.OK, 60)
            shown = re.findall(r'(?m)^\[(?:1,)?(\d)\].* ENV \{"RANK": "(\d)", "LOCAL_RANK": "(\d)", '
                               r'"WORLD_SIZE": "4"', run.out.replace(":ENV", ": ENV"))
            self.assertEqual(sorted(shown), [(str(i),) * 3 for i in range(4)], str(run))

    def test_a_worker_that_fails_gives_its_code_and_ends_the_others(self):
        for words, env in self.each():
            run = self.start_all(words, env, jobs.WORKER, "env", "fail", "2", "7", "0",
                                 "sleep", "600")
            self.assert_done([run], 7, 60)
            self.assertIn("job failed: rank 2", run.err)

    def test_a_process_says_so_if_the_first_one_is_no_hlaunch(self):
        for words, env in self.each():
            for line, says in ((["--join-timeout", 2, jobs.WORKER, "env"],
                                "task 1 of .* has heard nothing of hlaunch in task 0"),
                               (["--no-such-option"], "task 1 of .*--no-such-option")):
                run = self.nodes[0].start(*words, "-np", "1", "sleep", 600, ":", "-np", "1",
                                          lab.HLAUNCH, *line, env=env)
                run.wait_for(says, 60)
                run.signal(signal.SIGTERM)
                self.assertNotEqual(run.wait(60), 0, str(run))

    def test_the_next_job_of_the_same_processes_finds_them(self):
        """A process still ends what its worker left behind while the next job begins."""
        for words, env in list(self.each())[-1:]:
            line = " && ".join(f"{lab.HLAUNCH} {jobs.WORKER} {what}" for what in ("env family", "env"))
            run = self.nodes[0].start(*words, "-np", "2", "sh", "-c", line, env=env)
            self.assert_done([run], jobs.OK, 60)
            self.assertEqual(len(re.findall(r'"WORLD_SIZE": "2"', run.out)), 4, str(run))

    def test_the_agent_sees_where_a_worker_of_another_process_stands(self):
        for words, env in list(self.each())[-1:]:
            run = self.nodes[0].start(
                *words, "-np", "3", lab.HLAUNCH, "--heartbeat-timeout", "6", "--shutdown-timeout", "1",
                lab.WORKERS / "heartbeat_worker.py", "sleep", cwd=self.nodes[0].folder,
                env={**env, "PYTHONPATH": lab.BIN.parent / "python"})
            self.assertNotEqual(run.wait(60), 0, str(run))
            self.assertRegex(run.err, r"job failed: rank 1 .*stalled")
            self.assertRegex(run.err, r'File ".*heartbeat_worker.py", line \d+, in sleep')
            self.assert_nothing_left(15)

    def test_the_doctor_checks_a_node_once(self):
        for words, env in list(self.each())[-1:]:
            run = self.start_all(words, env, "doctor")
            run.wait(60)
            self.assertEqual(run.out.count("memory speed"), 1, str(run))

    def test_nothing_outlives_an_agent_that_is_killed(self):
        for words, env in self.each():
            run = self.start_all(words, env, jobs.WORKER, "env", "family", "sleep", "600")
            self.wait_for_workers([run], 4)
            agents = {lab.fields(pid)[1] for pid in run.descendants()
                      if "--in-task" in lab.command_line(pid)}
            self.assertEqual(len(agents), 1, str(run))
            os.kill(int(agents.pop()), signal.SIGKILL)
            self.assertEqual(run.wait(30), jobs.AGENT_LOST, str(run))
            self.assert_nothing_left(15)


if __name__ == "__main__":
    lab.main()
