#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""How long ranks wait for their imports under torchrun and hlaunch, with and without --preload.

    tests/bench/launch/warm_start.py [--python PYTHON] [--script torch|lightning|MODULE] [--ranks 8]
                                     [--runs 3] [--work 4] [--calls] [--only WORD] [--all]

PYTHON has the module, and torch for torchrun. In each run all ranks wait behind their imports for
--work seconds; then rank 1 (of one rank: rank 0) ends with 1, and in the second round all ranks wait
for each other behind their imports and end well. The launchers take turns. Prints medians:

    start       seconds until all ranks of the first round stand behind their imports
    restart     seconds from the exit of a rank's script until all ranks of the second round do
    ended       the same from the moment at which that rank's process has ended
    processor   processor seconds of the whole job
    memory      MiB that all its processes hold during the first round; shared pages count once (PSS)
    read        MiB that they had read by then, by calls (rchar), also from the page cache

--calls runs each launcher once more under strace, and prints how many calls that name files
(openat, stat, readlink and their like) a whole job makes: what a network file system has to answer.

--all does so for torch and Lightning with eight ranks, and for torch with one, with the environments
that tests/run makes, and says which aims are met. On two cores that are quiet it takes five minutes.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HLAUNCH = pathlib.Path(os.environ.get("HLAUNCH_BIN", "build/bin")).resolve() / "hlaunch"
MODULES = {"lightning": "lightning.pytorch"}
CACHED = pathlib.Path("~/.cache/hlaunch").expanduser()
PYTHONS = {"torch": os.environ.get("HLAUNCH_TORCH2_PYTHON", f"{CACHED}/torch-newest/bin/python"),
           "lightning": os.environ.get("HLAUNCH_STOCK_PYTHON", f"{CACHED}/stock-3/bin/python")}
Figures = collections.namedtuple("Figures", "start restart ended processor memory read")
# Module and ranks -> what is wanted of the figures of torchrun, hlaunch, and hlaunch --preload.
AIMS = {
    ("torch", 8): lambda torchrun, _, warm: {
        "torch, 8 ranks: start, as a part of torchrun's": (warm.start / torchrun.start, 0.22),
        "torch, 8 ranks: seconds from a rank's end to all behind imports": (warm.ended, 0.4)},
    ("lightning", 8): lambda torchrun, _, warm: {
        "Lightning, 8 ranks: start, as a part of torchrun's": (warm.start / torchrun.start, 0.22),
        "Lightning, 8 ranks: seconds from a rank's end to all behind imports": (warm.ended, 0.5)},
    ("torch", 1): lambda _, cold, warm: {
        "torch, 1 rank: seconds of the start more than without --preload": (warm.start - cold.start, 0.02)},
}
SCRIPT = """
import os
import time
import MODULE

count, rank, size = (os.environ[name] for name in ("TORCHELASTIC_RESTART_COUNT", "RANK", "WORLD_SIZE"))
with open("behind" + count, "a") as file:
    file.write("%r\\n" % time.time())


def lines():
    with open("behind" + count) as file:
        return len(file.readlines())


while lines() < int(size) or (count == "0" and not os.path.exists("go")):
    time.sleep(0.01)
if count == "0":
    if rank == str(min(1, int(size) - 1)):
        with open("died", "w") as died:
            died.write("%d %r" % (os.getpid(), time.time()))
        raise SystemExit(1)
    time.sleep(60)
"""


@dataclasses.dataclass
class Job:
    module: str
    ranks: int
    python: str

    def __str__(self):
        return f"{self.ranks} rank{'s'[:self.ranks > 1]}, import {self.module}"


