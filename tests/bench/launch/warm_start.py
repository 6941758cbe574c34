#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""How long ranks wait for their imports under torchrun and hlaunch, with and without --preload.

    tests/bench/launch/warm_start.py [--python PYTHON] [--import torch] [--ranks 8] [--runs 3]

PYTHON has the module, and torch for torchrun. In each run rank 1 ends with 1 once all ranks are
behind their imports, and the second round ends well. The launchers take turns. Prints the medians:
seconds until all ranks of the first round stand behind their imports, seconds from the death until
all ranks of the second round do, and processor seconds of the whole job.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HLAUNCH = pathlib.Path(os.environ.get("HLAUNCH_BIN", "build/bin")).resolve() / "hlaunch"
SCRIPT = """
import os
import time
import MODULE

count, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
with open("behind", "a") as file:
    file.write("%s %r\\n" % (count, time.time()))
while count == "0":
    with open("behind") as file:
        if len(file.readlines()) >= int(os.environ["WORLD_SIZE"]) and rank == "1":
            with open("died", "w") as died:
                died.write(repr(time.time()))
            raise SystemExit(1)
    time.sleep(0.01)
"""


def measure(command, script):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "script.py")
        path.write_text(script, encoding="utf-8")
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        done = subprocess.run([*command, str(path)], cwd=folder, check=False, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
        rounds = {"0": [], "1": []}
        for line in pathlib.Path(folder, "behind").read_text(encoding="utf-8").splitlines():
            count, when = line.split()
            rounds[count].append(float(when))
        died = float(pathlib.Path(folder, "died").read_text(encoding="utf-8"))
        return (max(rounds["0"]) - began, max(rounds["1"]) - died,
                after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--import", dest="module", default="torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    os.environ["PYTHON_EXEC"] = options.python
    script = SCRIPT.replace("MODULE", options.module)
    words = ["--nproc-per-node", str(options.ranks), "--max-restarts", "1"]
    launchers = {
        "torchrun": [options.python, "-m", "torch.distributed.run", "--standalone", *words],
        "hlaunch": [str(HLAUNCH), *words],
        "hlaunch --preload": [str(HLAUNCH), *words, "--preload", options.module],
    }
    figures = {name: [] for name in launchers}
    for _ in range(options.runs):
        for name, command in launchers.items():
            figures[name].append(measure(command, script))
    print(f"{options.ranks} ranks, import {options.module}, medians of {options.runs}")
    print(f"{'':20}{'start':>10}{'restart':>10}{'processor':>12}")
    for name, runs in figures.items():
        start, restart, processor = (statistics.median(column) for column in zip(*runs))
        print(f"{name:20}{start:8.2f} s{restart:8.2f} s{processor:10.2f} s")


if __name__ == "__main__":
    main()
