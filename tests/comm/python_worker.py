# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""One rank of python_test.py: python_worker.py CASE…; each case is a function here or in
python_names.py."""

import array
import os
import sys

import numpy

import hlaunch
import python_names
from hlaunch import ReduceOp

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NUMBERS = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"]
SHAPE = (3, 5)


def of_rank(rank, dtype, shape=SHAPE):
    """Small whole numbers, for which every type and order of summation gives the exact result."""
    count = int(numpy.prod(shape))
    return ((numpy.arange(count) * (rank + 2) + rank) % 3 + 1).astype(dtype).reshape(shape)


def everyones(dtype, shape=SHAPE):
    return numpy.stack([of_rank(rank, dtype, shape) for rank in range(SIZE)])


def expect(got, wanted):
    numpy.testing.assert_array_equal(numpy.asarray(got), numpy.asarray(wanted))


def refused(kind, words, function, *args, **how):
    try:
        function(*args, **how)
    except kind as error:
        assert words in str(error), f"{words!r} is not in {error!r}"
    else:
        raise AssertionError(f"{function.__name__} took it, which ought to say {words!r}")


def all_reduce_is_numpys():
    reference = {ReduceOp.SUM: numpy.sum, ReduceOp.PRODUCT: numpy.prod, ReduceOp.MIN: numpy.min,
                 ReduceOp.MAX: numpy.max}
    for dtype in NUMBERS:
        for op, function in reference.items():
            data = of_rank(RANK, dtype)
            hlaunch.all_reduce(data, op)
            expect(data, function(everyones(dtype), axis=0).astype(dtype))
    for op, function in ((ReduceOp.BAND, numpy.bitwise_and), (ReduceOp.BOR, numpy.bitwise_or),
                         (ReduceOp.BXOR, numpy.bitwise_xor)):
        data = of_rank(RANK, "int32")
        hlaunch.all_reduce(data, op)
        expect(data, function.reduce(everyones("int32")))
    data = of_rank(RANK, "float32")
    hlaunch.all_reduce(data, ReduceOp.AVG)
    numpy.testing.assert_allclose(data, everyones("float64").mean(axis=0), rtol=1e-6)
    data = of_rank(RANK, "float64")
    hlaunch.all_reduce(data, hlaunch.PremulSum(2.5))
    expect(data, 2.5 * everyones("float64").sum(axis=0))
    data = of_rank(RANK, "int64") > 1
    hlaunch.all_reduce(data, ReduceOp.MAX)
    expect(data, (everyones("int64") > 1).any(axis=0))


def all_kinds_of_memory():
    wanted = everyones("int32", (6,)).sum(axis=0)
    data = array.array("i", of_rank(RANK, "int32", (6,)).tolist())
    hlaunch.all_reduce(data)
    expect(data, wanted)
    data = bytearray(of_rank(RANK, "uint8", (6,)).tobytes())
    hlaunch.all_reduce(memoryview(data))
    expect(numpy.frombuffer(data, "uint8"), wanted)
    # With gaps: the result is copied back.
    whole = numpy.zeros((6, 2), "float32")
    whole[:, 1] = of_rank(RANK, "float32", (6,))
    hlaunch.all_reduce(whole[:, 1])
    expect(whole, numpy.stack([numpy.zeros(6), wanted], axis=1))
    work = hlaunch.all_reduce(whole.T[1], async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    expect(whole[:, 1], wanted * SIZE)
    # Data that is only read may be read-only.
    data = b"words" if RANK == 0 else bytearray(5)
    hlaunch.broadcast(data, 0)
    assert bytes(data) == b"words"
    # Types without arithmetic can be moved; empty data is allowed as well.
    data = numpy.full(3, RANK, "complex64")
    hlaunch.broadcast(data, SIZE - 1)
    expect(data, numpy.full(3, SIZE - 1, "complex64"))
    hlaunch.all_reduce(numpy.zeros(0, "float32"))
    hlaunch.all_reduce(bytearray())
    if ml_dtypes:
        data = of_rank(RANK, "float32").astype(ml_dtypes.bfloat16)
        hlaunch.all_reduce(data)
        expect(data.astype("float32"), everyones("float32").sum(axis=0))
    if torch:
        for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int64):
            data = torch.from_numpy(of_rank(RANK, "float64")).to(dtype).t()
            assert not data.is_contiguous()
            hlaunch.all_reduce(data)
            expect(data.double(), everyones("float64").sum(axis=0).T)


def every_verb_moves_what_it_says():
    mine = of_rank(RANK, "float32")
    all_of_it = everyones("float32")

    data = mine.copy()
    hlaunch.broadcast(data, SIZE - 1)
    expect(data, all_of_it[-1])

    data = mine.copy()
    hlaunch.reduce(data, SIZE - 1)
    expect(data, all_of_it.sum(axis=0) if RANK == SIZE - 1 else mine)

    outputs = [numpy.zeros(SHAPE, "float32") for _ in range(SIZE)]
    hlaunch.all_gather(outputs, mine)
    expect(outputs, all_of_it)
    output = numpy.zeros((SIZE, *SHAPE), "float32")
    hlaunch.all_gather_into_tensor(output, mine)
    expect(output, all_of_it)
    # Rank r gives r elements.
    outputs = [numpy.zeros(rank, "int32") for rank in range(SIZE)]
    hlaunch.all_gather(outputs, numpy.full(RANK, RANK, "int32"))
    expect(numpy.concatenate(outputs), numpy.repeat(numpy.arange(SIZE), numpy.arange(SIZE)))

    outputs = [numpy.zeros(SHAPE, "float32") for _ in range(SIZE)] if RANK == 0 else None
    hlaunch.gather(mine, outputs)
    if RANK == 0:
        expect(outputs, all_of_it)
    output = numpy.zeros(SHAPE, "float32")
    hlaunch.scatter(output, list(all_of_it + 1) if RANK == SIZE - 1 else None, SIZE - 1)
    expect(output, all_of_it[RANK] + 1)

    output = numpy.zeros(SHAPE, "float32")
    hlaunch.reduce_scatter(output, [mine + rank for rank in range(SIZE)])
    expect(output, all_of_it.sum(axis=0) + SIZE * RANK)
    hlaunch.reduce_scatter_tensor(output, numpy.stack([mine + rank for rank in range(SIZE)]),
                                  ReduceOp.MAX)
    expect(output, all_of_it.max(axis=0) + RANK)
    output = numpy.zeros(RANK + 1, "int64")
    hlaunch.reduce_scatter(output, [numpy.full(rank + 1, 10 + rank) for rank in range(SIZE)])
    expect(output, numpy.full(RANK + 1, SIZE * (10 + RANK)))

    # Rank r sends r + s elements to rank s.
    outputs = [numpy.zeros(RANK + rank, "int32") for rank in range(SIZE)]
    hlaunch.all_to_all(outputs, [numpy.full(RANK + rank, 100 * RANK + rank, "int32")
                                 for rank in range(SIZE)])
    for rank in range(SIZE):
        expect(outputs[rank], numpy.full(RANK + rank, 100 * rank + RANK))
    output = numpy.zeros((SIZE, 2), "int32")
    hlaunch.all_to_all_single(output, numpy.stack([[RANK, rank] for rank in range(SIZE)])
                              .astype("int32"))
    expect(output, [[rank, RANK] for rank in range(SIZE)])
    splits = [RANK + rank for rank in range(SIZE)]
    output = numpy.zeros((sum(splits), 2), "int32")
    given = numpy.repeat([[RANK, rank] for rank in range(SIZE)], splits, axis=0).astype("int32")
    hlaunch.all_to_all_single(output, given, splits, splits)
    expect(output, numpy.repeat([[rank, RANK] for rank in range(SIZE)], splits, axis=0))
    hlaunch.barrier()
    hlaunch.monitored_barrier(timeout=300)


def messages_go_by_rank_and_tag():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    if SIZE == 1:
        return
    first, second = numpy.zeros(2, "int32"), numpy.zeros(2, "int32")
    works = [hlaunch.irecv(second, left, tag=2), hlaunch.irecv(first, left, tag=1),
             hlaunch.isend(numpy.full(2, RANK, "int32"), right, tag=1),
             hlaunch.isend(numpy.full(2, RANK + 50, "int32"), right, tag=2)]
    for work in works:
        work.wait()
    expect(first, [left] * 2)
    expect(second, [left + 50] * 2)
    if RANK == 0:
        data = numpy.zeros(1, "int64")
        seen = {hlaunch.recv(data): int(data[0]) for _ in range(SIZE - 1)}
        assert seen == {rank: 7 * rank for rank in range(1, SIZE)}, seen
    else:
        hlaunch.send(numpy.full(1, 7 * RANK), 0)


def works_may_be_dropped_and_waited_for_in_any_order():
    data = [numpy.full(1000 * index + 1, RANK + index, "float64") for index in range(20)]
    works = [hlaunch.all_reduce(each, async_op=True) for each in data]
    del works[::2]
    for work in reversed(works):
        work.wait()
    hlaunch.barrier()
    for index, each in enumerate(data):
        expect(each, numpy.full(each.shape, sum(range(SIZE)) + SIZE * index))


def groups_have_numbers_of_their_own():
    ranks = list(range(SIZE))[::-1][:max(1, SIZE - 1)]
    group = hlaunch.new_group(ranks, sort_ranks=False)
    outside = group is hlaunch.NON_GROUP_MEMBER
    assert outside == (RANK not in ranks)
    assert hlaunch.get_rank(group) == (-1 if outside else ranks.index(RANK))
    data = numpy.full(2, RANK, "int32")
    hlaunch.broadcast(data, ranks[-1], group)  # The root is a rank of the default group.
    expect(data, [RANK if outside else ranks[-1]] * 2)
    hlaunch.all_reduce(data, group=group)
    if not outside:
        expect(data, [ranks[-1] * len(ranks)] * 2)
        refused(ValueError, "src 99", hlaunch.broadcast, data, 99, group)
        hlaunch.destroy_process_group(group)


def wrong_things_are_refused():
    data = numpy.zeros(2, "float32")
    refused(TypeError, "the data is a list", hlaunch.all_reduce, [1, 2])
    refused(TypeError, "read-only", hlaunch.all_reduce, b"12")
    refused(TypeError, "no arithmetic for uint16", hlaunch.all_reduce, data.astype("uint16"))
    refused(TypeError, "byte order", hlaunch.all_reduce, data.astype(">f4"))
    refused(TypeError, "Python objects", hlaunch.all_reduce, data.astype(object))
    refused(TypeError, "gaps", hlaunch.all_reduce, memoryview(bytearray(8))[::2])
    refused(TypeError, "float64 into float32", hlaunch.all_gather_into_tensor, data,
            data.astype("float64"))
    refused(TypeError, "float32 and int32", hlaunch.all_gather, [data, data.astype("int32")], data)
    refused(ValueError, f"{SIZE + 1} for {SIZE} ranks", hlaunch.all_gather,
            [data] * (SIZE + 1), data)
    refused(ValueError, "add up to 5", hlaunch.all_to_all_single, data, data, [5] + [0] * (SIZE - 1),
            None)
    refused(hlaunch.InvalidArgument, "BAND", hlaunch.all_reduce, data, ReduceOp.BAND)
    refused(RuntimeError, "exists already", hlaunch.init_process_group)
    refused(ValueError, "more than 0", hlaunch.monitored_barrier, timeout=0)
    if torch:
        refused(TypeError, "is on meta", hlaunch.all_reduce, torch.zeros(2, device="meta"))
        refused(TypeError, "sparse", hlaunch.all_reduce, torch.eye(2).to_sparse())
    hlaunch.barrier()  # The group is still usable.


def a_group_can_be_left_and_made_again():
    hlaunch.destroy_process_group()
    assert not hlaunch.is_initialized()
    refused(RuntimeError, "init_process_group", hlaunch.barrier)
    refused(ValueError, "gloo", hlaunch.init_process_group, "gloo")
    hlaunch.init_process_group("hlaunch", f"file://{os.environ['MEET']}2")
    hlaunch.barrier()


def a_rank_that_goes_is_named():
    def twice():  # A late rank fails in the first call already.
        hlaunch.barrier()
        if RANK == 1:
            os._exit(3)
        hlaunch.all_reduce(numpy.ones(4))
    refused(hlaunch.RankLost, "rank 1", twice)


def calls_that_do_not_match_are_shown():
    data = numpy.ones(4, "float32" if RANK == 0 else "float64")
    refused(hlaunch.InvalidArgument, "float64", hlaunch.all_reduce, data)




if __name__ == "__main__":
    hlaunch.init_process_group(init_method=f"file://{os.environ['MEET']}", timeout=300)
    assert (hlaunch.get_rank(), hlaunch.get_world_size()) == (RANK, SIZE)
    for case in sys.argv[1:]:
        print(case, flush=True)
        (globals().get(case) or getattr(python_names, case))()
    hlaunch.destroy_process_group()
