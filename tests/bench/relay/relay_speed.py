#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how fast workers' lines get through a launcher, and the CPU time for that.

    tests/bench/relay/relay_speed.py [--rounds 3] [--workers 1,4,16] [--megabytes 400] [--json FILE]

All workers write lines of 100 bytes at once, and the launcher's stdout is /dev/null. hlaunch runs
with its prefix, to the console, to console and files, and to files alone. It is compared with Open
MPI's mpirun, mpiexec.hydra and torchrun --tee, if installed. Launchers take turns within every
round. The same launch without output is subtracted from time and CPU time (which includes the
workers'). The other launchers are slower and get a tenth of the bytes. This bench asserts nothing.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HLAUNCH_BUILD", ROOT / "build"))
WRITER = str(BUILD / "tests/bench/relay/line_writer")
LIMIT = 120  # Seconds for one launch.


def launchers(scratch):
    """{name: (command up to the program for n workers, share of the bytes)}, if installed."""
    hlaunch = [str(BUILD / "bin/hlaunch"), "--no-python", "--log-prefix", "[${rank}] "]
    logs = ["--log-dir", scratch]
    found = {
        "hlaunch": (lambda n: [*hlaunch, "--nproc-per-node", n], 1),
        "hlaunch --tee 1": (lambda n: [*hlaunch, *logs, "-t", "1", "--nproc-per-node", n], 1),
        "hlaunch --redirects 1": (lambda n: [*hlaunch, *logs, "-r", "1", "--nproc-per-node", n], 1),
    }
    if shutil.which("mpirun.openmpi"):
        found["mpirun --tag-output"] = (lambda n: [
            "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--tag-output", "-n", n],
            0.1)
    if shutil.which("mpiexec.hydra"):
        found["mpiexec.hydra -prepend-rank"] = (
            lambda n: ["mpiexec.hydra", "-prepend-rank", "-n", n], 0.1)
    cached = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    python = os.environ.get("HLAUNCH_TORCH2_PYTHON", cached / "hlaunch/torch-newest/bin/python")
    if os.access(python, os.X_OK):
        found["torchrun --tee 3"] = (lambda n: [
            str(python), "-m", "torch.distributed.run", "--standalone", "--no-python", "--tee", "3",
            *logs, "--nproc-per-node", n], 0.1)
    return found


def run(command, size):
    """(seconds, CPU seconds) of one launch whose workers write `size` bytes each."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run([*command, WRITER, str(size)], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT)
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.returncode}: {done.stderr.decode()[-500:]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(workers, rounds, total):
    """{(launcher, n): (bytes, runs without output, runs with it)}"""
    figures = {}
    for _ in range(rounds):
        for n in workers:
            with tempfile.TemporaryDirectory() as scratch:
                for name, (command, share) in launchers(scratch).items():
                    words, size = command(str(n)), int(total * share / n)
                    _, idle, busy = figures.setdefault((name, n), (size * n, [], []))
                    idle.append(run(words, 0))
                    busy.append(run(words, size))
                    for entry in pathlib.Path(scratch).iterdir():
                        shutil.rmtree(entry)
    return figures


def speeds(size, idle, busy):
    """(median MB/s, slowest, fastest, CPU seconds per GB); 0 if the time of the output cannot be
    told from that of the launch."""
    idle_time, idle_cpu = (statistics.median(column) for column in zip(*idle))
    times = sorted(took - idle_time for took, _ in busy)
    middle, longest, shortest = (size / 1e6 / took if took > 0.02 else 0
                                 for took in (statistics.median(times), times[-1], times[0]))
    return middle, longest, shortest, (statistics.median(cpu for _, cpu in busy) - idle_cpu) / (
        size / 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="1,4,16")
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    workers = [int(n) for n in options.workers.split(",")]
    figures = measure(workers, options.rounds, options.megabytes * 1_000_000)
    print("Lines of 100 bytes: median MB/s (slowest .. fastest), ratio to hlaunch; CPU s a GB\n")
    print(f"| {'launcher':27} |" + "".join(f" {f'{n} workers':42} |" for n in workers))
    print(f"|{'-' * 29}|" + f"{'-' * 44}|" * len(workers))
    for name in dict.fromkeys(name for name, _ in figures):
        cells = []
        for n in workers:
            median, slowest, fastest, cpu = speeds(*figures[name, n])
            ratio = median / max(speeds(*figures["hlaunch", n])[0], 1)
            cells.append(f"{median:.0f} ({slowest:.0f} .. {fastest:.0f})  {ratio:.2f}x  {cpu:.2f} s")
        print(f"| {name:27} |" + "".join(f" {cell:42} |" for cell in cells))
    if options.json:
        rows = [{"launcher": name, "workers": n, "bytes": size, "idle": idle, "busy": busy}
                for (name, n), (size, idle, busy) in figures.items()]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