def processes_below(root):
    """The pids of `root` and of all its descendants."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
        except OSError:
            pass
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def held(root):
    """PSS and rchar in MiB of all processes of a job."""
    pss = read = 0
    for pid in processes_below(root):
        try:
            rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            pss += int(re.search(r"^Pss: +(\d+) kB", rollup, re.M)[1])
            read += int(re.search(r"^rchar: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text())[1])
        except (OSError, TypeError):
            pass
    return pss / 1024, read / 2**20


def processor_of(root):
    """Processor seconds of all processes of a running job, and of those that these have reaped."""
    ticks = 0
    for pid in processes_below(root):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(condition, job, what):
    deadline = time.time() + 300
    while not condition():
        if job.poll() is not None or time.time() > deadline:
            sys.exit(f"{what} never came; the job said\n{job.stdout.read() if job.stdout else ''}")
        time.sleep(0.005)


def lines(path):
    return path.read_text(encoding="ascii").splitlines() if path.exists() else []


def measure(command, script, ranks, work):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "script.py").write_text(script, encoding="utf-8")
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        with subprocess.Popen([*command, str(place / "script.py")], cwd=folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
            wait_until(lambda: len(lines(place / "behind0")) == ranks, job, "the first round")
            time.sleep(work)  # hlaunch makes forks for the next round meanwhile.
            memory, read = held(job.pid)
            (place / "go").touch()
            wait_until(lambda: len(lines(place / "died")) == 1, job, "the death")
            pid = int(lines(place / "died")[0].split()[0])
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), job, "the end of the rank")
            ended = time.time()
            told = job.communicate(timeout=600)[0]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if job.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {job.returncode}:\n{told}")
        first, second = (max(map(float, lines(place / f"behind{count}"))) for count in "01")
        died = float(lines(place / "died")[0].split()[1])
        return Figures(first - began, second - died, second - ended,
                       after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory, read)


def file_calls(command, script):
    """How many calls with a file's name a job makes that ends well at once."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "script.py")
        path.write_text(script.replace('if count == "0":\n', "if False:\n", 1)
                        .replace('(count == "0" and not os.path.exists("go"))', "False"),
                        encoding="utf-8")
        subprocess.run(["strace", "-f", "-c", "-o", f"{folder}/calls", "-e", "trace=%file", *command,
                        str(path)], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=900)
        total = [line.split() for line in pathlib.Path(folder, "calls").read_text().splitlines()][-1]
        return int(total[3])


def launchers_of(job, only):
    words = ["--nproc-per-node", str(job.ranks), "--max-restarts", "1"]
    every = {
        "torchrun": [job.python, "-m", "torch.distributed.run", "--standalone", *words],
        "hlaunch": [str(HLAUNCH), *words, "--preload", "off"],
        "hlaunch --preload": [str(HLAUNCH), *words, "--preload", job.module],
    }
    return {name: command for name, command in every.items() if name.startswith(only)}


def compare(job, options):
    """The median figures of each launcher."""
    os.environ["PYTHON_EXEC"] = job.python
    script = SCRIPT.replace("MODULE", job.module)
    launchers = launchers_of(job, options.only)
    figures = {name: [] for name in launchers}
    for _ in range(options.runs):
        for name, command in launchers.items():
            figures[name].append(measure(command, script, job.ranks, options.work))
    print(f"{job}, medians of {options.runs}")
    medians = {name: Figures(*map(statistics.median, zip(*runs))) for name, runs in figures.items() if runs}
    if medians:
        print_figures(medians)
    if options.calls:
        for name, command in launchers.items():
            print(f"{name:20}{file_calls(command, script):10} calls with a file's name")
    print(flush=True)
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--script", "--import", dest="module", default="torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=float, default=4)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--only", default="", help="only launchers whose name begins so")
    parser.add_argument("--all", action="store_true",
                        help="torch and Lightning with eight ranks and torch with one, in this order, by the "
                             "environments of the tests, and which of the aims are met")
    options = parser.parse_args()
    if options.calls and not shutil.which("strace"):
        sys.exit("--calls needs strace")
    if not options.all:
        compare(Job(MODULES.get(options.module, options.module), options.ranks, options.python), options)
        return
    print(f"load before: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    aims = {}
    for name, aim in AIMS.items():
        medians = compare(Job(MODULES.get(name[0], name[0]), name[1], PYTHONS[name[0]]), options)
        aims.update(aim(medians["torchrun"], medians["hlaunch"], medians["hlaunch --preload"]))
    for what, (found, most) in aims.items():
        print(f"{what:66}{found:8.3f}  at most {most:5.2f}  {'met' if found <= most else 'MISSED'}")


def print_figures(medians):
    print(f"{'':20}{'start':>10}{'restart':>10}{'ended':>10}{'processor':>12}{'memory':>12}{'read':>12}")
    for name, of in medians.items():
        print(f"{name:20}{of.start:8.2f} s{of.restart:8.2f} s{of.ended:8.2f} s{of.processor:10.2f} s"
              f"{of.memory:8.0f} MiB{of.read:8.0f} MiB")


if __name__ == "__main__":
    main()
