# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Cases of python_worker.py: the names of torch.distributed besides the verbs."""

import os

import numpy

import hlaunch
from hlaunch import ReduceOp

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def refused(words, function, *args, **how):
    try:
        function(*args, **how)
    except (ValueError, TypeError, RuntimeError) as error:
        assert words in str(error), f"{words!r} is not in {error!r}"
    else:
        raise AssertionError(f"{function.__name__} took it, which ought to say {words!r}")


def groups_know_their_ranks():
    ranks = list(range(SIZE))[::-1]
    for sort, wanted in ((True, sorted(ranks)), (False, ranks)):  # torch sorts by default.
        group = hlaunch.new_group(ranks, sort_ranks=sort, group_desc="all")
        assert hlaunch.get_process_group_ranks(group) == wanted
        assert hlaunch.get_rank(group) == wanted.index(RANK) == hlaunch.get_group_rank(group, RANK)
        assert hlaunch.get_global_rank(group, SIZE - 1) == wanted[-1]
        assert group.group_desc == "all" and hlaunch.get_backend(group) == "hlaunch"
        data = numpy.full(2, RANK)
        hlaunch.broadcast(data, group=group, group_src=SIZE - 1)
        assert data.tolist() == [wanted[-1]] * 2
        refused("not both", hlaunch.broadcast, data, 0, group, group_src=0)
        refused("is not in the group", hlaunch.get_global_rank, group, SIZE)
        hlaunch.destroy_process_group(group)
    assert hlaunch.get_backend() == "hlaunch" and hlaunch.get_backend_config() == "cpu:hlaunch"
    assert hlaunch.get_process_group_ranks() == list(range(SIZE))
    assert hlaunch.group.WORLD.size() == SIZE and hlaunch.get_pg_count() == 1
    mine, everyone = hlaunch.new_subgroups(1)
    assert len(everyone) == SIZE and mine.ranks == [RANK] and hlaunch.get_pg_count() == 2
    hlaunch.destroy_process_group(mine)
    refused("does not divide", hlaunch.new_subgroups, SIZE + 1)
    refused("more than one", hlaunch.new_subgroups_by_enumeration, [[0], [0]])
    refused("use_local_synchronization", hlaunch.new_group, [0], use_local_synchronization=True)
    refused("hlaunch has none", hlaunch.new_group, [0], pg_options={})
    assert int(os.environ["LOCAL_WORLD_SIZE"]) == SIZE and hlaunch.get_node_local_rank(7) == 7
    hlaunch.barrier(device_ids=[0])
    refused("not a list", hlaunch.barrier, device_ids=0)


def objects_are_pickled():
    everyone = [None] * SIZE
    hlaunch.all_gather_object(everyone, {"rank": RANK, "text": "x" * RANK * 1000})
    assert [each["rank"] for each in everyone] == list(range(SIZE))
    assert [len(each["text"]) for each in everyone] == [1000 * rank for rank in range(SIZE)]
    gathered = [None] * SIZE if RANK == SIZE - 1 else None
    hlaunch.gather_object(("of", RANK), gathered, dst=SIZE - 1)
    assert gathered is None or gathered == [("of", rank) for rank in range(SIZE)]
    words = [f"from {SIZE - 1}", b"x" * 70000] if RANK == SIZE - 1 else [None, None]
    hlaunch.broadcast_object_list(words, SIZE - 1)
    assert words == [f"from {SIZE - 1}", b"x" * 70000]
    mine = [None]
    hlaunch.scatter_object_list(mine, list("abcdefgh"[:SIZE]) if RANK == 0 else None)
    assert mine == ["abcdefgh"[RANK]]
    if SIZE > 1:
        if RANK == 0:
            hlaunch.send_object_list(["one", 2], SIZE - 1)
        elif RANK == SIZE - 1:
            words = [None, None]
            assert hlaunch.recv_object_list(words) == 0 and words == ["one", 2]


