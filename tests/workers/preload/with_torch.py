# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks that use torch."""

import torch

import preloaded

preloaded.tell()

import os
import sys

import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return torch.tensor([float(index ** 2)]), torch.initial_seed() > 0


def chance():
    print("seed", torch.initial_seed())
    print("torch", torch.rand(1).item())


def facts():
    print(torch.get_num_threads(), torch.get_num_interop_threads())
    print(torch.get_default_dtype(), torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled())
    print(torch.cuda.is_available(), torch.cuda.is_initialized(), torch.__config__.parallel_info().count("\n"))
    print(torch.backends.mkldnn.is_available(), torch.__version__, torch.distributed.is_initialized())
    print(torch.multiprocessing.get_sharing_strategy(), torch.multiprocessing.get_start_method())


def trains():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss = model(torch.rand(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.6f}")
    torch.save(model.state_dict(), f"model{dist.get_rank()}.pt")
    dist.barrier()
    dist.destroy_process_group()


def loads(method):
    loader = DataLoader(Squares(), 2, num_workers=2, multiprocessing_context=method, timeout=300)
    print([batch.flatten().tolist() for batch, _ in loader])


def loads_by_fork():
    loads("fork")


def loads_by_spawn():
    loads("spawn")


def loads_by_forkserver():
    loads("forkserver")


def double(index, factor):
    print("process", index * factor, flush=True)


def spawns():
    torch.multiprocessing.spawn(double, args=(2,), nprocs=1)


def fails():
    torch.nn.Linear(4, 4)(torch.rand(2, 5))


def compiles():
    def step(x):
        return torch.sin(x) * 2 + x.square()
    x = torch.linspace(0, 1, 8)
    print(torch.allclose(torch.compile(step)(x), step(x)), torch.compile(step, backend="eager")(x).sum().item())


def shares_threads():
    x = torch.rand(200, 200)
    torch.set_num_threads(2)
    print(torch.allclose(x @ x, x @ x), torch.get_num_threads())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
