#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`hlaunch --hosts` on hosts with real sshds: one command starts all and leaves nothing behind."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import jobs
import lab
import ssh_lab

NOT_STARTED = jobs.CODES["NotStarted"]
LOSS_LIMIT = 6  # Seconds.
# An agent of another version writes this. The nonce is a field of its input.
OTHER_VERSION = """#!/bin/sh
nonce=$(dd bs=4096 count=1 2> /dev/null | tr -c 'A-Za-z0-9=_-' '\\n' | sed -n 's/^.*nonce=//p')
echo "hlaunch-agent/1 $nonce started 9.9.9+fedcba 1"
exec sleep 5
"""


class SshTest(jobs.JobTest):
    """Every node has an sshd that accepts node0's key, and node0 knows all host keys."""

    count = 4

    def setUp(self):
        if ssh_lab.missing():
            self.skipTest(ssh_lab.missing())
        super().setUp()
        self.ssh = ssh_lab.SshLab(self.lab)

    def launch(self, *words, hosts=None, env=None, **more):
        hosts = hosts or ",".join(node.name for node in self.nodes)
        return self.nodes[0].start(
            lab.HLAUNCH, "--hosts", hosts, "--loss-limit", LOSS_LIMIT, "--shutdown-timeout", 3,
            *words, env={"PYTHON_EXEC": jobs.PYTHON, **(env or {})}, **more)

    def left(self):
        """The processes on any node, except sshd and its children."""
        return [f"{node.name}: {line}" for node in self.nodes
                for line in node.processes().values()
                if not line.startswith(("sshd", ssh_lab.SSHD))]

    def assert_nothing_left(self, timeout=3):
        lab.poll(lambda: not self.left(), timeout)
        self.assertEqual(self.left(), [], self.told(self.lab.runs[-1:]))

    def pids(self, node, pattern):
        """The pids, as the test sees them."""
        return [pid for pid in lab.descendants(node.init)
                + [each for run in self.lab.runs for each in lab.descendants(run.process.pid)
                   if run.node is node]
                if re.search(pattern, lab.command_line(pid))]