def batches_begin_together():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = [numpy.zeros(3) for _ in range(2)]
    works = hlaunch.batch_isend_irecv([
        hlaunch.P2POp(hlaunch.isend, numpy.full(3, 10.0 * RANK + tag), right, tag=tag)
        if isinstance(tag, int) else hlaunch.P2POp(hlaunch.irecv, got[int(tag)], left, tag=int(tag))
        for tag in (0, "1", "0", 1)])
    for work in works:
        work.wait()
    assert [each.tolist() for each in got] == [[10.0 * left + tag] * 3 for tag in range(2)], got
    refused("isend or", hlaunch.P2POp, print, got[0], right)
    tensors = [numpy.full(2, RANK), numpy.full(3, 2 * RANK)]
    hlaunch.all_reduce_coalesced(tensors, ReduceOp.MAX)
    assert tensors[0].tolist() == [SIZE - 1] * 2 and tensors[1].tolist() == [2 * SIZE - 2] * 3


def messages_to_oneself_arrive():
    first, second = numpy.zeros(2), numpy.zeros(20000)
    waits = hlaunch.irecv(first, RANK, tag=1)
    assert not waits.is_completed()
    hlaunch.send(numpy.full(20000, 7.0), RANK, tag=2)  # It waits for no rank.
    hlaunch.send(numpy.full(2, 5.0), RANK, tag=1)
    assert hlaunch.recv(second, RANK, tag=2) == RANK and waits.source_rank() == RANK
    assert first.tolist() == [5.0] * 2 and set(second) == {7.0}
    hlaunch.send(numpy.zeros(3), RANK)
    refused("does not match", hlaunch.recv, numpy.zeros(2), RANK)


def complex_numbers_are_added():
    for dtype in ("complex64", "complex128"):
        data = numpy.full(3, complex(RANK, 1), dtype)
        hlaunch.all_reduce(data)
        assert data.tolist() == [complex(sum(range(SIZE)), SIZE)] * 3
        out = numpy.zeros(2, dtype)
        hlaunch.reduce_scatter(out, [numpy.full(2, complex(rank, RANK), dtype)
                                     for rank in range(SIZE)])
        assert out.tolist() == [complex(SIZE * RANK, sum(range(SIZE)))] * 2
        splits = [RANK + rank for rank in range(SIZE)]
        moved = numpy.zeros(sum(splits), dtype)
        hlaunch.all_to_all_single(moved, numpy.full(sum(splits), 1j * RANK, dtype), splits, splits)
        assert moved.tolist() == [1j * rank for rank in range(SIZE) for _ in range(splits[rank])]
        refused("complex", hlaunch.all_reduce, data, ReduceOp.MAX)


def a_rank_that_raises_says_what():
    """The goodbye comes from atexit, or from a `finally` for a group."""
    group = hlaunch.new_group()
    for each in (group, None):  # Now they are connected.
        hlaunch.all_reduce(numpy.zeros(2), group=each)
    # A rank that hears of the failure during another rank's later call fails in its own current
    # call.
    if RANK != 1:
        hlaunch.send(numpy.zeros(1), 1)
    else:
        for other in range(SIZE):
            if other != 1:
                hlaunch.recv(numpy.zeros(1), other)
        try:
            raise ValueError("bad batch")
        finally:
            hlaunch.destroy_process_group(group)
    refused("left the group before all_reduce #2, after ValueError: bad batch", hlaunch.all_reduce,
            numpy.zeros(2), group=group)
    refused(", after ValueError: bad batch", hlaunch.all_reduce, numpy.zeros(2))


def a_group_is_made_over_torchs_store():
    """Without torch any object with a host and a port will do; this test has a store of its own."""
    refused("no host and port", hlaunch.groups.url_of, object())

    class Below:
        host, port = "::1", 29500

    class Prefix:
        underlying_store = Below()
    assert hlaunch.groups.url_of(Prefix()) == "tcp://[::1]:29500?store=open"
    refused("exists already", hlaunch.init_process_group, store=Below(), rank=0, world_size=1)
