#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`mpirun hlaunch …` on two hosts, with Open MPI's mpirun and MPICH's mpiexec: all copies, one or
more per node, form one job if they know where to meet. Also hlaunch in place of both programs."""

import os
import shutil
import signal

import jobs
import lab


class OnEnteredNodes(jobs.JobTest):
    """mpirun runs in node0's network and sees this host's processes, so that its remote shell can
    be a script that enters the nodes."""

    def setUp(self):
        super().setUp()
        self.agent = self.lab.folder / "enter"
        lines = ["#!/bin/sh", '[ "$1" = -x ] && shift  # Hydra speaks ssh.',
                 "host=$1; shift", "case $host in"]
        names = [f"{node.ip}" for node in self.nodes]
        names[0] += "|localhost"
        lines += [f'{name}) exec {" ".join(node.enter())} sh -c "$*";;'
                  for name, node in zip(names, self.nodes)]
        self.agent.write_text("\n".join([*lines, "esac", "exit 9"]) + "\n", encoding="utf-8")
        self.agent.chmod(0o755)
        self.env = {"PYTHON_EXEC": jobs.PYTHON, "PATH": f"{lab.BIN}:/usr/bin:/bin"}

    def enter(self, program, *words):
        node = self.nodes[0]
        enter, node.enter = node.enter, lambda: ["nsenter", "-t", str(node.init), "-n", "-u", "--"]
        try:
            run = node.start(program, *words, env=self.env)
        finally:
            node.enter = enter
        self.addCleanup(run.process.kill)  # It is none of the node's processes.
        return run


class Mpirun(OnEnteredNodes):
    def mpirun(self, program, *words):
        if not shutil.which(program):
            self.skipTest(f"no {program} here (Debian: openmpi-bin, mpich)")
        return self.enter(program, *words)

    def open_mpi(self, per_node, *words, options=()):
        hosts = ",".join(f"{node.ip}:{per_node}" for node in self.nodes)
        return self.mpirun("mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent",
                           self.agent, "--mca", "btl_tcp_if_include", "eth0", "--mca",
                           "oob_tcp_if_include", "eth0", "--host", hosts, "-N", per_node,
                           "--oversubscribe", *options, "hlaunch", *words)

    def hydra(self, *words, options=(), program=("hlaunch",)):
        return self.mpirun("mpiexec.hydra", "-iface", "eth0", "-launcher", "ssh", "-launcher-exec",
                           self.agent,
                           "-hosts", ",".join(node.ip for node in self.nodes), "-ppn", "1", "-n",
                           "2", *options, *program, *words)

    def assert_one_job(self, run):
        self.assertEqual(run.wait(60), 0, str(run))
        workers = jobs.environments(run)
        self.assertEqual(sorted((worker["RANK"], worker["NODE_RANK"], worker["WORLD_SIZE"])
                                for worker in workers),
                         [("0", "0", "4"), ("1", "0", "4"), ("2", "1", "4"), ("3", "1", "4")],
                         str(run))
        self.assert_nothing_left()

    def test_open_mpi_once_a_node_is_one_job(self):
        self.assert_one_job(self.open_mpi(1, "--nproc-per-node", "2", jobs.WORKER, "env"))

    def test_open_mpi_twice_a_node_is_one_job(self):
        self.assert_one_job(self.open_mpi(2, jobs.WORKER, "env"))

    def test_hydra_meets_where_its_user_says(self):
        run = self.hydra("--nproc-per-node", "2", jobs.WORKER, "env",
                         options=["-genv", "MASTER_ADDR", self.nodes[0].ip])
        self.assert_one_job(run)

    def test_mpirun_in_several_processes_of_open_mpi_is_refused(self):
        link = self.lab.folder / "mpirun"
        link.symlink_to(lab.HLAUNCH)
        for program, words in (("mpirun.openmpi", ["--allow-run-as-root", "--oversubscribe"]),
                               ("mpiexec.hydra", [])):
            with self.subTest(program=program):
                run = self.mpirun(program, *words, "-n", 2, link, "-n", 2, "echo", "started")
                self.assertNotEqual(run.wait(60), 0, str(run))
                self.assertNotIn("started", run.out, str(run))
                self.assertIn("this mpirun runs in several processes of another one", run.err)

    def test_hydra_without_an_address_is_refused(self):
        # If both copies end at once, Hydra may die of SIGPIPE before it has read their words.
        words = self.lab.folder / "words"
        run = self.hydra(jobs.WORKER, "env",
                         program=["sh", "-c", f'exec hlaunch "$@" 2>> "{words}"', "hlaunch"])
        self.assertNotEqual(run.wait(60), 0, str(run))
        self.assertIn("add --rdzv-endpoint HOST, with the first node's name",
                      words.read_text(encoding="utf-8"))
        self.assert_nothing_left()


class AsMpirun(jobs.JobTest):
    """hlaunch through a link named mpirun or mpiexec, on one host."""

    count = 1

    def setUp(self):
        super().setUp()
        self.links = self.lab.folder / "links"
        made = self.nodes[0].run(lab.HLAUNCH, "--install-links", self.links)
        self.assertEqual(made.code, 0, str(made))

    def mpirun(self, *words, name="mpirun", **options):
        return self.nodes[0].start(self.links / name, *words, **options)

    def assert_says(self, run, lines, code=0):
        self.assert_done([run], code, 60)
        self.assertEqual(sorted(run.out.splitlines()), lines, str(run))

    def test_words_of_open_mpi_and_of_hydra(self):
        script = 'echo $RANK of $WORLD_SIZE: $A$B$C $(pwd) $1'
        lines = [f"{rank} of 3: 123 /usr -n" for rank in range(3)]
        for name, words in (("mpirun", ["-np", 3, "-x", "A=1", "-x", "B=2", "--wdir", "/usr"]),
                            ("mpiexec", ["-n", 3, "-genv", "A", 1, "-env", "B", 2, "-wdir", "/usr"])):
            run = self.mpirun(*words, "--mca", "rmaps_base_verbose", 1, "-x", "C=3", "sh", "-c",
                              script, "sh", "-n", name=name)
            self.assert_says(run, lines)
            self.assertEqual(run.err, "hlaunch: --mca rmaps_base_verbose is for a part of mpirun "
                             "that is not here: ignored\n")

    def test_the_program_is_none_of_python(self):
        run = self.mpirun("-n", 2, jobs.WORKER.replace("e2e_worker", "no_such_worker"))
        self.assert_done([run], jobs.NOT_FOUND, 20)
        self.assertIn("no such program", run.err)

    def test_lines_are_whole_with_and_without_tags(self):
        script = 'for i in 1 2 3 4 5 6 7 8 9; do printf "a$RANK "; printf "b$RANK"; echo " c"; done'
        run = self.mpirun("-n", 4, "sh", "-c", script)
        self.assert_says(run, sorted([f"a{rank} b{rank} c" for rank in range(4)] * 9))
        run = self.mpirun("-n", 2, "--tag-output", "--merge-stderr-to-stdout", "sh", "-c",
                          script + "; echo $RANK >&2")
        self.assert_says(run, sorted([f"[1,{rank}]<stdout>:a{rank} b{rank} c" for rank in range(2)] * 9
                                     + [f"[1,{rank}]<stderr>:{rank}" for rank in range(2)]))
        self.assertEqual(run.err, "")
        run = self.mpirun("-n", 1, "-l", "--timestamp-output", "echo", "x")
        self.assert_done([run], 0, 60)
        self.assertRegex(run.out, r"^20..-..-..T..:..:..\....Z \[0\] x\n$")

    def test_stdin_is_rank_0s_and_the_others_find_its_end(self):
        text = self.lab.folder / "text"
        text.write_text("hello\n", encoding="utf-8")
        for option, lines in (([], ["0:hello", "1:", "2:"]),
                              (["--stdin", "none"], ["0:", "1:", "2:"])):
            with open(text, encoding="utf-8") as stdin:
                run = self.mpirun("-n", 3, *option, "sh", "-c", "echo $RANK:$(cat)", stdin=stdin)
            self.assert_says(run, lines)

    def test_stdin_of_all_is_the_same_for_each_in_every_round(self):
        text = self.lab.folder / "text"
        text.write_bytes(bytes(range(256)) * 4096)  # More than a pipe can hold.
        said = self.nodes[0].run("sh", "-c", f"cksum < {text}").out.strip()
        # Rank 1 reads nothing, and delays no other rank.
        script = "test $RANK = 1 || echo $RANK:$(cksum)"
        for source in (f"< {text}", f"cat {text} |"):
            words = f"{self.links / 'mpirun'} -n 3 --stdin all sh -c '{script}'"
            line = f"{words} {source}" if source[0] == "<" else f"{source} {words}"
            self.assert_says(self.nodes[0].start("sh", "-c", line), [f"{rank}:{said}" for rank in (0, 2)])
        script = "echo $RANK:$(cat); exit $((1 - TORCHELASTIC_RESTART_COUNT))"
        line = f"echo x | {self.links / 'mpirun'} -n 1 --max-restarts 1 --stdin all sh -c '{script}'"
        self.assert_says(self.nodes[0].start("sh", "-c", line), ["0:x", "0:x"])

    def test_the_first_failures_own_code(self):
        run = self.mpirun("-n", 3, "sh", "-c", "test $RANK != 2 || exit 7; exec sleep 1000")
        self.assert_done([run], 7, 60)
        self.assertIn("rank 2", run.err)

    def test_a_time_limit(self):
        run = self.mpirun("-n", 2, "--timeout", 1, "sleep", 1000)
        self.assert_done([run], jobs.CODES["Timeout"], 60)
        self.assertIn("the job took longer than --timeout, 1 s", run.err)
        run = self.mpirun("-n", 2, "--timeout", 1000, "true")
        self.assert_done([run], 0, 60)

    def test_ranks_for_each_socket(self):
        run = self.mpirun("--map-by", "ppr:2:socket", "sh", "-c", "echo $RANK",
                          env={"HWLOC_SYNTHETIC": "pack:2 core:2 pu:1"})
        self.assert_says(run, ["0", "1", "2", "3"])
        for ranks, code in ((3, 0), (5, jobs.USAGE)):
            run = self.mpirun("-n", ranks, "--map-by", "ppr:2:socket", "sh", "-c", "echo $RANK",
                              env={"HWLOC_SYNTHETIC": "pack:2 core:2 pu:1"})
            self.assert_says(run, ["0", "1", "2"] if code == 0 else [], code)
        self.assertIn("2:socket: these are 4 workers on this host, and its part of -n is 5", run.err)

    def test_a_rankfile_binds(self):
        file = self.lab.folder / "ranks"
        file.write_text("rank 1=localhost slot=0:*\nrank 0=localhost slot=0\n", encoding="utf-8")
        run = self.mpirun("--rankfile", file, "--report-bindings", "sh", "-c", "echo $RANK of $WORLD_SIZE")
        self.assert_says(run, ["0 of 2", "1 of 2"])
        self.assertRegex(run.err, r"local rank 0 .* CPUs? 0")

    def test_more_ranks_than_n_per_host_are_refused(self):
        run = self.mpirun("-n", 3, "-N", 2, "true")
        self.assert_done([run], jobs.USAGE, 20)
        self.assertIn("-n 3 and --nproc-per-node 2 (-N), the most ranks of this host", run.err)
        for words in (["-n", 2, "-N", 3], ["-n", 2, "-ppn", 1]):  # Hydra goes round its hosts.
            self.assert_says(self.mpirun(*words, "sh", "-c", "echo $RANK of $WORLD_SIZE"),
                             ["0 of 2", "1 of 2"])

    def test_what_variables_say_of_hosts_is_heard(self):
        hosts = self.lab.folder / "hosts"
        hosts.write_text("localhost slots=2\n", encoding="utf-8")
        env = {"OMPI_MCA_orte_default_hostfile": hosts, "OMPI_MCA_mca_base_env_list": "A=1;B=2"}
        run = self.mpirun("sh", "-c", "echo $RANK of $WORLD_SIZE: $A$B", env=env)
        self.assert_says(run, ["0 of 2: 12", "1 of 2: 12"])
        # The arguments of ssh reach it.
        ssh = self.lab.folder / "with_ssh/ssh"
        ssh.parent.mkdir()
        ssh.write_text('#!/bin/sh\necho "ssh was told $*" >&2\nexit 255\n', encoding="utf-8")
        ssh.chmod(0o755)
        env = {"PATH": f"{ssh.parent}:{os.environ['PATH']}", "HLAUNCH_SSH_ARGS": "-4"}
        run = self.mpirun("-H", "192.0.2.1", "-n", 1, "--mca", "plm_rsh_args", "-p3022", "true", env=env)
        self.assert_done([run], jobs.CODES["NotStarted"], 30)
        self.assertRegex(run.err, r"ssh was told .* -4 -p3022 -- 192\.0\.2\.1")

    def test_many_short_ranks_never_hang(self):
        for _ in range(50):
            run = self.mpirun("-n", 64, "true")
            self.assertEqual(run.wait(60), 0, str(run))
        self.assert_nothing_left()

    def test_nothing_outlives_any_process_of_the_launcher(self):
        for of_launcher in range(2):  # The keeper, and the agent below it.
            run = self.mpirun("-n", 2, "sh", "-c", "echo up; sleep 1000 & exec sleep 1000")
            lab.poll(lambda: run.out.count("up\n") == 2, 20)
            killed = [run.pid, jobs.agent_of(run)][of_launcher]
            os.kill(killed, signal.SIGKILL)
            run.wait(60)
            self.assert_nothing_left(timeout=20)

    def test_what_is_not_there_is_refused_with_a_reason(self):
        for words, said in ((["-n", 1, "true", ":", "true"], "program 2: of several programs each needs -n"),
                            (["--rankfile", "no/f", "true"], "no/f: No such file")):
            run = self.mpirun(*words)
            self.assert_done([run], jobs.USAGE, 20)
            self.assertIn(said, run.err)


if __name__ == "__main__":
    lab.main()
