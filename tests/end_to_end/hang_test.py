#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Scripts that know nothing of hlaunch: their ranks can be asked what they do."""

import lab
import jobs
import torch_test

WORKER = str(lab.WORKERS / "hang_worker.py")


class WithTap(torch_test.WithTorch):
    wanted, python, count = "2.13", staticmethod(torch_test.Torch2.python), 1

    def hlaunch(self, *words, env=None):
        return self.nodes[0].start(lab.HLAUNCH, *words,
                                   env={"PYTHON_EXEC": self.python(), **(env or {})})


class Tap(WithTap):
    def tapped(self, mode, env=None):
        run = self.hlaunch("--nproc-per-node", 2, WORKER, mode, env=env)
        self.assert_done([run], jobs.OK, 120)
        self.assertNotIn("WorkerServer", run.err, str(run))  # The server's greeting and farewell.
        self.assertEqual(run.out.count(f"] {mode}: "), 2, str(run))
        return run.out.count(": tapped")

    def test_every_rank_opens_a_server_and_says_nothing_of_it(self):
        self.assertEqual(self.tapped("tap"), 2)

    def test_none_is_opened_where_the_user_wants_none_or_has_one(self):
        self.assertEqual(self.tapped("tap", {"HLAUNCH_TAP": "0"}), 0)
        self.assertEqual(self.tapped("tap", {"TORCH_WORKER_SERVER_SOCKET": "/x"}), 0)

    def test_an_import_works_where_no_server_can_be_opened(self):
        self.assertEqual(self.tapped("tap-is-lost"), 0)


if __name__ == "__main__":
    lab.main()
