#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Data-parallel training on CPUs that goes on from its last checkpoint when a node is lost.

    hlaunch --nnodes 1:2 --max-restarts 3 --nproc-per-node 2 --rdzv-endpoint node0 \\
        deploy/examples/train_elastic.py --checkpoint /shared/model.pt

Plain PyTorch (1.13 or newer). All nodes must see the checkpoint at the same path, as any node may
become that of rank 0. The file is replaced atomically, so it is always complete.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    from hlaunch import at_boundary  # "The workers may be stopped now", for a job that is to grow.
except ImportError:
    def at_boundary():
        return False

GLOBAL_BATCH = 384  # Divided among all workers.


def make_batch(step, rank, world):
    """This rank's share of the step's batch, which is the same for any number of workers."""
    x = torch.rand(GLOBAL_BATCH, 8, generator=torch.Generator().manual_seed(step)) * 2 - 1
    x = x[rank::world]
    return x, torch.sin(3 * x).sum(dim=1, keepdim=True)


def save(path, step, model, optimizer):
    """Replaces the checkpoint by a complete new one."""
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()},
               path + ".new")
    with open(path + ".new", "rb+") as file:
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def load(path, model, optimizer):
    """Rank 0 reads the checkpoint, if there is one, and sends it to all; returns the next step."""
    saved = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        saved = [torch.load(path)]
    dist.broadcast_object_list(saved, src=0)
    if saved[0] is None:
        return 0
    model.load_state_dict(saved[0]["model"])
    optimizer.load_state_dict(saved[0]["optimizer"])
    return saved[0]["step"]


def train(parallel, optimizer, first, args):
    """Runs the steps from `first` on; rank 0 saves and prints. Returns the last loss."""
    rank, world = dist.get_rank(), dist.get_world_size()
    loss = torch.zeros(())
    for step in range(first, args.steps):
        x, y = make_batch(step, rank, world)
        loss = nn.functional.mse_loss(parallel(x), y)
        optimizer.zero_grad()
        loss.backward()  # DDP averages the gradients over all ranks here.
        optimizer.step()
        if rank == 0 and (step + 1) % args.save_every == 0:
            save(args.checkpoint, step + 1, parallel.module, optimizer)
            print(f"step {step + 1:4d}  loss {loss.item():.4f}  saved", flush=True)
            at_boundary()
        time.sleep(args.step_seconds)
    return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True, help="a file that all nodes see")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--step-seconds", type=float, default=0, help="pause after each step")
    args = parser.parse_args()

    dist.init_process_group("gloo")  # From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = load(args.checkpoint, model, optimizer)
    if dist.get_rank() == 0:
        print(f"steps {first} to {args.steps} with {dist.get_world_size()} workers, restart "
              f"{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", flush=True)
    loss = train(DistributedDataParallel(model), optimizer, first, args)
    dist.barrier()
    if dist.get_rank() == 0:
        print(f"OK: {args.steps} steps are done, loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
