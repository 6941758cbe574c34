# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's collectives between the ranks of a job, with torch.distributed's names.

    import hlaunch
    hlaunch.init_process_group()          # from the environment of hlaunch or torchrun
    hlaunch.all_reduce(array)             # NumPy, CPU tensors, bytearray, array, memoryview
    hlaunch.heartbeat(step)               # in each step: see --heartbeat-timeout
    hlaunch.at_boundary()                 # after a checkpoint: see --boundary-limit

For torch.distributed itself: `import hlaunch.torch`, then `init_process_group("hlaunch")`.
"""

from .distributed import (P2POp, all_gather, all_gather_coalesced, all_gather_into_tensor,
                          all_gather_single, all_reduce, all_reduce_coalesced, all_to_all,
                          all_to_all_single, barrier, batch_isend_irecv, broadcast, gather, irecv,
                          isend, monitored_barrier, recv, reduce, reduce_scatter,
                          reduce_scatter_single, reduce_scatter_tensor, scatter, send,
                          supports_complex)
from .groups import (NON_GROUP_MEMBER, GroupMember, default_pg_timeout, destroy_process_group,
                     get_backend, get_backend_config, get_global_rank, get_group_rank,
                     get_node_local_rank, get_pg_count, get_process_group_ranks, get_rank,
                     get_world_size, group, init_process_group, is_available, is_backend_available,
                     is_initialized, is_torchelastic_launched, new_group, new_subgroups,
                     new_subgroups_by_enumeration)
from .library import (Cancelled, CommError, InvalidArgument, OutOfResources, RankLost,
                      TimedOut)
from .liveness import at_boundary, heartbeat
from .objects import (all_gather_object, broadcast_object_list, gather_object, recv_object_list,
                      scatter_object_list, send_object_list)
from .process_group import ANY_RANK, PremulSum, ProcessGroup, ReduceOp, Work

__version__ = "0.1.0"
__all__ = [
    "ANY_RANK", "Cancelled", "CommError", "GroupMember", "InvalidArgument", "NON_GROUP_MEMBER",
    "OutOfResources", "P2POp", "PremulSum", "ProcessGroup", "RankLost", "ReduceOp", "TimedOut",
    "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object",
    "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single",
    "at_boundary", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_backend_config",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "heartbeat",
    "init_process_group", "irecv", "is_available", "is_backend_available", "is_initialized",
    "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
    "send_object_list", "supports_complex",
]
