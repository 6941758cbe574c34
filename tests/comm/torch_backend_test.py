#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""torch.distributed with backend="hlaunch" against gloo: alone, under hlaunch, under torchrun.

The worker imports nothing of hlaunch: torch finds the backend by its entry point. Outside hlaunch
that takes HLAUNCH_TORCH_BACKEND.
"""

import pathlib
import subprocess
import sys
import unittest

import rank_processes

WORKER = pathlib.Path(__file__).with_name("torch_worker.py")
HLAUNCH = rank_processes.PACKAGE.parent / "bin/hlaunch"
VERBS = ["every_verb_is_as_gloos", "all_to_all_moves_lists", "works_have_futures",
         "messages_go_by_rank_and_tag", "objects_are_pickled", "functional_collectives_work",
         "groups_are_groups", "groups_split", "odd_tensors", "other_backends_are_mixed_or_refused",
         "a_group_can_be_made_again"]
CALLBACKS = ["a_callback_may_wait_for_other_calls", "a_callback_that_waits_holds_up_no_other",
             "a_future_waits_for_no_other_call", "what_fails_in_a_callback_is_its_futures",
             "a_group_may_be_left_while_a_future_waits",
             "messages_may_end_while_their_group_is_left", "power_sgd_trains_as_with_gloo",
             "hooks_train_as_with_gloo", "quantizing_hooks_train_as_with_gloo",
             "post_local_sgd_trains_as_with_gloo", "random_programs"]
TRAINING = ["ddp_trains_as_with_gloo", "fsdp_trains_as_ddp"]


class Backend(rank_processes.RanksTest):
    """Without a launcher: ranks meet by torch's FileStore, and hlaunch opens a store of its own."""

    def test_verbs_and_training(self):
        for size in (2, 3):
            with self.subTest(ranks=size):
                self.assert_ranks(size, WORKER, "hlaunch", "file", *VERBS, *TRAINING, *CALLBACKS,
                                  timeout=800)

    def test_a_rank_that_goes_is_named(self):
        self.assert_ranks(3, WORKER, "hlaunch", "file", "a_rank_that_goes_is_named",
                          codes=[0, 3, 0])

    def test_a_rank_that_is_done_disturbs_nobody(self):
        for way in ("a_rank_that_is_done_disturbs_nobody", "nor_does_one_that_ends_without_goodbye",
                    "nor_does_one_that_becomes_another_program"):
            with self.subTest(way):
                self.assert_ranks(3, WORKER, "hlaunch", "file", way)

    def test_ddp_says_that_a_rank_has_left(self):
        self.assert_ranks(3, WORKER, "hlaunch", "file", "ddp_says_that_a_rank_has_left")

    def test_an_import_makes_it_known_where_torch_does_not_look(self):
        code = ("import {}torch; from torch.distributed import Backend; "
                "print('HLAUNCH' in Backend._plugins)")
        env = rank_processes.environment(TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        for package, known in (("hlaunch.", "True"), ("", "False")):
            done = subprocess.run([sys.executable, "-c", code.format(package)], env=env, text=True,
                                  stdout=subprocess.PIPE, check=True, timeout=600)
            self.assertEqual(known, done.stdout.strip())

    def test_outside_hlaunch_an_import_of_torch_loads_nothing_of_it(self):
        code = "import sys, torch; print('hlaunch_autoload' in sys.modules, 'hlaunch' in sys.modules)"
        for asked in ("", "1"):
            env = rank_processes.environment(HLAUNCH_TORCH_BACKEND=asked)
            done = subprocess.run([sys.executable, "-c", code], env=env, text=True,
                                  stdout=subprocess.PIPE, check=True, timeout=600)
            self.assertEqual(f"True {asked == '1'}", done.stdout.strip())


class Mixed(rank_processes.RanksTest):
    """Together with gloo for GPUs: torch then puts a Backend of ours into its own group."""

    def test_verbs_and_training_and_callbacks(self):
        done = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"],
                              env=rank_processes.environment(), text=True, check=True,
                              stdout=subprocess.PIPE, timeout=600)
        if tuple(int(part) for part in done.stdout.split(".")[:2]) < (2, 14):
            self.skipTest(f"torch {done.stdout.strip()} takes no Backend written in Python")
        # torch keeps neither state nor source of a Work; it handles tensors on meta itself.
        known = [case for case in (*VERBS, *TRAINING, *CALLBACKS)
                 if case not in ("works_have_futures", "messages_go_by_rank_and_tag",
                                 "groups_split", "odd_tensors")]
        self.assert_ranks(2, WORKER, "cpu:hlaunch,cuda:gloo", "file", *known, timeout=800)


class Launched(unittest.TestCase):
    """With the store of an agent."""

    def run_under(self, *launcher):
        done = subprocess.run(
            [*map(str, launcher), "--nproc-per-node", "2", str(WORKER), "hlaunch", "env", *VERBS,
             "ddp_trains_as_with_gloo"], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=800,
            env=rank_processes.environment(PYTHON_EXEC=sys.executable))
        self.assertEqual(0, done.returncode, done.stdout)
        for rank in range(2):
            self.assertIn(f"rank {rank} of 2: done", done.stdout)

    def test_under_hlaunch(self):
        if not HLAUNCH.exists():
            self.skipTest(f"{HLAUNCH} is not built")
        self.run_under(HLAUNCH)

    def test_under_torchrun(self):
        self.run_under(sys.executable, "-m", "torch.distributed.run", "--standalone")


if __name__ == "__main__":
    unittest.main()