class Started(SshTest):
    def test_what_rank_0_serves_beside_the_store_is_reached_from_all_hosts(self):
        run = self.launch("--no-python", lab.WORKERS / "port_worker.py", "beside")
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertEqual(run.out.count("OK beside"), 4, str(run))

    def test_this_hosts_ranks_get_only_the_variables_that_are_exported(self):
        for options, seen in ((("--export", "none"), "- -"), (("--export", "GREETING"), "hi -"),
                              (("--export", "none", "-x", "OTHER"), "- there")):
            run = self.launch(*options, "--no-python", "sh", "-c",
                              'echo "SEES ${GREETING:--} ${OTHER:--}"', hosts="node0,node1",
                              env={"GREETING": "hi", "OTHER": "there"})
            self.assertEqual(run.wait(60), 0, str(run))
            self.assertEqual(run.out.count(f"SEES {seen}\n"), 2, str(run))

    def test_two_names_of_one_other_host_are_refused(self):
        node = self.nodes[1]
        run = self.launch("--no-python", "sh", "-c", "sleep 60", hosts=f"{node.name},{node.ip}")
        self.assertEqual(run.wait(30), NOT_STARTED, str(run))
        self.assertRegex(run.err, rf"({node.name} and {node.ip}|{node.ip} and {node.name}) are one "
                                  r"machine, .* as in \S+:2", str(run))
        self.assert_nothing_left(10)

    def test_one_command_starts_all_hosts_and_ends_as_the_job_does(self):
        run = self.launch("--nproc-per-node", 2, "-x", "GREETING=hello there; $x", jobs.WORKER,
                          "env", "show", "GREETING")
        self.assertEqual(run.wait(60), 0, str(run))
        found = jobs.environments(run)
        self.assertEqual(sorted(int(facts["RANK"]) for facts in found), list(range(8)), str(run))
        by_node = sorted((int(facts["RANK"]), int(facts["GROUP_RANK"])) for facts in found)
        self.assertEqual([group for _, group in by_node], [0, 0, 1, 1, 2, 2, 3, 3])
        self.assertEqual(run.out.count("hello there; $x"), 8, str(run))
        self.assert_nothing_left()
        # A failing job ends with the worker's own code and reports it once.
        run = self.launch(jobs.WORKER, "env", "fail", 2, 37, 0, "sleep", 60)
        self.assertEqual(run.wait(60), 37, str(run))
        self.assertEqual(len(re.findall("job failed: rank 2 ", run.err)), 1, str(run))
        self.assertEqual(run.err.count("exit code 37"), 1, str(run))
        self.assert_nothing_left()
        # Standard input goes to rank 0. The hostfile gives each host's number of workers.
        hostfile = self.nodes[0].folder / "hosts"
        hostfile.write_text("# two\nnode2 slots=2\nnode1\n", encoding="utf-8")
        text = self.nodes[0].folder / "input"
        text.write_text("line\n" * 100_000, encoding="utf-8")
        with text.open(encoding="utf-8") as stdin:
            run = self.nodes[0].start(lab.HLAUNCH, "--hostfile", hostfile, "--no-python", "sh",
                                      "-c", "echo rank $RANK of $WORLD_SIZE: $(wc -l)", stdin=stdin)
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertRegex(run.out, "rank 0 of 3: 100000")
        self.assertRegex(run.out, "rank 1 of 3: 0")
        self.assertRegex(run.out, "rank 2 of 3: 0")
        self.assert_nothing_left()

    def test_text_without_a_newline_is_shown_while_its_end_is_awaited(self):
        go = self.nodes[0].folder / "go"
        script = (f'printf "rank $RANK asks: "; while [ ! -e {go} ]; do sleep 0.1; done; '
                  'echo "and has the answer"')
        run = self.launch("--nproc-per-node", 2, "--no-python", "sh", "-c", script)
        self.assertTrue(lab.poll(lambda: all(f"[{rank}] rank {rank} asks: " in run.out
                                             for rank in range(8)), 12), str(run))
        self.assertNotIn("answer", run.out)
        go.touch()
        self.assertEqual(run.wait(60), 0, str(run))
        for rank in range(8):
            self.assertRegex(run.out, rf"\[{rank}\] rank {rank} asks: and has the answer\n", str(run))
        for line in run.out.splitlines():  # No line has text of two ranks.
            self.assertRegex(line, r"^\[(\d)\] rank \1 asks: (and has the answer)?$", str(run))
        self.assert_nothing_left()

    def test_a_jump_host_gets_no_more_connections_at_once_than_its_sshd_takes(self):
        # The hosts are twelve names of one host, behind a jump host that drops connections from the
        # ninth on. Each has files of its own, as a container has, and so is another machine.
        program = self.nodes[0].folder / "hlaunch-in-a-container"
        program.write_text(f'#!/bin/sh\nexec unshare --mount {lab.HLAUNCH} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        jump, host = self.nodes[3], self.nodes[1]
        self.ssh.limit(jump, "8:100:9")
        self.ssh.limit(host, "100")
        (self.ssh.home / "config").write_text(
            "Host far*\n  HostName node1\n  ProxyJump node3\n", encoding="utf-8")
        run = self.launch("--agent-path", program, "--no-python", "sh", "-c", "echo here $RANK",
                          hosts="far[01-12]")
        self.assertEqual(run.wait(60), 0, f"{run}\n{jump.sshd}")
        self.assertEqual(len(re.findall("here ", run.out)), 12, str(run))
        self.assertNotIn("MaxStartups", jump.sshd.err, str(run))
        self.assert_nothing_left()

    def test_each_fault_is_named_with_what_helps_and_the_others_are_ended(self):
        node = self.nodes[3]
        script = self.nodes[0].folder / "hlaunch-of-another-version"
        script.write_text(OTHER_VERSION, encoding="utf-8")
        script.chmod(0o755)
        only_here = self.nodes[0].folder / "only-here"
        only_here.mkdir()
        ssh_lab.at(node, f"mount -t tmpfs tmpfs {self.nodes[0].folder}")

        def no_way_back():
            for table in ("iptables", "ip6tables"):
                ssh_lab.at(node, f"{table} -A OUTPUT -p tcp --syn -j REJECT")

        faults = [
            (lambda: None, {"cwd": only_here}, (), "no working directory .*only-here"),
            (lambda: self.ssh.refuse(node), {}, (),
             r"Permission denied \(publickey\).*ssh-copy-id node3"),
            (self.ssh.forget_hosts, {}, (), "Host key verification failed.*ssh-keyscan -H node"),
            (no_way_back, {}, (), r"cannot reach this host: 10\.77\.0\.10:.*firewall"),
            (lambda: self.ssh.end_sshd(node), {}, (), "Connection refused.*sshd"),
            (lambda: None, {}, ("--agent-path", script), r"hlaunch there is 9\.9\.9\+fedcba"),
            (lambda: None, {}, ("--launch-agent", "sh -c 'exec sleep 60'", "--join-timeout", 2),
             "sh did not answer within 2 s"),
        ]
        for plant, more, words, says in faults:
            plant()
            began = time.monotonic()
            hosts = "node0,node1" if words else None
            run = self.launch(*words, jobs.WORKER, "env", "sleep", 60, hosts=hosts,
                              **({"cwd": "/"} | more))
            self.assertEqual(run.wait(15), NOT_STARTED, str(run))
            if (took := time.monotonic() - began) > 15:
                print(f"slow: {says} took {took:.0f} s")
            self.assertRegex(run.err, f"cannot start on node.: .*{says}", str(run))
            self.assertNotIn("ENV", run.out)
            self.assert_nothing_left()
            self.ssh.heal()
            ssh_lab.at(node, "iptables -F OUTPUT && ip6tables -F OUTPUT")
        # The other nodes are enough for the job.
        run = self.launch("--nnodes", "3:4", "--last-call", 600, jobs.WORKER, "env", cwd="/")
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertRegex(run.err, "node3: .*the job goes on without it")
        self.assertEqual(len(jobs.environments(run)), 3, str(run))

    def test_a_host_without_hlaunch_is_sent_it_and_keeps_nothing(self):
        bare = self.nodes[1]
        ssh_lab.at(bare, f"mount -t tmpfs tmpfs {lab.BIN}")
        kept = bare.folder / "tmp"
        kept.mkdir()
        run = self.launch(jobs.WORKER, "env", hosts="node0,node1")
        self.assertEqual(run.wait(30), NOT_STARTED, str(run))
        self.assertRegex(run.err, "cannot start on node1: .*send it with --push", str(run))
        # A PATH with few tools, as in a container.
        tools = bare.folder / "tools"
        tools.mkdir()
        bare.run("busybox", "--install", "-s", tools)
        run = self.launch("--push", "-n", 3, "--launch-agent",
                          f"ssh -oBatchMode=yes %h env PATH={tools} TMPDIR={kept}", jobs.WORKER, "env",
                          hosts="node0,node1")
        self.assertEqual(run.wait(60), 0, str(run))
        nodes = sorted(facts["NODE_RANK"] for facts in jobs.environments(run))
        self.assertEqual(nodes, list("001"), str(run))
        # It keeps nothing while it runs either, so nothing can be left whichever process is killed.
        run = self.launch("--push", "--launch-agent", f"ssh -oBatchMode=yes %h env TMPDIR={kept}",
                          jobs.WORKER, "env", "sleep", 600, hosts="node0,node1")
        self.wait_for_workers([run], 2, 30)
        self.assertEqual(list(kept.glob("hlaunch.*")), [])
        os.kill(run.pid, signal.SIGKILL)
        self.assertNotEqual(run.wait(60), 0, str(run))
        self.assert_nothing_left(4 * LOSS_LIMIT)

    def test_an_open_mpi_program_runs_where_hlaunch_is_sent(self):
        if not shutil.which("mpicc.openmpi") or not pathlib.Path(lab.BIN, "hlaunch-pmix").exists():
            self.skipTest("no Open MPI, or no hlaunch-pmix (Debian: libopenmpi-dev, libpmix-dev)")
        program = self.lab.folder / "hello"
        subprocess.run(["mpicc.openmpi", "-o", program, lab.WORKERS / "mpi_worker.c"], check=True,
                       timeout=300)
        bare = self.nodes[1]
        ssh_lab.at(bare, f"mount -t tmpfs tmpfs {lab.BIN}")
        kept = bare.folder / "tmp"
        kept.mkdir()
        run = self.launch("--push", "-n", 4, "--launch-agent",
                          f"ssh -oBatchMode=yes %h env TMPDIR={kept}", "-x", "OMPI_MCA_pml=ob1",
                          "-x", "OMPI_MCA_btl_tcp_if_include=eth0", program, hosts="node0,node1")
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertEqual(sorted(re.findall(r"MPI rank \d of \d, \d here", run.out)),
                         [f"MPI rank {rank} of 4, 2 here" for rank in range(4)], str(run))
        self.assertEqual(list(kept.iterdir()), [])
        self.assert_nothing_left()

    def test_all_hosts_run_the_python_of_the_environment_or_say_that_they_have_none(self):
        environment = self.lab.folder / "environment"
        subprocess.run([jobs.PYTHON, "-m", "venv", "--without-pip", environment], check=True)
        os.symlink(lab.HLAUNCH, environment / "bin" / "hlaunch")
        script = self.lab.folder / "prefix.py"
        script.write_text("import sys; print(sys.prefix)\n", encoding="utf-8")
        words = (environment / "bin" / "hlaunch", "--hosts", "node0,node1", script)
        run = self.nodes[0].start(*words)
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertEqual(run.out.count(str(environment)), 2, str(run))
        # node1 alone has none: its own view of the folder is empty.
        self.nodes[1].run("mount", "--bind", self.nodes[1].folder, environment)
        run = self.nodes[0].start(*words)
        self.assertEqual(run.wait(60), 0, str(run))
        self.assertEqual(run.out.count(str(environment)), 1, str(run))
        self.assertIn(f"{environment}/bin/python3, which hlaunch runs scripts by", run.err)

    def test_an_allocation_of_another_system_is_started_by_its_own_starter(self):
        # A stand-in for LSF's blaunch that passes the job's variables on and uses ssh.
        folder = self.nodes[0].folder / "lsf"
        folder.mkdir()
        (folder / "blaunch").write_text(
            "#!/bin/sh\nhost=$1; shift\nexec ssh -oBatchMode=yes $host \"env LSB_JOBID=$LSB_JOBID "
            "LSB_MCPU_HOSTS='$LSB_MCPU_HOSTS' $*\"\n", encoding="utf-8")
        (folder / "blaunch").chmod(0o755)
        run = self.nodes[0].start(
            lab.HLAUNCH, "--hosts", "allocation", jobs.WORKER, "env",
            env={"PYTHON_EXEC": jobs.PYTHON, "PATH": f"{folder}:{os.environ['PATH']}",
                 "LSB_JOBID": 9, "LSB_MCPU_HOSTS": "node0 2 node1 1"})
        self.assertEqual(run.wait(60), 0, str(run))
        nodes = sorted(facts["NODE_RANK"] for facts in jobs.environments(run))
        self.assertEqual(nodes, list("001"), str(run))
        self.assert_nothing_left()


class NothingLeft(SshTest):
    def running(self, *words):
        run = self.launch(*words, jobs.WORKER, "env", "family", "sleep", 600)
        self.wait_for_workers([run], 4, 30)
        return run

    def test_an_interrupt_reaches_every_worker(self):
        run = self.running()
        os.kill(run.pid, signal.SIGINT)
        self.assertEqual(run.wait(20), 128 + signal.SIGINT, str(run))
        self.assert_nothing_left()
        self.assertRegex(run.err, "SIGINT: stopping the job on all hosts")

    def test_a_second_interrupt_kills(self):
        run = self.launch("--shutdown-timeout", 300, jobs.WORKER, "stubborn", "env", "sleep", 600)
        self.wait_for_workers([run], 4, 30)
        os.kill(run.pid, signal.SIGINT)
        self.assertTrue(lab.poll(lambda: "stopping the job" in run.err, 10), str(run))
        os.kill(run.pid, signal.SIGINT)
        self.assertEqual(run.wait(20), 128 + signal.SIGINT, str(run))
        self.assert_nothing_left(LOSS_LIMIT)

    def test_nothing_outlives_whoever_is_killed(self):
        for victim in ("conductor", "keeper", "ssh", "stubs", "cable"):
            with self.subTest(victim):
                run = self.running()
                if victim == "conductor":
                    os.kill(jobs.agent_of(run), signal.SIGKILL)
                elif victim == "keeper":
                    os.kill(run.pid, signal.SIGKILL)
                elif victim in ("ssh", "stubs"):
                    nodes, what = ((self.nodes[:1], "^ssh ") if victim == "ssh" else
                                   (self.nodes[1:], "hlaunch agent --stdin"))
                    victims = [self.pids(node, what) for node in nodes]
                    self.assertTrue(all(victims), str(run))
                    for pid in sum(victims, []):
                        with contextlib.suppress(ProcessLookupError):  # One may end others.
                            os.kill(pid, signal.SIGKILL)
                else:
                    self.nodes[2].cut()
                self.assertNotEqual(run.wait(60), 0, str(run))
                self.assert_nothing_left(4 * LOSS_LIMIT)
                if victim == "cable":
                    self.nodes[2].heal()


if __name__ == "__main__":
    if os.geteuid() != 0:
        lab.skip("sshd needs root")
    lab.main()
