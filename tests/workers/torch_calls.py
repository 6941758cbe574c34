#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker that calls the functions of torch.distributed and checks every result: the store from
all ranks at once, then groups, DDP, meshes and shards. It needs an even number of four ranks or
more, on CPUs. split_group is left out, since it needs a process group that is bound to a device.

Prints "OK <section>" for each section on rank 0, and "no <section>: …" if this torch lacks it.
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LONG, SHORT = datetime.timedelta(seconds=60), datetime.timedelta(milliseconds=500)


def say(line):
    if RANK == 0:
        print(line, flush=True)


def raised(call, *arguments):
    """Returns the exception that `call` must raise."""
    try:
        call(*arguments)
    except (RuntimeError, ValueError) as error:
        return error
    raise AssertionError(f"{call} raised nothing")


def meet(store, name):
    """A barrier that uses only the store, like torch's own store-based one."""
    if store.add(f"meet/{name}", 1) == WORLD:
        store.set(f"met/{name}", "yes")
    store.wait([f"met/{name}"], LONG)


def store_calls(store):
    """Tests what a store of every torch can do, from all ranks at the same time."""
    for _ in range(200):
        store.add("sum", RANK + 1)
    leader = store.compare_set("leader", "", str(RANK))  # Exactly one can be first.
    store.set(f"said/{RANK}", leader)
    meet(store, "added")
    assert store.add("sum", 0) == 200 * WORLD * (WORLD + 1) // 2
    assert int(store.get("sum")) == store.add("sum", 0)
    assert {store.get(f"said/{rank}") for rank in range(WORLD)} == {leader}
    assert store.compare_set("leader", "nobody", "x") == leader
    store.set(f"big/{RANK}", "x" * (1 << 20))
    assert len(store.get(f"big/{(RANK + 1) % WORLD}")) == 1 << 20

    inner = dist.PrefixStore(f"of/{RANK}", dist.PrefixStore("inner", store))
    inner.set("k", str(RANK))
    meet(store, "inner")
    assert store.get(f"inner/of/{(RANK + 1) % WORLD}/k") == str((RANK + 1) % WORLD).encode()

    meet(store, "to count")
    if RANK == 0:  # The others only wait.
        before = store.num_keys()
        store.set("gone", "v")
        assert store.num_keys() == before + 1
        assert store.delete_key("gone") and not store.delete_key("gone")
        assert store.num_keys() == before
        store.set("counted", "yes")
    store.wait(["counted"], LONG)

    late = raised(store.wait, ["never"], SHORT)
    assert "imeout" in str(late) or "imed out" in str(late), late
    store.set_timeout(SHORT)
    raised(store.get, "never")
    store.set_timeout(LONG)
    assert store.get("leader") == leader  # The client is still usable.
    if hasattr(dist, "DistStoreError"):
        assert isinstance(late, dist.DistStoreError), type(late)


def extended_store_calls(store):
    """Tests what torch 2 added."""
    assert store.check(["leader", "sum"]) and not store.check(["leader", "never"])
    for i in range(100):
        store.append("log", f"{RANK}:{i:02};")
    keys = [f"multi/{RANK}/{i}" for i in range(10)]
    store.multi_set(keys, [f"{RANK * 100 + i}" for i in range(10)])
    meet(store, "appended")
    log = store.get("log").decode().split(";")[:-1]
    assert len(log) == 100 * WORLD
    for rank in range(WORLD):  # Each rank's own entries are in order and complete.
        own = [entry for entry in log if entry.startswith(f"{rank}:")]
        assert own == [f"{rank}:{i:02}" for i in range(100)], own
    everything = store.multi_get([f"multi/{rank}/{i}" for rank in range(WORLD) for i in range(10)])
    assert sum(map(int, everything)) == sum(r * 100 + i for r in range(WORLD) for i in range(10))


