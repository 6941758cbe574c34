#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The examples of deploy/examples, run as the manual's pages show it."""

import signal

import jobs
import lab
import torch_test

LONG = 100  # Seconds: torch takes long to import on a busy machine.
EXAMPLES = lab.ROOT / "deploy/examples"


class Elastic(torch_test.WithTorch):
    """train_elastic.py: training goes on from its checkpoint whatever happens to the nodes."""

    def train(self, nodes, steps=1_000_000, options=()):
        return [node.start(lab.HLAUNCH, "--nnodes", "1:2", "--max-restarts", 3, "--last-call", 1,
                           "--nproc-per-node", 2, "--rdzv-endpoint", "node0", *options,
                           EXAMPLES / "train_elastic.py", "--checkpoint",
                           self.nodes[0].folder / "model.pt", "--steps", steps,
                           "--step-seconds", 0.05,
                           env={"PYTHON_EXEC": self.python()}) for node in nodes]

    def assert_goes_on(self, run, workers, restart):
        """A round starts at a checkpoint of the round before, and saves; returns its first step."""
        first = run.wait_for(rf"steps ([1-9]\d*0) to \d+ with {workers} workers, restart {restart}",
                             LONG)[1]
        self.assertIn(f"step {int(first):4d} ", run.out, str(run))
        run.wait_for(rf"step +{int(first) + 10} .*saved", LONG)
        return int(first)

    def stop(self, runs):
        for run in reversed(runs):  # node0 is the last, as the job ends with it.
            run.signal(signal.SIGTERM)
            self.assertEqual(run.wait(LONG), 128 + signal.SIGTERM, self.told(runs))
        self.assert_nothing_left()

    def test_it_goes_on_when_a_node_is_lost_and_when_it_is_started_again(self):
        runs = self.train(self.nodes, options=["--loss-limit", 6])
        # If node1 comes late, a round of node0 alone has made the first steps.
        first = int(runs[0].wait_for(r"steps (\d+) to \d+ with 4 workers, restart 0", LONG)[1])
        runs[0].wait_for(rf"step +{first + 20} .*saved", LONG)
        self.nodes[1].power_off()
        first = self.assert_goes_on(runs[0], workers=2, restart=1)
        self.stop(runs[:1])
        runs = self.run_torch(lambda: self.train(self.nodes[:1], steps=first + 40,
                                                 options=["--nnodes", 1]), "OK: ", LONG)
        self.assertRegex(runs[0].out, rf"steps [1-9]\d*0 to {first + 40} with 2 workers, restart 0")
        self.assertIn(f"OK: {first + 40} steps are done", runs[0].out)


class Elastic1(Elastic):
    wanted, python = "1.13", staticmethod(torch_test.Torch1.python)

    def test_it_goes_on_when_a_node_comes(self):
        runs = self.train(self.nodes[:1])
        runs[0].wait_for(r"steps 0 to \d+ with 2 workers, restart 0", LONG)
        runs[0].wait_for(r"step +20 .*saved", LONG)
        runs += self.train(self.nodes[1:])
        self.assert_goes_on(runs[0], workers=4, restart=0)
        self.stop(runs)


class Elastic2(Elastic):
    wanted, python = "2.", staticmethod(torch_test.Torch2.python)


class Debugger(jobs.JobTest):
    """debug_one_rank.py: one rank stops for a debugger."""

    count = 1

    def test_pdb_answers_at_the_port_that_the_rank_names(self):
        (run,) = self.start(EXAMPLES / "debug_one_rank.py", options=["--nproc-per-node", 2],
                            env={"DEBUG_RANK": 1, "DEBUG_PORT": 0})
        port = run.wait_for(r"rank 1 \(pid \d+\) waits for a debugger: nc 127\.0\.0\.1 (\d+)")[1]
        run.wait_for(r"\[0\] rank 0: total 10")  # The others go on.
        nc = self.nodes[0].start(jobs.PYTHON, "-c", CONVERSATION, port)
        self.assertEqual(nc.wait(20), 0, str(nc))
        self.assertIn("(Pdb) (3, 3)\n", nc.out)
        self.assertRegex(nc.out, r"debug_one_rank\.py\(\d+\)main\(\)\n-> total \+= step")
        self.assert_done([run], jobs.OK, 20)
        self.assertIn("[1] rank 1: total 10\n", run.out)

    def test_without_the_variable_no_rank_stops(self):
        (run,) = self.start(EXAMPLES / "debug_one_rank.py", options=["--nproc-per-node", 2])
        self.assert_done([run], jobs.OK, 20)


# What a user types in nc.
CONVERSATION = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as there:
    there.sendall(b"p step, total\\nc\\n")
    there.shutdown(socket.SHUT_WR)
    while said := there.recv(4096):
        print(said.decode(), end="")
"""


if __name__ == "__main__":
    lab.main()
