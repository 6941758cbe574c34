# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Cases of torch_worker.py: trainings, compared with gloo."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BACKENDS = (sys.argv[1], "gloo")  # The two to compare.


def parameters_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def curve(model, steps=12, optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.01)):
    """The losses of a short training."""
    generator = torch.Generator().manual_seed(1000 + RANK)
    optimizer = optimizer(model.parameters())
    losses = []
    for _ in range(steps):
        x = torch.rand(32, 8, generator=generator)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def network():
    torch.manual_seed(RANK)
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, 1))


def ddp_trains_as_with_gloo():
    results = {}
    for backend in BACKENDS:
        group = dist.new_group(backend=backend)
        model = nn.parallel.DistributedDataParallel(network(), process_group=group,
                                                    bucket_cap_mb=0.01)
        losses = curve(model)
        mine = parameters_of(model)
        everyone = [torch.empty_like(mine) for _ in range(SIZE)]
        dist.all_gather(everyone, mine)
        assert all(torch.equal(mine, theirs) for theirs in everyone), "ranks differ"
        results[backend] = torch.tensor(losses)
    assert results[BACKENDS[0]][-1] < results[BACKENDS[0]][0] / 2, results
    torch.testing.assert_close(results[BACKENDS[0]], results["gloo"], rtol=1e-5, atol=1e-6)


def fsdp_trains_as_ddp():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(0)
    reference = nn.parallel.DistributedDataParallel(network_of(0))
    wanted = curve(reference)
    model = network_of(0)
    fully_shard(model, mesh=init_device_mesh("cpu", (SIZE,)))
    torch.testing.assert_close(torch.tensor(curve(model)), torch.tensor(wanted), rtol=1e-4,
                               atol=1e-5)


def network_of(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 1))
