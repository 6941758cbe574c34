#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Data-parallel training on CPUs: a small network learns a function from random data.

    hlaunch --nproc-per-node 4 deploy/examples/train_ddp.py --steps 50

Plain PyTorch (1.13 or newer): nothing in it depends on hlaunch, and torchrun runs it as well.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def make_batch(generator, size=64):
    """Random points, and the values of the function to learn."""
    x = torch.rand(size, 8, generator=generator) * 2 - 1
    return x, torch.sin(3 * x).sum(dim=1, keepdim=True)


def train(model, rank, args):
    """Returns the first and the last step's loss, the mean over all ranks."""
    generator = torch.Generator().manual_seed(1000 + rank)  # Each rank has its own data.
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    first = last = None
    for step in range(args.steps):
        x, y = make_batch(generator)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # DDP averages the gradients over all ranks here.
        optimizer.step()
        last = loss.detach().clone()
        dist.all_reduce(last)
        last = last.item() / dist.get_world_size()
        first = last if first is None else first
        if rank == 0 and (step % args.print_every == 0 or step == args.steps - 1):
            print(f"step {step:4d}  loss {last:.4f}", flush=True)
        time.sleep(args.step_seconds)
    return first, last


def assert_same_on_all_ranks(model):
    """Every rank must hold the same parameters, bit for bit."""
    mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    for rank, theirs in enumerate(everyone):
        assert torch.equal(mine, theirs), f"rank {rank} holds other parameters"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--step-seconds", type=float, default=0, help="pause after each step")
    parser.add_argument("--print-every", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.01)
    args = parser.parse_args()

    dist.init_process_group("gloo")  # From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
    rank = dist.get_rank()

    torch.manual_seed(rank)  # Ranks start differently; DDP sends rank 0's parameters to all.
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
    first, last = train(DistributedDataParallel(model), rank, args)

    assert_same_on_all_ranks(model)
    assert args.steps < 20 or last < first, f"the loss did not fall: {first:.4f} to {last:.4f}"
    dist.barrier()
    if rank == 0:
        print(f"OK: {dist.get_world_size()} ranks hold identical parameters, "
              f"loss {first:.4f} -> {last:.4f}, torch {torch.__version__}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