def queues(store):
    for i in range(50):
        store.queue_push("jobs", str(RANK * 50 + i))
    taken = 0
    while store.add("turn", 1) <= 50 * WORLD:  # As many pops as pushes, by any ranks.
        while True:
            try:
                taken += int(store.queue_pop("jobs"))
                break
            except dist.QueueEmptyError:  # Another rank was faster after the same wake-up.
                continue
    store.add("taken", taken)
    meet(store, "popped")
    assert store.add("taken", 0) == sum(range(50 * WORLD))
    assert store.queue_len("jobs") == 0
    assert isinstance(raised(store.queue_pop, "jobs", False), dist.QueueEmptyError)


def new_stores(store):
    assert "leader" in store.list_keys() and "never" not in store.list_keys()


def store_barrier(store):
    store.barrier("all", WORLD, LONG)
    late = raised(store.barrier, "some", WORLD + 1, SHORT)
    assert isinstance(late, dist.DistStoreError), late


def groups():
    """Tests many subgroups, and a barrier that names the missing rank."""
    for i in range(12):
        ranks = sorted({i % WORLD, (i + 1 + i // WORLD) % WORLD})
        group = dist.new_group(ranks)
        if RANK in ranks:
            total = torch.tensor([float(RANK)])
            dist.all_reduce(total, group=group)
            assert total.item() == sum(ranks), (ranks, total)
    dist.monitored_barrier(timeout=LONG)


def missing_rank():
    """Runs last, since it leaves a broken group by design."""
    group = dist.new_group(timeout=LONG)
    absent = WORLD - 1
    if RANK == 0:
        error = raised(lambda: dist.monitored_barrier(group, SHORT * 4))
        assert f"Rank {absent}" in str(error) or f"ranks: {absent}" in str(error), error
    elif RANK != absent:
        raised(lambda: dist.monitored_barrier(group, SHORT * 4))
    meet(dist.distributed_c10d._get_default_store(), "missed")


def identical(parameters):
    for parameter in parameters:
        mean = parameter.detach().clone()
        dist.all_reduce(mean)
        assert torch.allclose(mean / WORLD, parameter.detach(), atol=1e-6)


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses


def ddp():
    torch.manual_seed(RANK)
    model = DistributedDataParallel(torch.nn.Linear(8, 4))
    train(model)
    identical(model.parameters())


def device_mesh():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (WORLD // 2, 2), mesh_dim_names=("dp", "tp"))
    total = torch.tensor([float(RANK)])
    dist.all_reduce(total, group=mesh.get_group("tp"))
    assert total.item() == RANK // 2 * 4 + 1
    whole = torch.arange(16.0).reshape(4, 4)
    sharded = distribute_tensor(whole, mesh["tp"], [Shard(0)])
    assert sharded.to_local().shape == (2, 4)
    assert torch.equal(sharded.redistribute(placements=[Replicate()]).to_local(), whole)


def fsdp():
    from torch.distributed.fsdp import FullyShardedDataParallel
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    train(FullyShardedDataParallel(model, device_id=torch.device("cpu")))


def fully_shard():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard as shard
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    shard(model, mesh=init_device_mesh("cpu", (WORLD,)))
    train(model)


# The section, and whether torch before 2 has it.
SECTIONS = [(groups, True), (ddp, True), (device_mesh, False), (fsdp, False), (fully_shard, False),
            (missing_rank, True)]


def main():
    modern = int(torch.__version__.split(".")[0]) >= 2
    say(f"torch {torch.__version__}")
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), WORLD, False,
                          LONG)
    for section, method in ((store_calls, "add"), (extended_store_calls, "append"),
                            (queues, "queue_push"), (new_stores, "list_keys"),
                            (store_barrier, "barrier")):
        if hasattr(store, method):
            section(store)
            meet(store, section.__name__)
            say(f"OK {section.__name__}")
        else:
            say(f"no {section.__name__}: this torch's store has no {method}")
    dist.init_process_group("gloo", timeout=LONG)
    for section, always in SECTIONS:
        if not always and not modern:
            say(f"no {section.__name__}: this torch is older")
            continue
        section()
        say(f"OK {section.__name__}")
    # Only the calls are tested: gloo's threads may abort an interpreter that ends at the same time.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
