#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""srun starts hlaunch in a real Slurm of three nodes: hlaunch finds its place without any option,
and workers get the signals that Slurm sends to a step."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import unittest

import jobs
import lab
import slurm_lab

TRAIN = str(lab.ROOT / "deploy/examples/train_ddp.py")
SBATCH = lab.ROOT / "deploy/slurm"
ENV = {"PYTHON_EXEC": jobs.PYTHON}


class SlurmTest(unittest.TestCase):
    """All tests of a class share one Slurm, whose nodes have room for several jobs at once."""

    @classmethod
    def setUpClass(cls):
        if cls is SlurmTest:
            raise unittest.SkipTest("a base class")
        if reason := slurm_lab.why_not():
            raise unittest.SkipTest(reason)
        cls.slurm = slurm_lab.SlurmLab(3)
        cls.addClassCleanup(cls.slurm.close)

    def srun(self, *words, nodes=3, options=(), env=None):
        """Starts `hlaunch WORDS` on `nodes` nodes, as a job of its own."""
        name = f"job{len(self.slurm.runs)}"
        return self.slurm.start("srun", f"-N{nodes}", "-J", name, *options, "hlaunch", *words,
                                env={**ENV, **(env or {})})

    def batch(self, script, *words, options=(), env=None):
        """Queues a batch script; returns the job's id and its output file."""
        out = self.slurm.folder / f"batch{len(self.slurm.runs)}"
        run = self.slurm.run("sbatch", "--parsable", f"--output={out}", *options, script, *words,
                             env={**ENV, **(env or {})})
        self.assertEqual(run.code, 0, str(run))
        return run.out.strip(), out

    def state_of(self, job):
        shown = self.slurm.run("scontrol", "show", "job", job).out
        return re.search(r"JobState=(\S+)", shown)[1]

    def await_text(self, file, pattern, timeout=30):
        def look():
            return file.exists() and re.search(pattern, file.read_text(errors="replace"))
        found = lab.poll(look, timeout, 0.1)
        said = file.read_text(errors="replace") if file.exists() else "(nothing)"
        self.assertTrue(found, f"never said /{pattern}/:\n{said}\n{self.slurm.logs()}")
        return found

    def told(self, runs):
        return "\n".join(str(run) for run in runs)

    def process_of(self, run, node, who):
        """The pid, on this machine, of a process of the run on `node`."""
        job = self.slurm.job_of(run)

        def is_hlaunch(pid):  # And not the check of the node that an agent starts.
            words = lab.command_line(pid).split(" ")
            return words[0].endswith("/hlaunch") and words[1:2] != ["check"]

        for pid in filter(is_hlaunch, lab.descendants(node.init)):
            try:
                seen = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if f"SLURM_JOB_ID={job}" not in seen:
                continue
            is_task_0 = "SLURM_LOCALID=0" in seen
            is_keeper = any(is_hlaunch(child) for child in lab.children(pid))
            if is_task_0 == who.startswith("agent") and is_keeper == who.endswith("keeper"):
                return pid
        raise AssertionError(f"no {who} on {node.name}: {node.processes()}")

    def assert_done(self, run, code=0, timeout=60):
        self.assertEqual(run.wait(timeout), code, f"{run}\n{self.slurm.logs()}")


