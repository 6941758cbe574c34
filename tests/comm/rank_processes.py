# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Ranks as processes of a Python program, for tests of comm's Python interface.

A test is a program whose first argument is the folder with the package, build/python.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else ROOT / "build/python").resolve()


def environment(**more):
    """The environment of a process that uses the package."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")}
    env.update(PYTHONPATH=f"{PACKAGE}", PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1",
               TORCH_CPP_LOG_LEVEL="ERROR", HLAUNCH_TORCH_BACKEND="1")
    env.update(more)
    return env


def run(size, script, *args, timeout=500, env=None):
    """Runs `script` as each rank, with RANK, WORLD_SIZE and MEET, a file that does not exist yet.
    Returns [(exit code, output)] by rank. After `timeout` it kills the ranks, with a code of -9."""
    with tempfile.TemporaryDirectory(prefix="hlaunch-ranks-") as folder:
        outs = [pathlib.Path(folder, f"out-{rank}") for rank in range(size)]
        ranks = [subprocess.Popen(
            [sys.executable, script, *map(str, args)], stdin=subprocess.DEVNULL,
            stdout=outs[rank].open("w"), stderr=subprocess.STDOUT,
            env=environment(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size),
                            MEET=f"{folder}/meet", **(env or {})))
                 for rank in range(size)]
        clock = threading.Timer(timeout, lambda: [rank.kill() for rank in ranks])
        clock.start()
        try:
            return [(rank.wait(), out.read_text(encoding="utf-8", errors="replace"))
                    for rank, out in zip(ranks, outs)]
        finally:
            clock.cancel()
            for rank in ranks:
                rank.kill()


class RanksTest(unittest.TestCase):
    def assert_ranks(self, size, script, *args, codes=0, **how):
        """All ranks exit with `codes` (a list: by rank); returns their outputs."""
        results = run(size, script, *args, **how)
        told = "\n".join(f"-- rank {rank} exited {code}:\n{out}"
                         for rank, (code, out) in enumerate(results))
        expected = codes if isinstance(codes, list) else [codes] * size
        self.assertEqual(expected, [code for code, _ in results], told)
        return [out for _, out in results]
