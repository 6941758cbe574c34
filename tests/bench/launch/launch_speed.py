#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how long it takes to launch N x /bin/true, and hlaunch's memory while a worker runs.

    tests/bench/launch/launch_speed.py [--rounds 15] [--workers 1,8,64] [--beside BUILD]
                                       [--json FILE]

hlaunch is compared with mpiexec.hydra, Open MPI's mpirun and torchrun, if installed, on this
machine. The launchers take turns within every round, so that a machine that slows down slows all.
Prints medians, and ratios to hlaunch's median. This bench asserts nothing.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
HLAUNCH = str(pathlib.Path(os.environ.get("HLAUNCH_BIN", ROOT / "build/bin")) / "hlaunch")
LIMIT = 20  # Seconds for one launch; a longer one counts as a hang.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launchers(beside=None):
    """{name: function of the number of workers that returns the command}, for all launchers that
    are installed and, if `beside` names one, for another build of hlaunch."""
    found = {"hlaunch": lambda n: [HLAUNCH, "--nproc-per-node", str(n), "--no-python", "/bin/true"]}
    if beside:
        found["hlaunch beside"] = lambda n: [f"{beside}/bin/hlaunch", "--nproc-per-node", str(n),
                                             "--no-python", "/bin/true"]
    if shutil.which("mpiexec.hydra"):
        found["mpiexec.hydra"] = lambda n: ["mpiexec.hydra", "-n", str(n), "/bin/true"]
    if shutil.which("mpirun.openmpi"):
        found["mpirun (Open MPI)"] = lambda n: [
            "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(n), "/bin/true"]
    cached = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    python = os.environ.get("HLAUNCH_TORCH2_PYTHON", cached / "hlaunch/torch-newest/bin/python")
    if os.access(python, os.X_OK):
        found["torchrun"] = lambda n: [
            str(python), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n),
            "--no-python", "/bin/true"]
    return found


def seconds(command):
    """How long `command` took, or None if it hung (Open MPI 4 sometimes does)."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        errors = process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None
    took = time.perf_counter() - began
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: "
                         f"{errors.decode()[-500:]}")
    return took


def measure_launch(found, workers, rounds):
    """{(launcher, n): [seconds]}; one launch of each beforehand warms the page cache."""
    commands = {(name, n): command(n) for name, command in found.items() for n in workers}
    for command in commands.values():
        seconds(command)
    times = {key: [] for key in commands}
    for _ in range(rounds):
        for key, command in commands.items():
            times[key].append(seconds(command))
    return times


def print_launch(found, times, workers):
    print("Launch of N x /bin/true: median in ms (fastest .. slowest), ratio to hlaunch\n")
    print(f"| {'launcher':18} |" + "".join(f" {f'N = {n}':30} |" for n in workers))
    print(f"|{'-' * 20}|" + f"{'-' * 32}|" * len(workers))
    for name in found:
        cells = []
        for n in workers:
            done = [took for took in times[name, n] if took is not None]
            hung = f", {len(times[name, n]) - len(done)} hung" * (len(done) < len(times[name, n]))
            if not done:
                cells.append("all hung")
                continue
            median = statistics.median(done)
            ratio = median / statistics.median(filter(None, times["hlaunch", n]))
            cells.append(f"{median * 1e3:.1f} ({min(done) * 1e3:.1f} .. {max(done) * 1e3:.1f})  "
                         f"{ratio:.2f}x{hung}")
        print(f"| {name:18} |" + "".join(f" {cell:30} |" for cell in cells))


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    return [int(child) for child in text.split()]


def memory(pid):
    """(resident, proportional) KiB of one process."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    values = {line.split(":")[0]: line.split()[1] for line in rollup.splitlines()[1:]}
    return int(values["Rss"]), int(values["Pss"])


def wait_for_worker(keeper):
    """The agent's pid, once its worker has been started."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        agent = (children(keeper) or [0])[0]
        if agent and children(agent):
            time.sleep(0.5)  # Until late parts have started; this is not measured.
            return agent
        time.sleep(0.02)
    raise SystemExit("hlaunch did not start its worker within 20 s")


def measure_memory(nodes):
    """[(who, resident, proportional)] while each node runs one `sleep`."""
    meet = ["--nnodes", str(nodes), "--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    command = [HLAUNCH, *(meet if nodes > 1 else []), "--no-python", "sleep", "60"]
    jobs = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(nodes)]
    try:
        rows = []
        for index, job in enumerate(jobs):
            agent = wait_for_worker(job.pid)
            rows += [(f"{nodes} node(s): keeper {index}", *memory(job.pid)),
                     (f"{nodes} node(s): agent {index}", *memory(agent))]
        return rows
    finally:
        for job in jobs:
            job.send_signal(signal.SIGINT)
        for job in jobs:
            job.wait(30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--workers", default="1,8,64")
    parser.add_argument("--beside", metavar="BUILD", help="build folder of another hlaunch")
    parser.add_argument("--launchers", default="", metavar="REGEX", help="only those with such a name")
    parser.add_argument("--json", help="write every single figure to this file")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # torchrun prints a warning otherwise.
    workers = [int(n) for n in args.workers.split(",")]

    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}, {args.rounds} rounds\n")
    found = {name: line for name, line in launchers(args.beside).items() if re.search(args.launchers, name)}
    times = measure_launch(found, workers, args.rounds)
    print_launch(found, times, workers)
    rows = measure_memory(1) + measure_memory(2)
    print("\nMemory while one `sleep` runs on each node, KiB\n")
    print(f"| {'process':24} | resident | proportional |\n|{'-' * 26}|{'-' * 10}|{'-' * 14}|")
    for who, resident, proportional in rows:
        print(f"| {who:24} | {resident:8} | {proportional:12} |")
    if args.json:
        record = {"launch": [{"launcher": name, "workers": n, "seconds": figures}
                             for (name, n), figures in times.items()],
                  "memory": [dict(zip(("process", "rss_kib", "pss_kib"), row)) for row in rows]}
        pathlib.Path(args.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