class Steps(SlurmTest):
    def test_unmodified_torch_trains_on_three_nodes(self):
        run = self.srun(TRAIN, "--steps", "10", options=["--gres=gpu:1"])
        self.assert_done(run, timeout=100)
        self.assertRegex(run.out, "OK: 3 ranks hold identical parameters")

    def test_ranks_of_a_step_are_forks_of_a_python_with_their_modules(self):
        folder = self.slurm.folder / "modules"
        folder.mkdir()
        (folder / "preloaded.py").write_text("import os\nPID = os.getpid()\n", encoding="utf-8")
        run = self.srun("--nproc-per-node", "2", "--preload", "preloaded",
                        lab.WORKERS / "preload_worker.py", nodes=2, env={"PYTHONPATH": folder})
        self.assert_done(run)
        self.assertEqual(re.findall(r'"forked": (\w+)', run.out), ["true"] * 4, str(run))

    def test_gpus_of_the_step_give_workers_and_nodes_keep_slurms_order(self):
        run = self.srun(jobs.WORKER, "env", options=["--gres=gpu:2"])
        self.assert_done(run)
        workers = sorted(jobs.environments(run), key=lambda worker: int(worker["RANK"]))
        self.assertEqual([worker["NODE_RANK"] for worker in workers], list("001122"), str(run))
        self.assertEqual([worker["LOCAL_RANK"] for worker in workers], list("010101"), str(run))
        job = workers[0]["TORCHELASTIC_RUN_ID"]
        self.assertRegex(job, r"^\d+\.0$")
        self.assertEqual({worker["MASTER_ADDR"] for worker in workers}, {lab.SUBNET + ".10"})

    def test_a_heterogeneous_step_is_one_job_in_the_order_of_its_parts(self):
        part = ["hlaunch", jobs.WORKER, "env"]
        run = self.slurm.start("srun", "-w", "node2", "-n1", *part, ":", "-w", "node[0-1]", "-N2", "-n2",
                               *part, env=ENV)
        self.assert_done(run)
        workers = sorted(jobs.environments(run), key=lambda worker: int(worker["RANK"]))
        self.assertEqual([worker["NODE_RANK"] for worker in workers], list("012"), str(run))
        self.assertEqual({worker["MASTER_ADDR"] for worker in workers}, {lab.SUBNET + ".12"}, str(run))

    def test_two_jobs_share_the_nodes(self):
        flag = self.slurm.folder / "both"
        runs = [self.srun(jobs.WORKER, "env", "await", flag, options=["-c1"]) for _ in range(2)]
        for run in runs:  # Each has all its workers while the other one runs.
            found = lab.poll(lambda run=run: len(jobs.environments(run)) == 3, 30)
            self.assertTrue(found, self.told(runs))
        flag.touch()
        for run in runs:
            self.assert_done(run)
        ids = {worker["TORCHELASTIC_RUN_ID"] for run in runs for worker in jobs.environments(run)}
        self.assertEqual(len(ids), 2, self.told(runs))

    def test_a_step_on_part_of_the_jobs_nodes_is_a_job_of_its_own(self):
        script = self.slurm.folder / "steps.sh"
        script.write_text("#!/bin/bash\n"
                          f"srun -N2 -n2 -r1 hlaunch {jobs.WORKER} env &\n"
                          f"srun -N1 -n1 -r0 hlaunch {jobs.WORKER} env &\nwait -n && wait -n\n",
                          encoding="utf-8")
        job, out = self.batch(script, options=["-N3"])
        self.await_text(out, r"(?s)(ENV .*){3}")
        told = re.findall(r"ENV (\{.*\})", out.read_text(encoding="utf-8"))
        worlds = sorted(json.loads(line)["WORLD_SIZE"] for line in told)
        self.assertEqual(worlds, ["1", "2", "2"], out.read_text(encoding="utf-8"))
        self.assertTrue(lab.poll(lambda: self.state_of(job) == "COMPLETED", 15, 0.2))

    def test_a_node_whose_agent_is_killed_is_not_awaited(self):
        """Slurm starts no task of a step again. With a last call the next round would not begin."""
        run = self.srun("--nnodes", "2:3", "--max-restarts", "1", "--last-call", "3600", jobs.WORKER,
                        "env", "finish", "1", "sleep", "600")
        run.wait_for("(?s)(ENV .*){3}", 30)
        os.kill(self.process_of(run, self.slurm.nodes[2], "agent"), signal.SIGKILL)
        run.wait_for("(?s)(finished.*){2}", 60)
        worlds = [(worker["NODE_RANK"], worker["WORLD_SIZE"])
                  for worker in jobs.environments(run)[3:]]
        self.assertEqual(sorted(worlds), [("0", "2"), ("1", "2")], str(run))
        self.assertEqual(run.wait(30), jobs.AGENT_LOST, str(run))

    def test_several_tasks_on_a_node_run_alone_where_that_is_said(self):
        run = self.srun("--standalone", jobs.WORKER, "env", nodes=1, options=["-n2"])
        self.assert_done(run)
        self.assertEqual([worker["WORLD_SIZE"] for worker in jobs.environments(run)], ["1", "1"])

    def test_a_batch_script_of_one_node_says_that_it_keeps_the_signals(self):
        script = self.slurm.folder / "alone.sh"
        script.write_text(f"#!/bin/bash\nhlaunch --nnodes 1 {jobs.WORKER} env\n", encoding="utf-8")
        _, out = self.batch(script, options=["-N3"])
        self.await_text(out, "scancel and the time limit signal the batch script .* exec hlaunch")
        self.await_text(out, 'ENV .*"WORLD_SIZE": "1"')

    def test_srun_within_a_worker_of_srun_finds_the_inner_step(self):
        # A worker inherits the variables of the job but not of the step, so its own srun begins a
        # new step.
        run = self.srun("--nproc-per-node", "1", "--no-python", "srun", "--overlap", "-N1", "-n1",
                        "hlaunch", jobs.WORKER, "env", nodes=1)
        self.assert_done(run)
        self.assertRegex(jobs.environments(run)[0]["TORCHELASTIC_RUN_ID"], r"^\d+\.1$", str(run))

    def test_what_was_found_is_explained(self):
        run = self.slurm.run("srun", "-N2", "--gres=gpu:3",
                             f"--output={self.slurm.folder}/explained%t", "hlaunch",
                             "--explain-cluster", "--json")
        self.assertEqual(run.code, 0, str(run))
        found = []
        for task in range(2):
            text = (self.slurm.folder / f"explained{task}").read_text(encoding="utf-8")
            found.append({value["name"]: value for value in json.loads(text)["values"]})
        self.assertEqual(sorted(place["--node-rank"]["value"] for place in found), ["0", "1"])
        for place in found:
            self.assertEqual(place["--nproc-per-node"]["value"], "3")
            self.assertEqual(place["--nproc-per-node"]["source"], "CUDA_VISIBLE_DEVICES")
            self.assertEqual(place["--shutdown-timeout"]["value"], str(slurm_lab.KILL_WAIT - 1))
            self.assertIn("slurm.conf", place["--shutdown-timeout"]["source"])

    def test_a_program_of_open_mpi_is_one_world_in_a_step_and_in_a_batch_script(self):
        program = self.slurm.folder / "mpi_worker"
        if not shutil.which("mpicc.openmpi"):
            self.skipTest("no mpicc.openmpi here (Debian: libopenmpi-dev)")
        built = self.slurm.run("mpicc.openmpi", "-o", program, lab.WORKERS / "mpi_worker.c")
        self.assertEqual(built.code, 0, str(built))
        wires = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "eth0"}
        script = self.slurm.folder / "mpi.sh"
        script.write_text(f"#!/bin/bash\nexec hlaunch -n 4 {program}\n", encoding="utf-8")
        step = self.srun("--nproc-per-node", 2, program, nodes=2, env=wires)
        _, out = self.batch(script, options=["-N2", "--ntasks-per-node=2"], env=wires)
        self.assert_done(step)
        self.await_text(out, "(?s)(MPI rank . of 4.*){4}")
        for said in step.out, out.read_text(encoding="utf-8"):
            self.assertEqual(sorted(re.findall(r"MPI rank (\d) of 4, 2 here", said)), list("0123"), said)

    def test_srun_hands_on_hlaunchs_own_exit_codes(self):
        for code in jobs.OWN_CODES:
            with self.subTest(code):
                run = self.slurm.run("srun", "-N1", "sh", "-c", f"exit {code}")
                self.assertEqual(run.code, code, str(run))

    def test_a_port_in_use_is_named(self):
        listener = self.slurm.folder / "listen.py"
        listener.write_text("import socket, sys, time\n"
                            "server = socket.create_server(('', int(sys.argv[1])))\n"
                            "print('here', flush=True)\ntime.sleep(600)\n", encoding="utf-8")
        # The nodes meet at the first one of the job. -w makes it this node, where a job before may
        # still be ending.
        run = self.slurm.run(
            "salloc", "-N2", "-w", self.slurm.nodes[0].name, "bash", "-c",
            "port=$((12000 + (16 * SLURM_JOB_ID) % 16381));"
            f"coproc {jobs.PYTHON} {listener} $port; read -u ${{COPROC[0]}} here;"
            f"srun -N2 -n2 --kill-on-bad-exit=1 hlaunch {jobs.WORKER} env;"
            "code=$?; kill $COPROC_PID; exit $code", env=ENV)
        self.assertEqual(run.code, jobs.PORT_IN_USE, str(run))
        self.assertRegex(run.err, r"port \d+ of this host is in use by a program")

    def test_the_sbatch_example_trains(self):
        _, out = self.batch(SBATCH / "train.sbatch", TRAIN, "--steps", "5",
                            options=["--nodes=2", "--gpus-per-node=1", "--cpus-per-task=1"])
        self.await_text(out, "OK: 2 ranks hold identical parameters", 100)


