#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""MPI programs that hang: the ranks that wait in MPI compute as if they worked."""

import shutil
import signal
import subprocess
import unittest

import jobs
import lab

SOURCE = lab.WORKERS / "mpi_hang_worker.c"


@unittest.skipUnless(shutil.which("gdb"), "no gdb here")
class MpiHangTest(jobs.JobTest):
    compiler = "mpicc.mpich"
    count = 1

    def start_program(self, mode, *options):
        if not shutil.which(self.compiler):
            self.skipTest(f"no {self.compiler} here")
        if "openmpi" in self.compiler and not (lab.BIN / "hlaunch-pmix").exists():
            self.skipTest("hlaunch was built without hlaunch-pmix (Debian: libpmix-dev)")
        program = self.lab.folder / "worker"
        built = subprocess.run([self.compiler, "-g", "-o", program, SOURCE], capture_output=True,
                               text=True, timeout=300, check=False)
        if "mpi.h: No such file" in built.stderr:
            self.skipTest(f"{self.compiler} has no headers")
        self.assertEqual(built.returncode, 0, built.stderr)
        return self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 8,
                                   "--hang-action", "fail", "--shutdown-timeout", 1, *options,
                                   program, *mode)

    def hangs(self, mode, *says):
        run = self.start_program([mode])
        for pattern in says:
            run.wait_for(pattern, 120)
        self.assert_done([run], 128 + signal.SIGKILL, 60)

    def held_up(self, mode, does, call="MPI_Barrier, called in step"):
        self.hangs(mode, r"no rank has gone on for \d+ s. 2 of 3 ranks wait in MPI;",
                   rf"ranks 0,1: in {call} \(mpi_hang_worker.c:\d+\)",
                   rf"rank 2 \(.*pid \d+\) holds them up: it {does}")

    def is_well(self, mode):
        run = self.start_program([mode, "3"])
        self.assert_done([run], jobs.OK, 120)
        self.assertNotIn("has gone on", run.err, str(run))


class MpichHangs(MpiHangTest):
    def test_a_rank_that_sleeps_is_named_with_its_line(self):
        self.held_up("sleep", r"stands in load_shard \(mpi_hang_worker.c:\d+\)")

    def test_a_rank_that_is_stopped_is_named(self):
        self.held_up("stop", "is stopped")

    def test_a_rank_that_never_sends_is_named(self):
        self.held_up("receive", r"stands in main", "MPI_Recv, called in receive")


class OpenMpiHangs(MpichHangs):
    compiler = "mpicc.openmpi"


PYTHON_PROGRAM = """
import ctypes, time
mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
rank = ctypes.c_int()
mpi.MPI_Comm_rank(0x44000000, ctypes.byref(rank))
mpi.MPI_Barrier(0x44000000)
if rank.value == 2:
    time.sleep(600)
mpi.MPI_Barrier(0x44000000)
"""


class PythonHangs(MpiHangTest):
    def test_a_rank_of_a_python_program_is_named(self):
        if not shutil.which(self.compiler):
            self.skipTest("no MPICH here")
        program = self.lab.folder / "barrier.py"
        program.write_text(PYTHON_PROGRAM, encoding="utf-8")
        run = self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 8,
                                  "--hang-action", "fail", "--shutdown-timeout", 1, program,
                                  env={"PYTHON_EXEC": jobs.PYTHON})
        run.wait_for(r"no rank has gone on for \d+ s. 2 of 3 ranks wait in MPI;\n"
                     r"  ranks 0,1: in MPI_Barrier.*\n"
                     r"  rank 2 \(.*pid \d+\) holds them up: it ", 120)
        self.assert_done([run], 128 + signal.SIGKILL, 60)


class MpiCalls(MpiHangTest):
    """The kernel counts how often a call of MPI comes back, if it may."""

    def setUp(self):
        super().setUp()
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            if int(file.read()) > 2:
                self.skipTest("the kernel may not count here")

    def test_a_rank_that_computes_without_end_is_named(self):
        self.held_up("loop", "computes, reads or writes in")

    def test_ranks_that_all_receive_are_told(self):
        self.hangs("deadlock", "3 of 3 ranks wait in MPI, and no call ends:",
                   r"ranks 0-2: in MPI_Recv, called in receive \(mpi_hang_worker.c:\d+\)")


class MpiIsWell(MpiHangTest):
    """Slow, but healthy programs."""

    def test_nothing_is_said_of_one_that_computes(self):
        self.is_well("compute")

    def test_nothing_is_said_while_a_rank_reads_for_all(self):
        self.is_well("reads")

    def test_nothing_is_said_where_one_rank_is_always_late(self):
        self.is_well("imbalanced")


if __name__ == "__main__":
    lab.main()
