#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""`mpirun hlaunch …` over two hosts, by Open MPI's mpirun and MPICH's mpiexec: once on every node
it is one job; more often it is refused with the line to write."""

import shutil

import jobs
import lab


class Mpirun(jobs.JobTest):
    """mpirun runs in node0's network and sees this host's processes, so that its remote shell can
    be a script that enters the nodes."""

    def setUp(self):
        super().setUp()
        self.agent = self.lab.folder / "enter"
        lines = ["#!/bin/sh", '[ "$1" = -x ] && shift  # Hydra speaks ssh.',
                 "host=$1; shift", "case $host in"]
        lines += [f'{node.ip}) exec {" ".join(node.enter())} sh -c "$*";;' for node in self.nodes]
        self.agent.write_text("\n".join([*lines, "esac", "exit 9"]) + "\n", encoding="utf-8")
        self.agent.chmod(0o755)
        self.env = {"PYTHON_EXEC": jobs.PYTHON, "PATH": f"{lab.BIN}:/usr/bin:/bin"}

    def mpirun(self, program, *words):
        if not shutil.which(program):
            self.skipTest(f"no {program} here (Debian: openmpi-bin, mpich)")
        node = self.nodes[0]
        enter, node.enter = node.enter, lambda: ["nsenter", "-t", str(node.init), "-n", "-u", "--"]
        try:
            run = node.start(program, *words, env=self.env)
        finally:
            node.enter = enter
        self.addCleanup(run.process.kill)  # Not one of the node's processes.
        return run

    def open_mpi(self, per_node, *words, options=()):
        hosts = ",".join(f"{node.ip}:{per_node}" for node in self.nodes)
        return self.mpirun("mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent",
                           self.agent, "--mca", "btl_tcp_if_include", "eth0", "--mca",
                           "oob_tcp_if_include", "eth0", "--host", hosts, "-N", per_node,
                           "--oversubscribe", *options, "hlaunch", *words)

    def hydra(self, *words, options=()):
        return self.mpirun("mpiexec.hydra", "-iface", "eth0", "-launcher", "ssh", "-launcher-exec",
                           self.agent,
                           "-hosts", ",".join(node.ip for node in self.nodes), "-ppn", "1", "-n",
                           "2", *options, "hlaunch", *words)

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

    def test_open_mpi_twice_a_node_is_refused(self):
        run = self.open_mpi(2, jobs.WORKER, "env")
        self.assertNotEqual(run.wait(60), 0, str(run))
        self.assertIn("write mpirun -N 1 hlaunch --nproc-per-node 2", run.err)
        self.assertEqual(jobs.environments(run), [], str(run))
        self.assert_nothing_left()

    def test_hydra_meets_where_its_user_says(self):
        run = self.hydra("--nproc-per-node", "2", jobs.WORKER, "env",
                         options=["-genv", "MASTER_ADDR", self.nodes[0].ip])
        self.assert_one_job(run)

    def test_hydra_without_an_address_is_refused(self):
        run = self.hydra(jobs.WORKER, "env")
        self.assertNotEqual(run.wait(60), 0, str(run))
        self.assertIn("add --rdzv-endpoint HOST, with the first node's name", run.err)
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
