# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The contents of torch's tutorials for distributed jobs, one after the other, on CPUs with
gloo."""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.elastic.multiprocessing.errors import record
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def everyone(value):
    """The values of all ranks, in rank order."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def sampler_and_ddp():
    """One rank sees each sample once, and the parameters stay the same everywhere."""
    torch.manual_seed(dist.get_rank())
    data = TensorDataset(torch.arange(64.0).reshape(-1, 1))
    sampler = DistributedSampler(data, shuffle=True, seed=3)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    seen = []
    sampler.set_epoch(1)
    for (x,) in DataLoader(data, batch_size=4, sampler=sampler, num_workers=1):
        seen += x.flatten().int().tolist()
        optimizer.zero_grad()
        (model(x) - 2 * x).square().mean().backward()
        optimizer.step()
    assert sorted(sum(everyone(seen), [])) == list(range(64)), "not every sample once"
    assert len(set(everyone(model.module.weight.item()))) == 1, "ranks hold other parameters"


def sharded_model(mesh):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def fsdp_and_checkpoint(folder):
    """Parameters are sharded over all ranks, saved by all, and the same after loading."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model, optimizer = sharded_model(mesh)
    torch.manual_seed(dist.get_rank())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.rand(4, 8)).square().mean().backward()
        optimizer.step()
    rows = model[0].weight.to_local().shape[0]
    assert sum(everyone(rows)) == 16 and rows < 16, f"not sharded: {rows} of 16 rows here"

    states = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
    dcp.save(states, checkpoint_id=folder)
    dist.barrier()
    again, its_optimizer = sharded_model(mesh)
    states = dict(zip(("model", "optimizer"), get_state_dict(again, its_optimizer)))
    dcp.load(states, checkpoint_id=folder)
    set_state_dict(again, its_optimizer, model_state_dict=states["model"],
                   optim_state_dict=states["optimizer"])
    for mine, loaded in zip(model.parameters(), again.parameters()):
        assert torch.equal(mine.full_tensor(), loaded.full_tensor()), "it was loaded differently"


def tell_pid(index, pids):
    pids[index] = os.getpid()


def spawn_within():
    """A worker may start its own processes."""
    pids = torch.zeros(1, dtype=torch.int64).share_memory_()
    mp.spawn(tell_pid, args=(pids,), nprocs=1)
    assert pids[0] not in (0, os.getpid())


@record
def main():
    assert dist.is_torchelastic_launched()
    dist.init_process_group()  # It chooses the backend by itself.
    rank, world = dist.get_rank(), dist.get_world_size()
    assert everyone(rank) == list(range(int(os.environ["WORLD_SIZE"])))
    if sys.argv[1] == "--fail" and rank == world - 1:
        raise ValueError(sys.argv[2])
    dist.barrier()
    sampler_and_ddp()
    fsdp_and_checkpoint(sys.argv[1])
    spawn_within()
    hosts = set(everyone(os.uname().nodename))
    dist.barrier()  # Else Gloo's thread, which holds tensors, may abort the end.
    print(f"OK: rank {rank} of {world} on {len(hosts)} hosts", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
