# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors

"""One rank of comm_speed.py on Gloo: the same calls in the same order as comm_load.cc."""

import statistics
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def measure(verb, count, times):
    one, other = torch.ones(count), torch.ones(count)
    many = list(torch.ones(count * size).chunk(size)) if count else []
    more = list(torch.ones(count * size).chunk(size)) if count else []

    def there_and_back():
        if rank % 2 == 0:
            dist.send(one, rank ^ 1)
            dist.recv(other, rank ^ 1)
        else:
            dist.recv(other, rank ^ 1)
            dist.send(one, rank ^ 1)

    call = {
        "barrier": dist.barrier,
        "all_reduce": lambda: dist.all_reduce(one),
        "broadcast": lambda: dist.broadcast(one, 0),
        "all_gather": lambda: dist.all_gather(many, one),
        "reduce_scatter": lambda: dist.reduce_scatter(one, many),
        "all_to_all": lambda: dist.all_to_all(more, many),
        "ping_pong": there_and_back,
    }[verb]
    rounds = []
    for _ in range(times // 10 + 2):
        call()
    for _ in range(5):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - begin) * 1e6 / times)
    return f"{statistics.median(rounds):.3f}"


words = sys.argv[1:]
while words:
    verb, size_text, times_text, *words = words
    try:
        line = measure(verb, int(size_text) // 4, int(times_text))
    except RuntimeError as error:  # Gloo lacks some verbs.
        line = f"- {str(error).splitlines()[0]}"
    if rank == 0:
        print(line, flush=True)
dist.barrier()
dist.destroy_process_group()
