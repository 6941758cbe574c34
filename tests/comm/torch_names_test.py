#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The manual's table of torch.distributed's names matches the package.

torch_names_test.py PACKAGE; with --write after it, it writes the page, which needs torch 2.14.
"""

import inspect
import pathlib
import sys
import unittest

import rank_processes

WRITE = "--write" in sys.argv and not sys.argv.remove("--write")
sys.path.insert(0, str(rank_processes.PACKAGE))

import hlaunch
import torch
from torch.distributed import distributed_c10d

PAGE = rank_processes.ROOT / "launcher/manual/torch-names.md"
OF_PAGE = "2.14"
OPTIONS = "a backend's own methods take it; the verbs take arguments"
ONE_BACKEND = "there is one backend, hlaunch"
OTHERS = "another backend's"
GROUPS = "make a group with `new_group`"
# Why a name is missing.
NAMES = {
    **dict.fromkeys(("AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions",
                     "BarrierOptions", "BroadcastOptions", "GatherOptions", "ReduceOptions",
                     "ReduceScatterOptions", "ScatterOptions"), OPTIONS),
    **dict.fromkeys(("Backend", "BackendConfig", "get_backend_impl",
                     "get_default_backend_for_device"), ONE_BACKEND),
    **dict.fromkeys(("ProcessGroupGloo", "ProcessGroupNCCL", "ProcessGroupNCCL2",
                     "ProcessGroupNCCLLazy", "is_gloo_available", "is_mpi_available",
                     "is_nccl_available", "is_ucc_available", "is_xccl_available"), OTHERS),
    **dict.fromkeys(("DebugLevel", "get_debug_level"),
                    "calls that do not match are found at every level"),
    **dict.fromkeys(("PrefixStore", "Store"), "`init_process_group(store=...)` takes torch's"),
    **dict.fromkeys(("shrink_group", "split_group"), GROUPS),
    **dict.fromkeys(("gather_into_tensor", "gather_single"),
                    "`gather` into views of one array copies nothing twice"),
    "GroupName": "a type for checkers; names are strings",
    "record_comm": "of torch's own tracing",
    "reduce_op": "torch's old name of `ReduceOp`",
    "set_timeout": "`init_process_group`, `new_group` and `barrier` take a time-out",
}
# Why an argument is missing, or does nothing.
ARGUMENTS = {
    "enable_reconfigure": "groups do not change",
    "_ranks": "torch's own",
    "weights_only": "all objects are unpickled: trust the ranks",
    "use_batch": "messages need no batch",
    "reduceOp": "it is called `reduce_op`",
    "wait_all_ranks": "all that are missing are named in any case",
}


def parameters(thing):
    return [] if inspect.isclass(thing) else list(inspect.signature(thing).parameters)


def row(name):
    theirs = getattr(distributed_c10d, name)
    if not hasattr(hlaunch, name):
        return f"| `{name}` | no: {NAMES[name]} |"
    missing = []
    if callable(theirs) and not inspect.isclass(theirs):
        missing = [each for each in parameters(theirs)
                   if each not in parameters(getattr(hlaunch, name))]
    without = "; ".join(f"`{each}`: {ARGUMENTS[each]}" for each in missing)
    return f"| `{name}` | yes{f', without {without}' if missing else ''} |"


def page():
    rows = "\n".join(row(name) for name in sorted(distributed_c10d.__all__, key=str.lower))
    return f"""# torch.distributed's names

What `torch.distributed` {OF_PAGE} has and what the package [`hlaunch`](collectives.md#without-pytorch), which
needs no torch, has of it. `hlaunch.torch` is not meant: there torch's own functions do it all. Made by
`tests/comm/torch_names_test.py` of the tree.

| torch.distributed | hlaunch |
|---|---|
{rows}
"""


class Names(unittest.TestCase):
    def test_each_name_is_there_or_has_a_reason(self):
        for name in distributed_c10d.__all__:
            self.assertTrue(hasattr(hlaunch, name) or name in NAMES, name)
            self.assertFalse(hasattr(hlaunch, name) and name in NAMES, f"{name} has a reason")

    def test_the_page_is_of_this_package(self):
        if not torch.__version__.startswith(OF_PAGE + "."):
            self.skipTest(f"the page is of torch {OF_PAGE}, this is {torch.__version__}")
        self.assertEqual(page(), PAGE.read_text(encoding="utf-8"), "run it with --write")

    def test_what_is_exported_is_there(self):
        for name in hlaunch.__all__:
            self.assertTrue(hasattr(hlaunch, name), name)


if __name__ == "__main__":
    if WRITE:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        unittest.main()
