# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's collectives between the ranks of a job, with torch.distributed's names.

    import hlaunch
    hlaunch.init_process_group()          # from the environment of hlaunch or torchrun
    hlaunch.all_reduce(array)             # NumPy, CPU tensors, bytearray, array, memoryview
    hlaunch.heartbeat(step)               # in each step: see --heartbeat-timeout

For torch.distributed itself: `import hlaunch.torch`, then `init_process_group("hlaunch")`.
"""

from .distributed import (NON_GROUP_MEMBER, all_gather, all_gather_into_tensor, all_reduce,
                          all_to_all, all_to_all_single, barrier, broadcast,
                          destroy_process_group, gather, get_rank, get_world_size,
                          init_process_group, irecv, is_available, is_initialized, isend,
                          monitored_barrier, new_group, recv, reduce, reduce_scatter,
                          reduce_scatter_tensor, scatter, send)
from .library import (Cancelled, CommError, InvalidArgument, OutOfResources, RankLost,
                      TimedOut)
from .liveness import heartbeat
from .process_group import ANY_RANK, PremulSum, ProcessGroup, ReduceOp, Work

__version__ = "0.1.0"
__all__ = [
    "ANY_RANK", "Cancelled", "CommError", "InvalidArgument", "NON_GROUP_MEMBER", "OutOfResources",
    "PremulSum", "ProcessGroup", "RankLost", "ReduceOp", "TimedOut", "Work", "all_gather",
    "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "broadcast", "destroy_process_group", "gather", "get_rank", "get_world_size", "heartbeat",
    "init_process_group", "irecv", "is_available", "is_initialized", "isend", "monitored_barrier",
    "new_group", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
]
