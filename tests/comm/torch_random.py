# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A case of torch_worker.py: random programs of async calls, futures and callbacks, against gloo.

PROGRAMS is their number, SEED the seed of the first one; a program that fails prints its own seed.
"""

import os
import random

import torch
import torch.distributed as dist

from torch_training import BACKENDS, RANK, SIZE

NESTED = 2  # Calls by callbacks in one program; they have no order, so each has its own group.


def future_of(work):
    """The work's future. gloo has none for some verbs; then this waits for the work."""
    try:
        return work.get_future()
    except RuntimeError as error:
        assert "not implemented" in str(error), error
    work.wait()
    future = torch.futures.Future()
    future.set_result(True)
    return future


class Program:
    """The same calls on every rank and with every backend, chosen by the seed. Whole numbers."""

    def __init__(self, seed, groups, ours):
        self.rng, self.ours = random.Random(seed), ours
        self.group, self.nested = groups[0], list(groups[1:])
        self.pending, self.results = [], []

    def run(self):
        for step in range(self.rng.randint(3, 9)):
            call = self.rng.choice((self.all_reduce, self.broadcast, self.all_gather, self.all_to_all,
                                    self.reduce_scatter, self.ring))
            call(self.rng.choice((1, 7, 500, 20000)), step)
        self.rng.shuffle(self.pending)
        for finish in self.pending:
            finish()
        return self.results

    def data(self, count):
        start = self.rng.randint(0, 50)
        return (torch.arange(count) % 13 + start + RANK).float()

    def collective(self, work, output):
        """Waits for the end of `work` in one of several ways, and keeps the content of `output`."""
        how = self.rng.choice(("wait", "future", "then", "nested", "drop"))
        place = len(self.results)
        self.results.append(None)
        if how == "nested" and self.nested:
            group = self.nested.pop()
            total = future_of(work).then(lambda _: dist.all_reduce(
                output.sum().reshape(1), group=group, async_op=True).get_future().wait()[0])
            self.pending.append(lambda: self.keep(place, [total.wait(), output]))
        elif how in ("then", "nested"):
            total = future_of(work).then(lambda _: output.sum())
            self.pending.append(lambda: self.keep(place, [total.wait(), output]))
        elif how == "future":
            future = future_of(work)
            self.pending.append(lambda: self.keep(place, [output] if future.wait() else []))
        elif how == "wait":
            self.pending.append(lambda: self.keep(place, [output] if work.wait() else []))
        else:  # Only the barrier waits for it.
            self.pending.append(lambda: dist.barrier(self.group) or self.keep(place, [output]))

    def keep(self, place, tensors):
        assert tensors
        self.results[place] = [tensor.clone() for tensor in tensors]

    def all_reduce(self, count, _):
        data = self.data(count)
        op = self.rng.choice((dist.ReduceOp.SUM, dist.ReduceOp.MAX))
        self.collective(dist.all_reduce(data, op, self.group, async_op=True), data)

    def broadcast(self, count, _):
        data, root = self.data(count), self.rng.randrange(SIZE)
        self.collective(dist.broadcast(data, root, self.group, async_op=True), data)

    def all_gather(self, count, _):
        output = torch.zeros(SIZE, count)
        self.collective(dist.all_gather(list(output), self.data(count), self.group, async_op=True),
                        output)

    def all_to_all(self, count, _):
        output = torch.zeros(SIZE * count)
        self.collective(dist.all_to_all_single(output, self.data(SIZE * count), group=self.group,
                                               async_op=True), output)

    def reduce_scatter(self, count, _):
        output = torch.zeros(count)
        inputs = [self.data(count) for _ in range(SIZE)]
        self.collective(dist.reduce_scatter(output, inputs, group=self.group, async_op=True), output)

    def ring(self, count, step):
        """Sends a message to the next rank; gloo has no future for it."""
        output, given = torch.zeros(count), self.data(count)
        receive = dist.irecv(output, (RANK - 1) % SIZE, self.group, tag=step)
        send = dist.isend(given, (RANK + 1) % SIZE, self.group, tag=step)
        told = self.rng.random() < 0.5 and self.ours
        future = receive.get_future() if told else None
        place = len(self.results)
        self.results.append(None)

        def finish():
            (future or receive).wait()
            send.wait()
            self.keep(place, [output])
        self.pending.append(finish)


def random_programs():
    count, first = int(os.environ.get("PROGRAMS", "25")), int(os.environ.get("SEED", "0"))
    groups = {backend: [dist.new_group(backend=backend) for _ in range(1 + NESTED)]
              for backend in BACKENDS}
    print(f"rank {RANK}: {count} programs, seeds {first} to {first + count - 1}", flush=True)
    for seed in range(first, first + count):
        ours, theirs = (Program(seed, groups[backend], backend == BACKENDS[0]).run()
                        for backend in BACKENDS)
        for place, (mine, gloos) in enumerate(zip(ours, theirs)):
            for one, other in zip(mine, gloos):
                assert torch.equal(one, other), f"seed {seed}, call {place}: {one} and {other}"
