#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""PyTorch's own tests of its collectives and of DDP, with backend="hlaunch" and four ranks: all
that run on CPUs, except EXCLUDED. Needs the package expecttest beside torch."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import rank_processes

WORKER = pathlib.Path(__file__).with_name("torch_own_tests_worker.py")
SIZE = 4
ELSEWHERE = ("cuda", "nccl", "multigpu")  # Names of tests for other devices and backends.
EXCLUDED = {
    "test_monitored_barrier_": "torch lets no backend but gloo have it; hlaunch's own is tested",
    "test_SyncBatchNorm_process_group": "needs torchvision",
    "test_accumulate_gradients_no_sync": "sets up a model for the backends that it knows",
    "test_barrier_timeout_": "wants a time-out where ranks have left, which are named here",
    "test_batch_isend_irecv_mixed_backend_err": "needs NCCL",
    "test_batch_isend_irecv_op_err": "asks for the rank's GPU",
    "test_sparse_all_reduce_sum": "sparse tensors are refused by name",
}
LIST = """
from torch.testing._internal.distributed import distributed_test
print(*[name for name in dir(distributed_test.DistributedTest._DistTestBase)
        if name.startswith("test_")])
"""


class TorchsOwnTests(rank_processes.RanksTest):
    def test_pass(self):
        env = {"BACKEND": "hlaunch", "INIT_METHOD": "env://", "TORCH_CPP_LOG_LEVEL": "FATAL",
               # torch's store asks DNS for the name of each address that connects, and waits for
               # the answer.
               "RES_OPTIONS": "timeout:1 attempts:1"}
        names = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", LIST], check=True, text=True, timeout=800,
            stdout=subprocess.PIPE,
            env=rank_processes.environment(WORLD_SIZE=str(SIZE), **env)).stdout.split()
        names = [name for name in names if not any(word in name for word in ELSEWHERE)
                 and not any(name.startswith(begin) for begin in EXCLUDED)]
        said = self.assert_ranks(SIZE, WORKER, *names, timeout=850, env=env)
        ranks = [{name: json.loads(how) for name, how in
                  re.findall(r"^RESULT (\S+) (.*)$", out, re.MULTILINE)} for out in said]
        failed = [f"{name}, rank {rank}: {results.get(name, 'nothing was heard of it')}"
                  for name in names for rank, results in enumerate(ranks)
                  if not results.get(name, "").startswith(("passed", "skipped"))]
        self.assertFalse(failed, "\n".join(failed))
        passed = [name for name in names if ranks[0][name] == "passed"]
        print(f"{len(passed)} passed, {len(names) - len(passed)} were skipped by themselves")
        self.assertGreater(len(passed), 80, ranks[0])


if __name__ == "__main__":
    if importlib.util.find_spec("expecttest") is None:
        print(f"skipped: {sys.executable} has no expecttest, which torch's tests need")
        sys.exit(77)  # CTest's SKIP_RETURN_CODE
    rank_processes.unittest.main()
