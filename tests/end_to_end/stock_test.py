#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Programs that frameworks ship, and programs from their documentation, run unchanged."""

import os
import pathlib
import re
import signal
import subprocess
import unittest

import jobs
import lab
import ssh_lab

PROGRAMS = lab.WORKERS / "stock"


class WithStock(jobs.JobTest):
    """Runs programs on two nodes with two workers each, with the Python that has the packages."""

    package = ""
    nproc = 2

    @classmethod
    def setUpClass(cls):
        if not cls.package:
            raise unittest.SkipTest("a base class")
        cls.python = os.environ.get("HLAUNCH_STOCK_PYTHON")
        if not cls.python:
            raise unittest.SkipTest("HLAUNCH_STOCK_PYTHON names no Python; tests/run brings one "
                                    "where a Python index can be reached")
        found = subprocess.run(
            [cls.python, "-c", "import importlib.util, sys; spec = importlib.util.find_spec("
             "sys.argv[1]); print(spec.submodule_search_locations[0] if spec else '')",
             cls.package], text=True, capture_output=True, check=False, timeout=600).stdout.strip()
        if not found:
            raise unittest.SkipTest(f"{cls.python} has no {cls.package}")
        cls.shipped = pathlib.Path(found)

    def start_on_all(self, *command, env=None):
        """Starts a job whose nodes share one working directory, as on a cluster."""
        self.shared = self.lab.folder / "shared"
        self.shared.mkdir(exist_ok=True)
        return self.start(*command, options=["--nproc-per-node", self.nproc],
                          env={"PYTHON_EXEC": self.python, "HF_HUB_OFFLINE": "1",
                               "HOME": self.shared, **(env or {})}, cwd=self.shared)

    def run_on_all(self, *command, proof="OK: ", env=None):
        return self.run_torch(lambda: self.start_on_all(*command, env=env), proof, 150)

    def assert_each_rank_said(self, runs, pattern):
        """Each rank printed `pattern` once; {rank} and {world} stand for its place."""
        world = self.nproc * len(runs)
        out = "\n".join(run.out + run.err for run in runs)
        for rank in range(world):
            said = re.findall(pattern.format(rank=rank, world=world), out)
            self.assertEqual(1, len(said), f"rank {rank}: /{pattern}/\n{self.told(runs)}")


class Accelerate(WithStock):
    """The program with which accelerate tests `accelerate launch`, from its own package."""

    package, nproc = "accelerate", 1  # Its tensor checks are written for two processes.

    def test_its_test_of_a_whole_training(self):
        # `accelerate launch --cpu` sets this variable; without it each worker would be alone.
        last = "**Breakpoint trigger test**"
        runs = self.run_on_all(self.shipped / "test_utils/scripts/test_script.py",
                               proof=re.escape(last), env={"ACCELERATE_USE_CPU": "true"})
        self.assert_each_rank_said(
            runs, r"\[{rank}\] Distributed environment: .*MULTI_CPU  Backend: gloo\n"
                  r"(?:.*\n)*?\[{rank}\] Num processes: {world}\n"
                  r"(?:.*\n)*?\[{rank}\] Process index: {rank}\n")
        for run in runs:
            self.assertIn(last, run.out, self.told(runs))


class Lightning(WithStock):
    package = "lightning"

    def test_its_command_line(self):
        self.nproc = 1
        runs = self.run_on_all(PROGRAMS / "lightning_cli.py", "fit", "--trainer.accelerator=cpu",
                               "--trainer.strategy=ddp", "--trainer.num_nodes=2",
                               "--trainer.devices=1", "--trainer.max_epochs=1",
                               "--trainer.enable_progress_bar=false", "--trainer.logger=false",
                               proof="Trainer.fit. stopped: .max_epochs=1. reached")
        self.assert_each_rank_said(runs, r"GLOBAL_RANK: {rank}, MEMBER: \d/{world}")

    def test_its_trainer(self):
        runs = self.run_on_all(PROGRAMS / "lightning_trainer.py")
        self.assert_each_rank_said(
            runs, r"OK: rank {rank} of {world}, node [01], TorchElasticEnvironment\n")

    def test_its_strategy_that_spawns(self):
        self.nproc = 1
        runs = self.run_on_all("--per-node", PROGRAMS / "lightning_spawn.py")
        self.nproc = 2
        self.assert_each_rank_said(runs, r"OK: rank {rank} of {world}\n")


class Transformers(WithStock):
    package, nproc = "transformers", 1

    def test_its_trainer(self):
        runs = self.run_on_all(PROGRAMS / "transformers_trainer.py", "saved", 4)
        self.assert_each_rank_said(runs, r"OK: rank {rank} of {world}, local rank 0, step 4,")
        runs = self.run_on_all(PROGRAMS / "transformers_trainer.py", "saved", 6,
                               "saved/checkpoint-4")
        self.assert_each_rank_said(runs, r"OK: rank {rank} of {world}, local rank 0, step 6,")


class Torch(WithStock):
    package = "torch"

    def test_recipes_of_its_tutorials(self):
        runs = self.run_on_all(PROGRAMS / "torch_recipes.py", "saved")
        self.assert_each_rank_said(runs, r"OK: rank {rank} of {world} on 2 hosts\n")

    def test_what_record_wrote_is_reported(self):
        runs = self.start_on_all(PROGRAMS / "torch_recipes.py", "--fail", "no more data")
        # torch with gloo may abort while Python ends after the exception: jobs.TORCH_ENDS_BADLY.
        self.assert_done(runs, (1, 128 + signal.SIGABRT), 150)
        self.assert_said(runs[0], r"rank 3 ", r"ValueError: no more data")


class Jax(WithStock):
    package = "jax"

    def test_all_processes_are_gathered(self):
        for words in [], ["--bare"]:
            runs = self.run_on_all(PROGRAMS / "jax_psum.py", *words, env={"JAX_PLATFORMS": "cpu"})
            self.assert_each_rank_said(runs, r"OK: rank {rank} of {world}, {world} devices\n")


class OverSsh(WithStock):
    """One command on node0 starts both nodes."""

    package = "lightning"

    def test_a_trainer_of_lightning(self):
        if os.geteuid() != 0 or ssh_lab.missing():
            self.skipTest(ssh_lab.missing() or "sshd needs root")
        ssh_lab.SshLab(self.lab)
        shared = self.lab.folder / "shared"
        shared.mkdir()
        for _ in range(2):
            run = self.nodes[0].start(
                lab.HLAUNCH, "--hosts", "node0,node1", "--nproc-per-node", self.nproc,
                "-x", f"PYTHON_EXEC={self.python}", "-x", f"HOME={shared}",
                PROGRAMS / "lightning_trainer.py", cwd=shared)
            if run.wait(150) == 0 or jobs.TORCH_ENDS_BADLY not in str(run):
                break
        self.assertEqual(run.process.returncode, 0, str(run))
        for rank in range(4):
            self.assertRegex(run.out, f"OK: rank {rank} of 4, node {rank // 2}, Torch")


if __name__ == "__main__":
    lab.main()
