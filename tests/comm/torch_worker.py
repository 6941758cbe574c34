# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""One rank of torch_backend_test.py: torch_worker.py BACKEND METHOD CASE…. Each case is a function
of CASES. METHOD is how ranks meet: "file" or "env"."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _make_nccl_premul_sum
from torch.distributed import _functional_collectives as functional

import torch_callbacks
import torch_random
import torch_training

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def can_mix():
    return tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 14)


def of_rank(rank, dtype=torch.float32, shape=(4, 3)):
    """Small whole numbers, for which every type and order of summation gives the exact result."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * (rank + 2) + rank) % 3 + 1).to(dtype).reshape(shape)


def expect(got, wanted):
    if isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), (got, wanted)
        for one, other in zip(got, wanted):
            expect(one, other)
    else:
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def refused(words, function, *args, **how):
    """The call fails with `words` in its message, or with one of several."""
    words = (words,) if isinstance(words, str) else words
    try:
        function(*args, **how)
    except Exception as error:
        assert any(one in str(error) for one in words), f"{words!r} is not in {error!r}"
    else:
        raise AssertionError(f"{function.__name__} took it, which ought to say {words!r}")


def every_verb_is_as_gloos():
    gloo = dist.new_group(backend="gloo")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8):
        mine, root = of_rank(RANK, dtype), SIZE - 1
        zeros = [torch.zeros_like(mine) for _ in range(SIZE)]

        def both(call, *buffers):
            """`call` leaves the same in its buffers with our group and with gloo's."""
            ours, theirs = ([clone(buffer) for buffer in buffers] for _ in range(2))
            call(None, *ours)
            call(gloo, *theirs)
            expect(ours, theirs)

        both(lambda group, data: dist.broadcast(data, root, group), mine)
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
            both(lambda group, data, op=op: dist.all_reduce(data, op, group), mine)
            both(lambda group, data, op=op: dist.reduce(data, root, op, group) or (
                None if RANK == root else data.zero_()), mine)
        both(lambda group, out: dist.all_gather(out, mine, group), zeros)
        both(lambda group, out: dist.gather(mine, out if RANK == root else None, root, group),
             zeros)
        both(lambda group, out: dist.scatter(
            out, [mine + rank for rank in range(SIZE)] if RANK == root else None, root, group),
             mine)
        both(lambda group, out: dist.reduce_scatter(
            out, [mine + rank for rank in range(SIZE)], group=group), mine)
        both(lambda group, out: dist.all_gather_into_tensor(out, mine, group),
             torch.zeros(SIZE * 4, 3, dtype=dtype))
        both(lambda group, out: dist.reduce_scatter_tensor(out, mine, group=group),
             mine[:4 // SIZE].clone() if 4 % SIZE == 0 else torch.zeros(0, 3, dtype=dtype)
             ) if 4 % SIZE == 0 else None
        splits = [RANK + rank for rank in range(SIZE)]
        both(lambda group, out: dist.all_to_all_single(
            out, torch.full((sum(splits), 2), RANK).to(dtype), splits, splits, group),
             torch.zeros(sum(splits), 2, dtype=dtype))


def clone(buffer):
    return [each.clone() for each in buffer] if isinstance(buffer, list) else buffer.clone()


def all_to_all_moves_lists():
    outputs = [torch.zeros(RANK + rank) for rank in range(SIZE)]
    dist.all_to_all(outputs, [torch.full((RANK + rank,), 100. * RANK + rank)
                              for rank in range(SIZE)])
    expect(outputs, [torch.full((RANK + rank,), 100. * rank + RANK) for rank in range(SIZE)])


def works_have_futures():
    data = [torch.full((1000,), float(RANK + index)) for index in range(8)]
    works = [dist.all_reduce(each, async_op=True) for each in data]
    futures = [work.get_future().then(lambda done: done.value()[0].sum()) for work in works]
    for index, (work, future) in enumerate(zip(works, futures)):
        total = sum(range(SIZE)) + SIZE * index
        assert future.wait().item() == 1000 * total
        assert work.wait() and work.is_completed() and work.is_success()
        expect(data[index], torch.full((1000,), float(total)))


def messages_go_by_rank_and_tag():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = torch.zeros(3)
    operations = [dist.P2POp(dist.isend, torch.full((3,), float(RANK)), right),
                  dist.P2POp(dist.irecv, got, left)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    expect(got, torch.full((3,), float(left)))
    if RANK == 0:
        assert sorted(dist.recv(got, tag=5) for _ in range(SIZE - 1)) == list(range(1, SIZE))
    else:
        dist.send(got, 0, tag=5)


def objects_are_pickled():
    everyone = [None] * SIZE
    dist.all_gather_object(everyone, {"rank": RANK, "text": "x" * RANK})
    assert [each["rank"] for each in everyone] == list(range(SIZE))
    words = [f"from {SIZE - 1}" if RANK == SIZE - 1 else None]
    dist.broadcast_object_list(words, SIZE - 1)
    assert words == [f"from {SIZE - 1}"]
    mine = [None]
    dist.scatter_object_list(mine, list("abcdefgh"[:SIZE]) if RANK == 0 else None)
    assert mine == ["abcdefgh"[RANK]]


def functional_collectives_work():
    group, mine = dist.group.WORLD, of_rank(RANK)
    everyones = torch.stack([of_rank(rank) for rank in range(SIZE)])
    expect(functional.all_reduce(mine, "sum", group) + 0, everyones.sum(0))
    expect(functional.all_gather_tensor(mine, 0, group) + 0, everyones.flatten(0, 1))
    many = functional.all_reduce_coalesced([mine, 2 * mine], "max", group)
    expect([each + 0 for each in many], [everyones.max(0)[0], 2 * everyones.max(0)[0]])
    wide = torch.cat([mine + rank for rank in range(SIZE)])
    expect(functional.reduce_scatter_tensor(wide, "sum", 0, group) + 0,
           everyones.sum(0) + SIZE * RANK)
    expect(functional.broadcast(mine, SIZE - 1, group) + 0, everyones[-1])
    expect(functional.all_to_all_single(wide, None, None, group) + 0,
           torch.cat([everyones[rank] + RANK for rank in range(SIZE)]))


def groups_are_groups():
    halves, mine = dist.new_subgroups(max(1, SIZE // 2)) if SIZE % 2 == 0 else (None, None)
    if halves is None:
        return
    data = torch.ones(1)
    dist.all_reduce(data, group=halves)
    assert data.item() == SIZE // 2, (data, mine)


def groups_split():
    """Before torch 2.15, torch splits only groups that are bound to a device."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 15):
        return
    ranks = [*range(SIZE)][::-1]
    whole = dist.split_group(split_ranks=[ranks])
    assert dist.get_process_group_ranks(whole) == ranks, dist.get_process_group_ranks(whole)
    gathered = [torch.zeros(1) for _ in ranks]
    dist.all_gather(gathered, torch.full((1,), float(RANK)), group=whole)
    assert [each.item() for each in gathered] == ranks, gathered
    part = dist.split_group(split_ranks=[[0]])
    assert (part is None or part is dist.GroupMember.NON_GROUP_MEMBER) == (RANK > 0), part
    if RANK == 0:
        data = torch.ones(1)
        dist.all_reduce(data, group=part)
        assert data.item() == 1, data


def odd_tensors():
    data = of_rank(RANK).t()
    assert not data.is_contiguous()
    dist.all_reduce(data)
    expect(data, torch.stack([of_rank(rank) for rank in range(SIZE)]).sum(0).t())
    data = torch.full((2,), complex(RANK, 1))
    dist.all_reduce(data)
    expect(data, torch.full((2,), complex(sum(range(SIZE)), SIZE)))
    data = torch.full((2,), RANK, dtype=torch.float64)
    dist.all_reduce(data, _make_nccl_premul_sum(0.5))
    expect(data, torch.full((2,), sum(range(SIZE)) / 2, dtype=torch.float64))
    refused("sparse", dist.all_reduce, torch.eye(2).to_sparse())
    refused("no arithmetic for int16", dist.all_reduce, torch.zeros(2, dtype=torch.int16))
    refused("on meta", dist.all_reduce, torch.zeros(2, device="meta"))


def other_backends_are_mixed_or_refused():
    """Mixed if torch supports a Backend written in Python, else refused."""
    if can_mix():
        group = dist.new_group(backend="cpu:hlaunch,cuda:gloo")
        names = [group._get_backend(torch.device(device)).name() for device in ("cpu", "cuda")]
        assert names == ["hlaunch", "gloo"], names
        data = torch.ones(3)
        dist.all_reduce(data, group=group)
        expect(data, torch.full((3,), float(SIZE)))
        dist.Backend.register_backend("other", lambda *_: None, extended_api=True, devices=["meta"])
        refused("both plugins", dist.new_group, backend="cpu:hlaunch,meta:other")
    else:
        for backend in ("cpu:hlaunch,cuda:gloo", "cuda:gloo,cpu:hlaunch"):
            # torch first makes Gloo's part, which fails, or waits in vain if the other rank has
            # already been refused.
            refused(("silently", "connectFullMesh", "imed out"), dist.new_group, backend=backend,
                    timeout=datetime.timedelta(seconds=20))
    refused("not on cuda", dist.new_group, backend="cuda:hlaunch")


def a_group_can_be_made_again():
    dist.destroy_process_group()
    if sys.argv[2] == "env":
        dist.init_process_group(sys.argv[1])
    else:
        dist.init_process_group(sys.argv[1], init_method=f"file://{os.environ['MEET']}2", rank=RANK,
                                world_size=SIZE)
    dist.barrier()


def a_rank_that_goes_is_named():
    def twice():  # A late rank fails in the first call already.
        dist.barrier()
        if RANK == 1:
            os._exit(3)
        dist.all_reduce(torch.ones(4))
    refused("rank 1", twice)
    os._exit(0)


def disturbs_nobody(end):
    """Rank 1 is done first, and ranks 0 and 2 talk to each other once its process is gone."""
    def runs(pid):
        try:
            return os.listdir(f"/proc/{pid}/fd")
        except OSError:
            return False
    value = torch.tensor([os.getpid()])
    if RANK == 1:
        dist.send(value, 2)
    elif RANK == 2:
        dist.recv(value, 1)
        while runs(value.item()):
            time.sleep(0.1)
        dist.send(value, 0)
    else:
        dist.recv(value, 2)
    end()  # Without destroy_process_group.


def a_rank_that_is_done_disturbs_nobody():
    disturbs_nobody(sys.exit)


def nor_does_one_that_ends_without_goodbye():
    disturbs_nobody(lambda: os._exit(0))


def nor_does_one_that_becomes_another_program():
    disturbs_nobody(lambda: os.execv("/bin/true", ["true"]))


def ddp_says_that_a_rank_has_left():
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()
    if RANK == 1:
        sys.exit()
    try:
        model(torch.ones(2, 4)).sum().backward()
    except RuntimeError as error:
        assert "rank 1" in str(error) and "left the group" in str(error), error
        os._exit(0)
    raise AssertionError("it trains without rank 1")


CASES = (sys.modules[__name__], torch_training, torch_callbacks, torch_random)

if __name__ == "__main__":
    chosen, method = sys.argv[1], sys.argv[2]
    where = {} if method == "env" else {"init_method": f"file://{os.environ['MEET']}",
                                        "rank": RANK, "world_size": SIZE}
    dist.init_process_group(chosen, timeout=datetime.timedelta(seconds=40), **where)
    for case in sys.argv[3:]:
        print(f"rank {RANK}: {case}", flush=True)
        next(vars(cases)[case] for cases in CASES if case in vars(cases))()
    dist.destroy_process_group()
    print(f"rank {RANK} of {SIZE}: done", flush=True)
