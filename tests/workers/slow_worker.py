#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A training in small steps, in which ranks wait for each other as its argument says, until a file
"end" is there. Nothing in it knows of hlaunch."""

import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist

MODE = sys.argv[1]
dist.init_process_group(os.environ.get("BACKEND", "gloo"))
torch.set_num_threads(1)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
value = torch.ones(4)


def load(step):
    time.sleep(0.3)
    if MODE in ("slow", "backward") and RANK == 2:
        time.sleep(0.3)
    if MODE == "turns" and RANK == step % SIZE:
        time.sleep(0.3)


class Slow(torch.Tensor):
    """It takes its time to be saved."""

    def __reduce_ex__(self, protocol):
        time.sleep(0.4)
        return torch.ones(4).__reduce_ex__(protocol)


def checkpoint():
    if RANK == 0:
        torch.save({"value": value.as_subclass(Slow)}, "checkpoint")


for _ in range(100):  # A record that is long is asked for the least.
    dist.all_reduce(value)
model = torch.nn.Linear(4, 4)
if MODE == "backward":
    model = torch.nn.parallel.DistributedDataParallel(model)
last = torch.zeros(1)
step = 0
while not last.item():
    load(step)
    if MODE == "saves":
        checkpoint()
    if MODE == "backward":
        model(torch.ones(1, 4)).sum().backward()
    last.fill_(RANK == 0 and pathlib.Path("end").exists())
    dist.all_reduce(last)
    step += 1
    if RANK == 0 and step == 60:
        print("MANY STEPS", flush=True)
sys.stdout.flush()
os._exit(0)  # Threads of gloo may cut off a program that ends as usual.