class Tasks(SlurmTest):
    """Several tasks on a node: one of them is the agent, and each task runs its own worker."""

    def places(self, run):
        return sorted((int(facts["RANK"]), facts["NODE_RANK"], facts["LOCAL_RANK"],
                       facts["WORLD_SIZE"]) for facts in jobs.environments(run))

    def left(self):
        return [f"{node.name}: {line}" for node in self.slurm.nodes
                for line in node.processes().values() if "e2e_worker" in line and "srun" not in line]

    def first_two(self):
        """Options for these nodes. Without them Slurm takes the third node as well, if a job of
        another test is not quite over on one of the first two."""
        return ["-w", ",".join(node.name for node in self.slurm.nodes[:2])]

    def assert_nothing_left(self, told):
        lab.poll(lambda: not self.left(), 10)
        self.assertEqual(self.left(), [], told)

    def test_each_task_runs_a_worker_with_slurms_number_device_and_output(self):
        run = self.srun("--log-prefix", "none", jobs.WORKER, "env", "show", "CUDA_VISIBLE_DEVICES",
                        nodes=2, options=["--ntasks-per-node=2", "--gpus-per-task=1", "-l"])
        self.assert_done(run)
        self.assertEqual(self.places(run), [(0, "0", "0", "4"), (1, "0", "1", "4"),
                                            (2, "1", "0", "4"), (3, "1", "1", "4")], str(run))
        shown = sorted(re.findall(r"(\d): SHOW CUDA_VISIBLE_DEVICES=(\d)", run.out))
        self.assertEqual(shown, [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")], str(run))
        for rank, facts in re.findall(r"(\d): ENV (\{.*\})", run.out):
            self.assertEqual(json.loads(facts)["RANK"], rank, str(run))

    def test_nodes_may_have_different_numbers_and_a_tasks_code_is_its_workers(self):
        run = self.srun(jobs.WORKER, "env", "fail", "1", "37", "0", "sleep", "60", nodes=2,
                        options=["-n3", *self.first_two()])
        self.assertEqual(run.wait(60), 37, str(run))
        self.assertRegex(run.err, r"hlaunch\[node0\]: job failed: rank 1 \(node0, local rank 1")
        lab.poll(lambda: run.err.count("Exited with exit code") > 1, 3)
        self.assertNotRegex(run.err, "exit code (?!37)", str(run))
        self.assert_nothing_left(run)

    def test_tasks_stay_for_the_next_round(self):
        run = self.srun("--max-restarts", "1", jobs.WORKER, "env", "fail", "1", "5", "0", "finish",
                         "1", "sleep", "60", nodes=2, options=["--ntasks-per-node=2"])
        self.assert_done(run)
        self.assertEqual(len(re.findall("finished", run.out)), 4, str(run))
        self.assertEqual(self.places(run)[-1], (3, "1", "1", "4"), str(run))
        self.assert_nothing_left(run)

    def test_nothing_outlives_a_task_or_an_agent_that_is_killed(self):
        runs = {victim: self.srun(jobs.WORKER, "env", "family", "sleep", "600", nodes=2,
                                  options=["--ntasks-per-node=2", "-c1", *self.first_two()])
                for victim in ("task", "task's keeper", "agent", "agent's keeper")}
        for victim, run in runs.items():
            lab.poll(lambda run=run: len(jobs.environments(run)) == 4, 30)
            os.kill(self.process_of(run, self.slurm.nodes[1], victim), signal.SIGKILL)
        for victim, run in runs.items():
            self.assertNotEqual(run.wait(60), 0, f"{victim}: {run}")
        self.assert_nothing_left(self.told(runs.values()))

    def test_what_slurm_sends_to_all_tasks_reaches_each_worker(self):
        run = self.srun(jobs.WORKER, "signals", "sleep", "600", nodes=2,
                        options=["--ntasks-per-node=2"])
        run.wait_for("(?s)(LISTENS.*){4}", 30)
        job = self.slurm.job_of(run)
        for number, words in (("USR1", ["--signal=USR1"]), ("TERM", [])):
            self.slurm.run("scancel", *words, job)
            # Both Slurm and hlaunch signal the workers, so a signal may come twice.
            lab.poll(lambda number=number: len(self.ranks_that_got(run, number)) == 4, 10)
            self.assertEqual(self.ranks_that_got(run, number), set("0123"), str(run))
        self.assertNotEqual(run.wait(30), 0, str(run))
        self.assert_nothing_left(run)

    def ranks_that_got(self, run, number):
        return set(re.findall(rf"\[(\d)\] GOT SIG{number}", run.out))

    def test_two_steps_share_the_nodes(self):
        runs = [self.srun(*more, jobs.WORKER, "env", nodes=2,
                          options=["--ntasks-per-node=2", "-c1", "--gpus-per-task=1"])
                for more in ([], ["--virtual-local-rank"])]
        for run, local_ranks in zip(runs, ("0101", "0000")):
            self.assert_done(run)
            self.assertEqual([place[0] for place in self.places(run)], [0, 1, 2, 3], str(run))
            self.assertEqual("".join(place[2] for place in self.places(run)), local_ranks, str(run))

    def test_each_in_a_container_of_its_own_with_another_host_name(self):
        # The effect of `srun docker run`: own pids and host names, and the node's network.
        inside = ("exec unshare --uts --pid --fork --mount --mount-proc --kill-child sh -c "
                  "'hostname c$SLURM_PROCID; exec hlaunch \"$@\"' sh \"$@\"")
        run = self.slurm.start("srun", "-N2", "--ntasks-per-node=2", "sh", "-c", inside, "sh",
                               jobs.WORKER, "env", env=ENV)
        self.assert_done(run)
        self.assertEqual(self.places(run), [(0, "0", "0", "4"), (1, "0", "1", "4"),
                                            (2, "1", "0", "4"), (3, "1", "1", "4")], str(run))
        self.assert_nothing_left(run)

    def test_what_cannot_be_is_said_once_on_a_node(self):
        away = "test $SLURM_LOCALID = 0 || exec unshare --net hlaunch \"$@\"; exec hlaunch \"$@\""
        for reason, count, options, command in (
                ("tasks on this node, each of which runs a worker, and --nproc-per-node says 8: "
                 "leave it out, or write srun -N2 -n2 --ntasks-per-node=1 hlaunch "
                 "--nproc-per-node 2", 2, [], ["hlaunch", "--nproc-per-node", "8"]),
                ("Slurm does not number the tasks .* add --distribution=block", 1,
                 ["--distribution=cyclic"], ["hlaunch"]),
                ("task 1 of 2 of Slurm step .* on this node did not come within 2 s: .* write srun "
                 "-N2 -n2 --ntasks-per-node=1 hlaunch --nproc-per-node 2", 2, [],
                 ["sh", "-c", away, "sh", "--join-timeout", "2"])):
            with self.subTest(reason):
                run = self.slurm.run("srun", "-N2", "--ntasks-per-node=2", *options, *command,
                                     jobs.WORKER, "env", env=ENV)
                self.assertEqual(run.code, jobs.USAGE, str(run))
                self.assertEqual(len(re.findall(reason, run.err)), count, str(run))
                # One that is cut off from task 0 cannot know what that has said.
                told = re.sub(r"hlaunch: task 1 of .* has heard nothing of hlaunch in task 0: .*\n",
                              "", run.err)
                self.assertEqual(len(re.findall("hlaunch.*: ", told)), count, str(run))


class Allocations(SlurmTest):
    """One `hlaunch` in a batch script or a shell of salloc starts the nodes by itself."""

    def left(self):
        return [f"{node.name}: {line}" for node in self.slurm.nodes
                for line in node.processes().values()
                if line and not re.search("slurm(d|ctld|stepd|scriptd)", line.split()[0] + line[:20])]

    def assert_nothing_left(self, told, timeout=10):
        lab.poll(lambda: not self.left(), timeout)
        self.assertEqual(self.left(), [], told)

    def test_a_batch_script_starts_all_nodes_with_the_jobs_devices(self):
        script = self.slurm.folder / "whole.sh"
        all_are_here = self.slurm.folder / "all_are_here"
        script.write_text(f"#!/bin/bash\nhlaunch {jobs.WORKER} env show CUDA_VISIBLE_DEVICES await "
                          f"{all_are_here} fail 3 37 0 sleep 60\necho it ended with $?\n",
                          encoding="utf-8")
        _, out = self.batch(script, options=["-N3", "--gres=gpu:2"])
        self.await_text(out, "(?s)(SHOW .*){6}")
        all_are_here.touch()
        self.await_text(out, "it ended with 37")
        text = out.read_text(encoding="utf-8")
        found = [json.loads(line) for line in re.findall(r"ENV (\{.*\})", text)]
        places = sorted((int(facts["RANK"]), facts["NODE_RANK"]) for facts in found)
        self.assertEqual([node for _, node in places], list("001122"), text)
        self.assertEqual(text.count("SHOW CUDA_VISIBLE_DEVICES=0,1"), 6, text)
        self.assertEqual(text.count("job failed: rank 3 "), 1, text)
        self.assertNotIn("Exited with exit code", text)  # srun prints such a line for each node.
        self.assert_nothing_left(text)

    def test_salloc_takes_what_the_job_says_of_tasks_and_not_of_a_step(self):
        run = self.slurm.run("salloc", "-N2", "--ntasks-per-node=4", "--gpus-per-task=1",
                             "--mem-per-cpu=1", "hlaunch", jobs.WORKER, "env", env=ENV)
        self.assertEqual(run.code, 0, str(run))
        ranks = sorted(int(facts["RANK"]) for facts in jobs.environments(run))
        self.assertEqual(ranks, list(range(8)), str(run))
        run = self.slurm.run("salloc", "-N3", "--ntasks-per-node=2", "hlaunch", "-n", "3",
                             "--exclude", "node0", jobs.WORKER, "env", env=ENV)
        self.assertEqual(run.code, 0, str(run))
        nodes = sorted(facts["NODE_RANK"] for facts in jobs.environments(run))
        self.assertEqual(nodes, list("001"), str(run))
        # Slurm's own division of the four tasks is 3 and 1.
        run = self.slurm.run("salloc", "-N2", "-n4", "hlaunch", "-n", "4", "-N", "2", jobs.WORKER,
                             "env", env=ENV)
        nodes = sorted(facts["NODE_RANK"] for facts in jobs.environments(run))
        self.assertEqual(nodes, list("0011"), str(run))
        self.assert_nothing_left(str(run))

    def mpirun(self):
        link = self.slurm.folder / "mpirun"
        if not link.is_symlink():
            link.symlink_to(lab.HLAUNCH)
        return link

    def test_mpirun_takes_named_hosts_only_from_the_job(self):
        file = self.slurm.folder / "of_the_job"
        file.write_text("node1\nnode0\n", encoding="utf-8")
        say = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME"]
        for words, expected in (
                (["-H", "node1", "-n", "2"], ["node1", "node1"]),
                (["-H", "node1:1,node0:2"], ["node1", "node0", "node0"]),
                (["--hostfile", file], ["node1", "node1", "node0", "node0"])):
            run = self.slurm.run("salloc", "-w", "node0,node1", "--ntasks-per-node=2", self.mpirun(),
                                 *words, *say)
            self.assertEqual(run.code, 0, str(run))
            self.assertEqual(sorted(re.findall("rank .*", run.out)),
                             [f"rank {rank} of {len(expected)} on {host}"
                              for rank, host in enumerate(expected)], str(run))
        run = self.slurm.run("salloc", "-w", "node0,node1", self.mpirun(), "-H", "node0,node2", *say)
        self.assertEqual((run.code, run.out), (2, ""), str(run))
        self.assertRegex(run.err, r"node2 is not in Slurm job \d+, whose hosts are node0, node1")

    def test_mpirun_does_not_run_on_the_host_where_salloc_was_typed_unless_it_is_in_the_job(self):
        say = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on $(uname -n)"]
        for hosts in "localhost", "127.0.0.1:2", "node2":
            run = self.slurm.run("salloc", "-w", "node0,node1", self.mpirun(), "-H", hosts, *say,
                                 node=self.slurm.nodes[2])
            self.assertEqual((run.code, run.out), (2, ""), str(run))
            self.assertRegex(run.err, r"node2,? (which )?is not in Slurm job \d+, whose hosts are "
                                      r"node0, node1")
        run = self.slurm.run("salloc", "-w", "node0,node1", self.mpirun(), "-H", "localhost,node1",
                             "-n", "2", *say)
        self.assertEqual(run.code, 0, str(run))
        self.assertEqual(sorted(re.findall("rank .*", run.out)),
                         ["rank 0 of 2 on node0", "rank 1 of 2 on node1"], str(run))

    def test_mpirun_in_a_task_on_each_node_runs_one_rank(self):
        run = self.slurm.run("srun", "-N3", "-n3", self.mpirun(), "sh", "-c",
                             "echo rank $RANK of $WORLD_SIZE")
        self.assertEqual(run.code, 0, str(run))
        self.assertEqual(sorted(re.findall("rank .*", run.out)),
                         [f"rank {rank} of 3" for rank in range(3)], str(run))

    def test_mpirun_without_a_number_starts_a_rank_for_each_slot(self):
        link = self.mpirun()
        for asked, ranks in (["-N2", "--ntasks-per-node=2"], 4), (["-N1", "-n3"], 3):
            run = self.slurm.run("salloc", *asked, link, "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
            self.assertEqual(run.code, 0, str(run))
            self.assertEqual(sorted(re.findall("rank .*", run.out)),
                             [f"rank {rank} of {ranks}" for rank in range(ranks)], str(run))

    def test_mpirun_keeps_the_slots_and_places_of_its_job(self):
        link = self.mpirun()
        say = ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME"]
        two = ["-w", "node0,node1", "--ntasks-per-node=2"]
        step = [*two, "srun", "-n1", "-N1", "-w", "node1", "--overlap"]
        for words, expected in (
                ([*two, link, "--map-by", "node", "-n", "2"], "01"),
                ([*two, link, "--oversubscribe", "-n", "5"], "00011"),
                ([*step, link], "1"),
                ([*step, link, "--oversubscribe", "-n", "2"], "11")):
            run = self.slurm.run("salloc", *words, *say)
            self.assertEqual(run.code, 0, str(run))
            self.assertEqual(sorted(re.findall("rank .*", run.out)),
                             [f"rank {rank} of {len(expected)} on node{host}"
                              for rank, host in enumerate(expected)], str(run))
        for words, said in (
                ([*two, link, "-n", "5"], r"-n 5: Slurm job \d+ has 4 slots; write --oversubscribe"),
                ([*two, link, "-N", "3"], r"3 ranks on node0: it has 2 slots in Slurm job \d+"),
                (["-N1", "-n1", link, "-n", "2"], r"-n 2: Slurm job \d+ has 1 slot;"),
                ([*step, link, "-n", "2"], r"-n 2: Slurm step \d+\.0 has 1 slot;"),
                (["-N1", "-n2", ":", "-N1", "-n1", link], r"write srun --het-group=0-1 mpirun")):
            run = self.slurm.run("salloc", *words, *say)
            self.assertEqual((run.code, run.out), (2, ""), str(run))
            self.assertRegex(run.err, said)
        run = self.slurm.run("salloc", "-N1", "-n2", ":", "-N1", "-n1", "srun", "--het-group=0-1",
                             link, *say)
        self.assertEqual(run.code, 0, str(run))
        self.assertEqual(len(re.findall("rank [0-2] of 3", run.out)), 3, str(run))

    def test_scancel_reaches_the_workers_and_nothing_outlives_it(self):
        run = self.slurm.start("salloc", "-N3", "-J", "cancelled", "hlaunch", jobs.WORKER, "signals",
                               "family", "sleep", "600", env=ENV)
        run.wait_for("(?s)(LISTENS.*){3}", 30)
        self.slurm.run("scancel", self.slurm.job_of(run))
        run.wait_for("(?s)(GOT SIGTERM.*){3}", 20)
        self.assertNotEqual(run.wait(30), 0, str(run))
        self.assert_nothing_left(str(run))

    def test_nothing_outlives_whoever_is_killed(self):
        for victim in ("conductor", "srun"):
            with self.subTest(victim):
                run = self.slurm.start("salloc", "-N3", "hlaunch", "--loss-limit", "6", jobs.WORKER,
                                       "env", "family", "sleep", "600", env=ENV)
                lab.poll(lambda run=run: len(jobs.environments(run)) == 3, 30)
                pids = [pid for pid in run.descendants()
                        if lab.command_line(pid).startswith("srun" if victim == "srun" else "hlaunch ")]
                for pid in pids if victim == "srun" else pids[1:2]:  # The keeper's child.
                    with contextlib.suppress(ProcessLookupError):  # The end of one may end others.
                        os.kill(pid, signal.SIGKILL)
                self.assertNotEqual(run.wait(60), 0, str(run))
                self.assert_nothing_left(str(run), 30)


class Signals(SlurmTest):
    """The slow cases wait at the same time, since Slurm checks time limits twice a minute."""

    def test_a_timed_signal_and_the_time_limit_reach_the_workers(self):
        # Slurm may send the timed signal 30 s too early, but the workers must be there first.
        run = self.srun(jobs.WORKER, "signals", "sleep", "600", nodes=2,
                        options=["-t1", "--signal=USR1@1"])
        run.wait_for("(?s)(LISTENS.*){2}", 30)
        whole = self.slurm.start("salloc", "-N2", "-t1", "-c1", "hlaunch", jobs.WORKER, "signals",
                                 "sleep", "600", env=ENV)
        whole.wait_for("(?s)(LISTENS.*){2}", 30)
        # Meanwhile the test runs scancel, requeue and preemption.
        self.workers_get_the_signal_and_what_is_left_of_kill_wait()
        self.the_job_is_requeued_and_runs_again()
        self.the_job_makes_room_for_an_urgent_one()
        run.wait_for("(?s)(GOT SIGUSR1.*){2}", 90)
        run.wait_for("(?s)(GOT SIGTERM.*){2}", 90)
        self.assertNotEqual(run.wait(20), 0, str(run))
        self.assertRegex(run.err, "TIME LIMIT", str(run))
        self.assertRegex(run.out, "GOT SIGCONT", str(run))
        whole.wait_for("(?s)(GOT SIGTERM.*){2}", 90)
        self.assertNotEqual(whole.wait(30), 0, str(whole))

    def workers_get_the_signal_and_what_is_left_of_kill_wait(self):
        run = self.srun(jobs.WORKER, "signals", "sleep", "600", nodes=2)
        run.wait_for("(?s)(LISTENS.*){2}", 30)
        self.slurm.run("scancel", self.slurm.job_of(run))
        run.wait_for("(?s)(GOT SIGTERM.*){2}", 10)
        run.wait(15)
        # hlaunch ends workers that go on, and reports that, before Slurm ends everything.
        self.assertRegex(run.err, r"hlaunch\[node[01]\]: .*(stopped|SIGTERM)", str(run))
        self.assertNotIn("SIGKILL", " ".join(
            line for line in run.err.splitlines() if line.startswith("srun")), str(run))

    def the_job_is_requeued_and_runs_again(self):
        job, out = self.batch(SBATCH / "requeue.sbatch", jobs.WORKER, "show",
                              "SLURM_RESTART_COUNT", "env", "signals", "await",
                              self.slurm.folder / "again",
                              options=["--nodes=2", "--gpus-per-node=1", "--cpus-per-task=1"])
        self.await_text(out, "(?s)(LISTENS.*){2}")
        self.slurm.run("scancel", "--batch", "--signal=USR1", job)  # As --signal=B:USR1@120 does.
        self.await_text(out, "(?s)(GOT SIGTERM.*){2}")
        (self.slurm.folder / "again").touch()
        self.assert_runs_again(job, out)

    def the_job_makes_room_for_an_urgent_one(self):
        job, out = self.batch(SBATCH / "requeue.sbatch", jobs.WORKER, "show",
                              "SLURM_RESTART_COUNT", "env", "signals", "await",
                              self.slurm.folder / "urgent_was_there",
                              options=["--nodes=2", "--gpus-per-node=4", "--cpus-per-task=1"])
        self.await_text(out, "(?s)(LISTENS.*){2}")
        urgent = self.srun(jobs.WORKER, "show", "SLURM_JOB_PARTITION", "env", nodes=2,
                           options=["-purgent", "--gres=gpu:4"])
        # The workers get the signal, and the partition's grace to save their state.
        self.await_text(out, "(?s)(GOT SIGTERM.*){2}")
        (self.slurm.folder / "urgent_was_there").touch()
        self.assert_done(urgent)
        self.assertRegex(urgent.out, "SHOW SLURM_JOB_PARTITION=urgent")
        self.assert_runs_again(job, out)

    def assert_runs_again(self, job, out):
        self.assertTrue(lab.poll(lambda: self.state_of(job) == "PENDING", 30, 0.2),
                        f"{self.state_of(job)}: {out.read_text(encoding='utf-8')}")
        # Slurm holds a requeued job back for two minutes, unless StartTime is set. A start within
        # one second would make it take the new credential for the revoked one.
        self.assertTrue(lab.poll(lambda: self.slurm.run(
            "scontrol", "update", f"jobid={job}", "StartTime=now+2").code == 0, 10, 0.2))
        self.await_text(out, "(?s)(SHOW SLURM_RESTART_COUNT=1.*){2}")
        self.assertTrue(lab.poll(lambda: self.state_of(job) == "COMPLETED", 30, 0.2),
                        f"{out.read_text(encoding='utf-8')}\n{self.slurm.logs()}")


class NodeDies(SlurmTest):
    def test_a_job_ends_and_names_it_or_goes_on_without_it(self):
        fixed, elastic = (
            self.srun(*options, "--loss-limit", "6", jobs.WORKER, "env", "finish", "1", "sleep",
                      "600", options=["--no-kill"])
            # Nobody starts node2 again, so there is no last call.
            for options in ((), ("--nnodes", "2:3", "--max-restarts", "1", "--last-call", "3600")))
        for run in (fixed, elastic):
            run.wait_for("(?s)(ENV .*){3}", 30)
        self.slurm.nodes[2].power_off()
        fixed.wait_for(r"hlaunch\[node0\]: .*node2.* was lost", 30)
        elastic.wait_for("(?s)(finished.*){2}", 30)
        worlds = [(worker["NODE_RANK"], worker["WORLD_SIZE"])
                  for worker in jobs.environments(elastic)[3:]]
        self.assertEqual(sorted(worlds), [("0", "2"), ("1", "2")], str(elastic))
        for node in self.slurm.nodes[:2]:
            def workers(node=node):
                return [line for line in node.processes().values()
                        if jobs.WORKER in line and "srun" not in line]
            self.assertTrue(lab.poll(lambda: not workers(), 10), f"{fixed}\n{elastic}")


if __name__ == "__main__":
    lab.main()
