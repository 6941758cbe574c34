#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Several programs in one job: with the syntax of mpirun and mpiexec, as the real ones start them,
and with --also; with MPI programs and others, on one host and on two."""

import os
import pathlib
import re
import shutil
import subprocess

import jobs
import lab

SOURCE = lab.WORKERS / "mpi_program.c"
WIRES = {"UCX_TLS": "sm,self", "OMPI_MCA_pml": "ob1"}
# Namespaces as hosts have only TCP between them.
IN_NAMESPACES = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "eth0"}
IN_PYTHON = """from mpi4py import MPI
import sys
world = MPI.COMM_WORLD
print("MPI rank", world.rank, "of", world.size, "program", world.Get_attr(MPI.APPNUM), sys.argv[1],
      flush=True)
world.Barrier()
"""


def build(test, compiler):
    if not shutil.which(compiler):
        test.skipTest(f"no {compiler} here (Debian: libmpich-dev, libopenmpi-dev)")
    program = test.lab.folder / f"program.{compiler}"
    built = subprocess.run([compiler, "-o", program, SOURCE], capture_output=True, text=True,
                           timeout=300, check=False)
    if "mpi.h: No such file" in built.stderr:
        test.skipTest(f"{compiler} has no headers (Debian: libmpich-dev, libopenmpi-dev)")
    test.assertEqual(built.returncode, 0, built.stderr)
    return str(program)


class Programs(jobs.JobTest):
    count = 1

    def setUp(self):
        super().setUp()
        self.links = self.lab.folder / "links"
        made = self.nodes[0].run(lab.HLAUNCH, "--install-links", self.links)
        self.assertEqual(made.code, 0, str(made))

    def assert_lines(self, run, lines, code=0):
        self.assert_done([run], code, 60)
        self.assertEqual(sorted(run.out.splitlines()), lines, str(run))

    def mpirun(self, *words, name="mpirun", env=None, **options):
        return self.nodes[0].start(self.links / name, *words, env={**WIRES, **(env or {})}, **options)

    def assert_as_real(self, compiler, real, name, env):
        """Blocks of a command line, in a file too, and their variables mean what they mean
        there."""
        if not shutil.which(real):
            self.skipTest(f"no {real} here (Debian: openmpi-bin, mpich)")
        program = build(self, compiler)
        line = ["-n", 2, "-x" if name == "mpirun" else "-env", "ROLE=one", program, "a", ":",
                "-n", 1, program, "b", ":", "-n", 1, *(["-x", "ROLE=three"] if name == "mpirun" else
                                                       ["-env", "ROLE", "three"]),
                "-wdir", "/usr", program]
        if name == "mpiexec":
            line[2:4] = ["-env", "ROLE", "one"]
        here = self.nodes[0].run(real, *line, env={**WIRES, **env}, timeout=60)
        self.assertEqual(here.code, 0, str(here))
        lines = sorted(here.out.splitlines())
        self.assertIn("MPI rank 3 of 4, sum 6, program 2, no argument, ROLE three, in /usr", lines)
        self.assert_lines(self.mpirun(*line, name=name), lines)
        blocks = " ".join(str(word) for word in line).split(" : ")
        file = self.lab.folder / "programs"
        file.write_text("# three\n" + "\n".join(blocks) + "\n", encoding="utf-8")
        self.assert_lines(self.mpirun("-configfile", file, name=name), lines)

    def test_as_open_mpi(self):
        self.assert_as_real("mpicc.openmpi", "mpirun.openmpi", "mpirun", {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1"})

    def test_as_mpich(self):
        self.assert_as_real("mpicc.mpich", "mpiexec.hydra", "mpiexec", {})

    def assert_wheel(self, name):
        python = os.environ.get(name)
        if not python or not pathlib.Path(python).exists():
            self.skipTest(f"no {name} (tests/run makes it where a Python index is reachable)")
        script = self.lab.folder / "program.py"
        script.write_text(IN_PYTHON, encoding="utf-8")
        run = self.mpirun("-n", 1, python, script, "a", ":", "-n", 2, python, script, "b",
                          env={"LD_LIBRARY_PATH": str(pathlib.Path(python).parents[1] / "lib")})
        self.assert_lines(run, ["MPI rank 0 of 3 program 0 a", "MPI rank 1 of 3 program 1 b",
                                "MPI rank 2 of 3 program 1 b"])

    def test_mpich_5(self):
        self.assert_wheel("HLAUNCH_MPICH_PYTHON")

    def test_open_mpi_5(self):
        self.assert_wheel("HLAUNCH_OPEN_MPI_PYTHON")

    def test_two_mpis_cannot_be_one_world(self):
        run = self.mpirun("-n", 1, build(self, "mpicc.mpich"), ":", "-n", 1,
                          build(self, "mpicc.openmpi"))
        self.assert_done([run], jobs.NOT_EXECUTABLE, 20)
        self.assertIn("cannot be one MPI world", run.err)

    def test_another_program_beside_those_of_a_job(self):
        run, = self.start("sh", "-c", "echo $RANK of $WORLD_SIZE trains", options=[
            "-n", 3, "--also", "-n 1 -x PORT=9 --wdir /usr sh -c 'echo $RANK serves $PORT in $PWD'",
            "--log-prefix", "none"])
        self.assert_lines(run, ["0 of 3 trains", "1 of 3 trains", "2 serves 9 in /usr"])

    def test_its_failure_is_that_of_the_job(self):
        run, = self.start("sleep", 1000, options=["-n", 2, "--also", "-n 1 sh -c 'exit 7'"])
        self.assert_done([run], 7, 30)
        self.assertIn("rank 1", run.err)


class ProgramsOnTwoHosts(jobs.JobTest):
    def test_the_last_ranks_run_the_other_program(self):
        runs = self.start("sh", "-c", "echo $RANK trains", options=[
            "--nproc-per-node", 2, "--also", "-n 3 sh -c 'echo $RANK serves'", "--log-prefix", "none"])
        self.assert_done(runs, 0, 60)
        self.assertEqual(sorted(runs[0].out.split()), ["0", "1", "serves", "trains"], str(runs[0]))
        self.assertEqual(sorted(runs[1].out.split()), ["2", "3", "serves", "serves"], str(runs[1]))

    def test_one_world_of_open_mpi(self):
        program = build(self, "mpicc.openmpi")
        runs = self.start(program, "a", env=IN_NAMESPACES, options=[
            "--nproc-per-node", 2, "--log-prefix", "none", "--also",
            f"-n 2 -x ROLE=b --wdir /usr {program} b", "--also", f"-n 1 -x ROLE=c --wdir /usr {program}"])
        self.assert_done(runs, 0, 60)
        said = [re.sub(", in .*", "", line) for run in runs for line in sorted(run.out.splitlines())]
        self.assertEqual(said, ["MPI rank 0 of 4, sum 6, program 0, a, ROLE unset",
                                "MPI rank 1 of 4, sum 6, program 1, b, ROLE b",
                                "MPI rank 2 of 4, sum 6, program 1, b, ROLE b",
                                "MPI rank 3 of 4, sum 6, program 2, no argument, ROLE c"],
                         self.told(runs))

    def test_too_few_ranks_start_nothing(self):
        runs = self.start("echo", "started", options=["--also", "-n 3 echo started"])
        for run in runs:
            self.assertNotEqual(run.wait(60), 0, str(run))
            self.assertNotIn("started\n", run.out)
        self.assertIn("the programs of --also need 3 ranks, and there are 2", self.told(runs))
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
