#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Programs of four MPIs in each form in which a real Slurm starts hlaunch: always one world of all
ranks, each on the right host, and never a world for each rank."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

import jobs
import lab
import slurm_lab

# Namespaces as hosts have only TCP between them, and UCX takes all of them for one machine. There
# are more ranks than CPUs, so those that wait must not spin.
WIRES = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp",
         "FI_TCP_IFACE": "eth0", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "eth0",
         "OMPI_MCA_mpi_yield_when_idle": "1"}
SAID = r"MPI rank (\d+) of (\d+), (\d+) here, after \d+, sum (\d+), on (\w+)"

# Where hlaunch is called, with Slurm's words before it.
STEP, SHELL, SCRIPT = "srun", "salloc", "sbatch"
# Each form: where, the words for Slurm, hlaunch's name and words, what wraps the program, and how
# many ranks each node runs.
FORMS = [
    (STEP, "-N2 --ntasks-per-node=1", "hlaunch --nproc-per-node 2", "", [2, 2]),
    (STEP, "-N2 --ntasks-per-node=2", "hlaunch", "", [2, 2]),
    (STEP, "-N2 -n3", "hlaunch", "env A=1", [2, 1]),
    (STEP, "-N1 -n3", "hlaunch", "", [3]),
    (STEP, "-N2 --ntasks-per-node=2", "mpirun", "", [2, 2]),
    (SCRIPT, "-N2 --ntasks-per-node=2", "hlaunch -n 4", "bash -c", [2, 2]),
    (SCRIPT, "-N2 -n3", "mpirun", "", [2, 1]),
    (SHELL, "-N2 --ntasks-per-node=2", "mpirun -n 3", "env A=1", [2, 1]),
    (SHELL, "-N1 -n3", "mpirun", "bash -c", [3]),
]


class Matrix(unittest.TestCase):
    """A class gives the program of an MPI, or skips if this MPI is not here."""

    @classmethod
    def setUpClass(cls):
        if reason := slurm_lab.why_not():
            raise unittest.SkipTest(reason)
        cls.slurm = slurm_lab.SlurmLab(2)
        cls.addClassCleanup(cls.slurm.close)
        cls.mpirun = cls.slurm.folder / "mpirun"
        cls.mpirun.symlink_to(lab.HLAUNCH)

    def in_c(self, compiler):
        if not shutil.which(compiler):
            self.skipTest(f"no {compiler} here (Debian: libmpich-dev, libopenmpi-dev)")
        program = self.slurm.folder / f"worker.{compiler}"
        built = subprocess.run([compiler, "-o", program, lab.WORKERS / "mpi_worker.c"],
                               capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        return [str(program)], {}

    def wheel(self, name):
        python = os.environ.get(name)
        if not python or not pathlib.Path(python).exists():
            self.skipTest(f"no {name} (tests/run makes it where a Python index is reachable)")
        return [python, str(lab.WORKERS / "mpi_worker.py")], {
            "LD_LIBRARY_PATH": str(pathlib.Path(python).parents[1] / "lib")}

    def start(self, form, program, env):
        """Starts a job of this form; returns its run and the file with its output, if any."""
        where, asked, launcher, wrapper, _ = form
        command = [*wrapper.split(), *program]
        if wrapper == "bash -c":
            command = ["bash", "-c", f"{shlex.join(program)}; exit $?"]
        words = [word.replace("mpirun", str(self.mpirun)) for word in launcher.split()] + command
        out = None
        if where == SCRIPT:
            number = len(self.slurm.runs)
            script, out = (self.slurm.folder / f"{number}.{end}" for end in ("sh", "out"))
            script.write_text(f"#!/bin/bash\nexec {shlex.join(words)}\n", encoding="utf-8")
            words = ["--wait", f"--output={out}", script]
        return self.slurm.start(where, *asked.split(), *words, env={**WIRES, **env}), out

    def assert_one_world(self, form, run, out):
        code = run.wait(60)
        said = run.out + (out.read_text(errors="replace") if out and out.exists() else "")
        told = f"{form}\n{run}\n{said}\n{self.slurm.logs()}"
        self.assertEqual(code, 0, told)
        *_, here = form
        size = sum(here)
        nodes = [node for node, count in enumerate(here) for _ in range(count)]
        found = sorted((int(rank), *map(int, numbers), host)
                       for rank, *numbers, host in re.findall(SAID, said))
        self.assertEqual([line[:4] for line in found],
                         [(rank, size, here[node], size * (size - 1) // 2)
                          for rank, node in enumerate(nodes)], told)
        hosts = [line[4] for line in found]
        first = {node: hosts[nodes.index(node)] for node in nodes}
        self.assertEqual(hosts, [first[node] for node in nodes], told)
        self.assertEqual(len(set(hosts)), len(here), told)

    def assert_forms(self, program, env, forms=tuple(FORMS)):
        for form in forms:
            with self.subTest(form):
                self.assert_one_world(form, *self.start(form, program, env))


class OpenMpi(Matrix):
    def test_open_mpi_4(self):
        self.assert_forms(*self.in_c("mpicc.openmpi"))

    def test_open_mpi_5_with_mpi4py(self):
        forms = FORMS if os.environ.get("HLAUNCH_AT_LENGTH") else FORMS[1::3]
        self.assert_forms(*self.wheel("HLAUNCH_OPEN_MPI_PYTHON"), forms)


@unittest.skipUnless(os.environ.get("HLAUNCH_AT_LENGTH"), "needs two minutes (tests/run --full)")
class OthersAtLength(Matrix):
    def test_open_mpi_4_with_mpi4py(self):
        if subprocess.run([jobs.PYTHON, "-c", "import mpi4py"], check=False).returncode != 0:
            self.skipTest("no mpi4py here (Debian: python3-mpi4py)")
        self.assert_forms([jobs.PYTHON, str(lab.WORKERS / "mpi_worker.py")], {})

    def test_mpich_5_with_mpi4py(self):
        self.assert_forms(*self.wheel("HLAUNCH_MPICH_PYTHON"))

    def test_intel_mpi_with_mpi4py(self):
        self.assert_forms(*self.wheel("HLAUNCH_INTEL_MPI_PYTHON"))


del Matrix  # It is a base class and no test.

if __name__ == "__main__":
    lab.main()
