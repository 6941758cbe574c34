#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The Python package against NumPy, with 1 to 4 ranks."""

import ctypes
import pathlib
import socket
import subprocess
import sys
import unittest

import rank_processes

WORKER = pathlib.Path(__file__).with_name("python_worker.py")
LIBRARY = rank_processes.PACKAGE / "hlaunch/libhlcomm.so.1"
CASES = ["all_reduce_is_numpys", "all_kinds_of_memory", "every_verb_moves_what_it_says",
         "messages_go_by_rank_and_tag", "works_may_be_dropped_and_waited_for_in_any_order",
         "groups_have_numbers_of_their_own", "wrong_things_are_refused",
         "a_group_can_be_left_and_made_again", "groups_know_their_ranks", "objects_are_pickled",
         "batches_begin_together", "messages_to_oneself_arrive", "complex_numbers_are_added",
         "a_group_is_made_over_torchs_store"]


class Package(rank_processes.RanksTest):
    def test_one_to_four_ranks(self):
        for size in (1, 2, 3, 4):
            with self.subTest(ranks=size):
                self.assert_ranks(size, WORKER, *CASES)

    def test_a_rank_that_goes_is_named(self):
        self.assert_ranks(3, WORKER, "a_rank_that_goes_is_named", codes=[0, 3, 0])

    def test_a_rank_that_raises_says_what(self):
        self.assert_ranks(3, WORKER, "a_rank_that_raises_says_what", codes=[0, 1, 0])

    def test_calls_that_do_not_match_are_shown(self):
        self.assert_ranks(2, WORKER, "calls_that_do_not_match_are_shown")


class Loading(unittest.TestCase):
    """Loads a library that does not exist, or is not ours."""

    def load(self, library):
        done = subprocess.run([sys.executable, "-c", "from hlaunch import library; library.load()"],
                              env=rank_processes.environment(HLAUNCH_COMM_LIBRARY=library),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              check=False, timeout=600)
        return done.returncode, done.stdout

    def test_the_package_needs_no_library_until_a_group_is_made(self):
        subprocess.run([sys.executable, "-c", "import hlaunch; hlaunch.is_initialized()"],
                       env=rank_processes.environment(HLAUNCH_COMM_LIBRARY="/nowhere"), check=True,
                       timeout=600)

    def test_what_is_missing_is_named_with_the_way_out(self):
        code, said = self.load("/nowhere/libhlcomm.so.1")
        self.assertEqual(1, code)
        self.assertRegex(said, "ImportError: .*/nowhere/libhlcomm.so.1.*HLAUNCH_COMM_LIBRARY")

    def test_another_library_is_refused(self):
        code, said = self.load("libc.so.6")
        self.assertEqual(1, code)
        self.assertIn("is not hlaunch's library", said)

    def test_another_version_is_refused(self):
        sys.path.insert(0, str(rank_processes.PACKAGE))
        from hlaunch import library  # pylint: disable=import-outside-toplevel
        real = library.ABI_VERSION
        library.ABI_VERSION = real + 1
        try:
            with self.assertRaisesRegex(ImportError, f"ABI version {real}.* for {real + 1}"):
                library.declare(ctypes.CDLL(str(LIBRARY)), LIBRARY)
        finally:
            library.ABI_VERSION = real


class Heartbeats(unittest.TestCase):
    """The messages that a worker sends, without the library."""

    def said(self, code, **variables):
        done = subprocess.run([sys.executable, "-c", f"import hlaunch\n{code}"], check=True,
                              env=rank_processes.environment(HLAUNCH_COMM_LIBRARY="/nowhere",
                                                             **variables),
                              text=True, stdout=subprocess.PIPE, timeout=600)
        return done.stdout.split()

    def test_nothing_where_nobody_listens(self):
        self.assertEqual(["False"], self.said("print(hlaunch.heartbeat(1))"))
        self.assertEqual(["False"], self.said("print(hlaunch.heartbeat(1))",
                                              HLAUNCH_HEARTBEAT="@nobody is here"))

    def test_step_and_time_also_after_a_fork_and_never_a_wait(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
            agent.bind("")  # The kernel chooses a name.
            name = "@" + agent.getsockname()[1:].decode()
            said = self.said("import os\n"
                             "print(hlaunch.heartbeat(), hlaunch.heartbeat(7, timeout=1.5))\n"
                             "if not os.fork():\n"
                             "    hlaunch.heartbeat(8, timeout=float('inf'))\n"
                             "    os._exit(0)\n"
                             "os.wait()\n"
                             "print(all(hlaunch.heartbeat(i) for i in range(10000)))",
                             HLAUNCH_HEARTBEAT=name)
            self.assertEqual(["True"] * 3, said)
            heard = [agent.recv(1000).decode().split() for _ in range(3)]
        for words, expected in zip(heard, ([], ["step=7", "timeout_ms=1500"],
                                           ["step=8", "timeout_ms=0"])):
            self.assertEqual("heartbeat/1", words[0])
            self.assertEqual(expected, [word for word in words[1:] if "stacks" not in word])

    def test_a_good_moment_is_told_and_only_where_somebody_listens(self):
        self.assertEqual(["False"], self.said("print(hlaunch.at_boundary())"))
        self.assertEqual(["False"], self.said("print(hlaunch.at_boundary())",
                                              HLAUNCH_BOUNDARY="@nobody is here"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
            agent.bind("")
            name = "@" + agent.getsockname()[1:].decode()
            self.assertEqual(["True", "True"], self.said(
                "print(hlaunch.at_boundary(), hlaunch.at_boundary())", HLAUNCH_BOUNDARY=name))
            self.assertEqual([b"boundary/1"] * 2, [agent.recv(1000) for _ in range(2)])

    def test_a_time_that_is_none_is_refused(self):
        self.assertEqual(["refused"] * 2, self.said(
            "for timeout in (0, float('nan')):\n"
            "    try:\n"
            "        hlaunch.liveness._milliseconds(timeout)\n"
            "    except ValueError:\n"
            "        print('refused')"))


if __name__ == "__main__":
    unittest.main()
