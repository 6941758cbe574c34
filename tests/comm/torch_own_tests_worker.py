# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""One rank of torch_own_tests_test.py: torch_own_tests_worker.py TEST…, which are tests of torch's
own DistributedTest. Each gets a new group. Prints a line for each: RESULT TEST and the outcome as
JSON."""

import datetime
import json
import os
import pathlib
import sys
import time
import traceback
import unittest

os.environ.setdefault("BACKEND", "hlaunch")  # torch's tests read this when they are loaded.
os.environ.setdefault("INIT_METHOD", "env://")

import torch.distributed as dist
from torch.testing._internal.common_utils import set_rng_seed
from torch.testing._internal.distributed import distributed_test

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Own(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    def _barrier(self, *_, **__):
        dist.barrier()


def run(name):
    test = Own(name)
    test.rank, test.file_name = RANK, f"{os.environ['MEET']}-{name}"
    set_rng_seed(1234)  # torch's setUp does this.
    try:
        getattr(test, name)()
        return "passed"
    except unittest.SkipTest as reason:
        return f"skipped: {reason}"
    except SystemExit as end:  # torch's tests skip this way where a device is missing.
        skips = {skip.exit_code: skip.message for skip in distributed_test.TEST_SKIPS.values()}
        return f"skipped: {skips[end.code]}" if end.code in skips else f"failed: exit {end.code}"
    except Exception:
        return f"failed: {traceback.format_exc()}"


def meet():
    """Makes a store for all groups."""
    told = pathlib.Path(f"{os.environ['MEET']}-port")
    if RANK == 0:
        store = dist.TCPStore("127.0.0.1", 0, SIZE, True, wait_for_workers=False)
        told.with_suffix(".new").write_text(str(store.port), encoding="utf-8")
        told.with_suffix(".new").rename(told)
        return store
    while not told.exists():
        time.sleep(0.01)
    return dist.TCPStore("127.0.0.1", int(told.read_text(encoding="utf-8")), SIZE, False)


def main():
    os.environ["TEMP_DIR"] = f"{os.environ['MEET']}-files"
    for folder in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
    store = meet()
    for name in sys.argv[1:]:
        dist.init_process_group(os.environ["BACKEND"], rank=RANK, world_size=SIZE,
                                store=dist.PrefixStore(name, store),
                                timeout=datetime.timedelta(seconds=120))
        print(f"RESULT {name} {json.dumps(run(name))}", flush=True)
        if dist.is_initialized():  # Some tests end it themselves.
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
