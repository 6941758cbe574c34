#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures from outside how long a job needs to recover.

    tests/bench/recovery/recovery_speed.py [--rounds 30] [--slow-rounds 5] [--agents 2,8,64]
                                           [--events LIST] [--build BUILD] [--torch PYTHONS]
                                           [--torch-agents 2,8] [--json FILE]

N agents on this machine run one worker each, a small C program. The bench strikes something, and
measures from that moment:

    stopped  until the workers of the old round on all other agents are gone
    running  until the last worker of the next round has begun, by its own clock: its first act

Events (all except `cut` and `host` on this host as it is; only `host` strikes the node that hosts
the rendezvous):

    worker          a worker is killed (with SIGKILL, as everything below)
    agent           an agent is killed; its keeper reports it
    keeper          a keeper is killed; its agent reports it
    both            keeper and agent at the same moment; the kernel closes their connections
    cut             a node's cable is pulled: no FIN, no message (hosts as namespaces; needs root)
    host            the node that hosts the rendezvous loses cable and processes without a message,
                    with --on-host-loss wait; needs three agents and root
    spare           an agent is killed; a spare stands by and takes its place
    rank0           the agent of node rank 0, which has the master store, is killed; a service
                    hosts the rendezvous, here and below
    rank0-both      the same, and its keeper at the same moment
    service         the service is killed and restarted at once. No worker may stop; running:
                    until the service has all agents again
    service-worker  the same, and a worker is killed at the same moment

`worker`, `spare`, `service` and `service-worker` go on with N nodes (--nnodes N), the others with N
- 1 (--nnodes N-1:N --last-call 0; the default of --last-call adds 30 s). All other times are
hlaunch's defaults. After each sample a new node takes the place of the struck one, except for
`host`, where each sample is a separate job. `both`, `cut`, `host` and `rank0-both` wait for the
loss limit or a part of it and the margin, so --slow-rounds applies to them, as to torchrun's
`agent` and `cut`, which wait for 15 s.

The bench compares torchrun, with each torch of --torch, in what it can survive: `worker`, and
`agent` and `cut` with --nnodes N-1:N and last_call_timeout=1, its minimum. Its agents only learn of
a dead one by failing workers, which in real jobs fail as their connection breaks. So for torchrun
the bench kills the workers of all other nodes at the same moment, and `stopped` has no figure; each
sample is a separate job. The loss of the node that hosts its rendezvous ends its job, so `host` has
no row for it.

Prints the median and the worst in ms. No figure makes the bench fail because it is large. A missing
figure gives its reason, and if a row has no figure at all, the exit code is 1.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import typing

import watched_job
from watched_job import Missing, lab

LIMIT = 60  # Seconds for one recovery,
SLOW_LIMIT = 120  # and for one that waits for the loss limit first.
VOTER_TIME = 5  # Until three agents keep the record, and all know it.
TRIES = 2  # Failures in a row after which a cell is given up.


def freeze(pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    if not lab.poll(lambda: all((lab.fields(pid) or "Z")[0] in "TZ" for pid in pids), 2, 0.001):
        raise Missing(f"SIGSTOP does not stop the processes {pids}")


def kill(*pids):
    """Kills all at the same moment; returns when. None of several sees another one's end."""
    if len(pids) > 1:
        freeze(pids)
    struck = time.monotonic()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return struck


def strike_worker(job, node):
    return kill(job.worker_of(node).pid)


def strike_agent(_, node):
    return kill(node.agent)


def strike_keeper(_, node):
    return kill(node.pid)


def strike_both(_, node):
    return kill(node.pid, node.agent)


def strike_cable(_, node):
    struck = time.monotonic()
    node.host.cut()
    return struck


def strike_host(_, node):
    struck = time.monotonic()
    node.host.drop()
    for pid in [node.pid, *lab.descendants(node.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return struck


def strike_service(job, _):
    struck = time.monotonic()
    job.service.kill()
    job.service.start()
    return struck


def strike_service_and_worker(job, node):
    worker = job.worker_of(node).pid
    struck = kill(worker)
    job.service.kill()
    job.service.start()
    return struck


def strike_torchrun(job, node):
    """The agent and all workers; see the module's text."""
    workers = [worker.pid for worker in job.watch.alive()]
    struck = kill(node.pid)
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return struck


def strike_torchrun_cable(job, node):
    """A node's cable, and the workers of all other nodes; see the module's text."""
    here = job.worker_of(node).pid
    struck = strike_cable(job, node)
    for worker in job.watch.alive():
        if worker.pid != here:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
    return struck


@dataclasses.dataclass
class Event:
    name: str
    text: str
    strike: typing.Callable  # (job, node); returns when it was struck.
    lost: int = 1  # Nodes that the next round lacks.
    slow: bool = False  # It waits for the loss limit first.
    spares: int = 0
    service: bool = False
    hosts: bool = False  # It needs a network for each node.
    of_rank: int = -1  # The struck node; -1 for any that does not host the rendezvous.
    replaced: bool = True  # Another node replaces the struck one.
    options: tuple = ()  # Further options of hlaunch.
    least: int = 2  # The least number of agents.
    torch: typing.Callable = None  # The strike for torchrun.


EVENTS = {event.name: event for event in (
    Event("worker", "a worker", strike_worker, lost=0, replaced=False, torch=strike_worker),
    Event("agent", "an agent", strike_agent, torch=strike_torchrun),
    Event("keeper", "a keeper", strike_keeper),
    Event("both", "agent and keeper", strike_both, slow=True),
    Event("cut", "a node's cable", strike_cable, slow=True, hosts=True,
          torch=strike_torchrun_cable),
    Event("host", "the rendezvous' host", strike_host, slow=True, hosts=True,
          options=("--on-host-loss", "wait"), least=3),
    Event("spare", "an agent, with a spare", strike_agent, lost=0, spares=1),
    Event("rank0", "agent of node rank 0", strike_agent, service=True, of_rank=0),
    Event("rank0-both", "agent and keeper of node rank 0", strike_both, slow=True, service=True,
          of_rank=0),
    Event("service", "the service", strike_service, lost=0, service=True, replaced=False),
    Event("service-worker", "the service and a worker", strike_service_and_worker, lost=0,
          service=True, replaced=False),
)}


class Hlaunch:
    name, events = "hlaunch", EVENTS

    def __init__(self, build, worker):
        self.build, self._worker = build, worker
        self._hlaunch = str(build / "bin/hlaunch")

    def command(self, job, is_host):
        elastic = ["--last-call", "0"] if job.least < job.count else []
        return [self._hlaunch, "--nnodes", f"{job.least}:{job.count}", *elastic,
                "--spares", str(job.spares), *job.options,
                "--rdzv-endpoint", job.endpoint, "--rdzv-id", job.id,
                "--rdzv-conf", f"is_host={int(is_host)}", "--max-restarts", "9999",
                "--no-python", str(self._worker), str(job.watch.path)]

    def nodes_of(self, job):
        """The number of nodes that the rendezvous knows, including spares."""
        asked = subprocess.run([self._hlaunch, "status", job.id, "--json", "--rdzv-endpoint",
                                job.endpoint], capture_output=True, check=False, timeout=LIMIT,
                               env=watched_job.clean_environment())
        return json.loads(asked.stdout)["total_nodes"] if asked.returncode == 0 else 0

    def strike_of(self, event):
        return event.strike

    def strikes_alone(self, _):
        return True

    def is_slow(self, event):
        return event.slow

    def replaces(self, event):
        return event.strike is not strike_host


class Torchrun:
    events = {name: event for name, event in EVENTS.items() if event.torch}

    def __init__(self, python, version, worker):
        self.name, self._python, self._worker = f"torchrun {version}", python, worker

    def command(self, job, is_host):
        conf = f"is_host={int(is_host)}" + (",last_call_timeout=1" if job.least < job.count else "")
        return [str(self._python), "-m", "torch.distributed.run", "--nnodes",
                f"{job.least}:{job.count}", "--nproc-per-node", "1", "--rdzv-backend", "c10d",
                "--rdzv-endpoint", job.endpoint, "--rdzv-id", job.id, "--rdzv-conf", conf,
                "--max-restarts", "9999", "--no-python", str(self._worker), str(job.watch.path)]

    def strike_of(self, event):
        return event.torch

    def strikes_alone(self, event):
        """Whether the other nodes' workers were not struck too."""
        return event.torch is strike_worker

    def is_slow(self, event):
        return event.replaced

    def replaces(self, _):
        return False  # A new agent in a lost one's place too often ends the job.


class Cell:
    """One event with one number of agents under one launcher: its samples."""

    def __init__(self, launcher, event, count, folder):
        self.launcher, self.event, self.count, self._folder = launcher, event, count, folder
        self.stopped, self.running, self.missing = [], [], []

    def measure(self, rounds, progress):
        """Takes `rounds` samples, from one job as long as none is missing."""
        failures = 0
        while len(self.running) + len(self.missing) < rounds and failures < TRIES:
            try:
                with self._job() as job:
                    lives = True
                    while lives and len(self.running) + len(self.missing) < rounds:
                        progress(self, len(self.running))
                        lives = self._sample(job)
                        failures = 0
            except (Missing, OSError, subprocess.SubprocessError) as reason:
                self.missing.append(str(reason))
                failures += 1

    @contextlib.contextmanager
    def _job(self):
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(
                dir=self._folder)))
            hosts = service = None
            if self.event.hosts:
                hosts = stack.enter_context(lab.Lab(self.count)).nodes
            if self.event.service:
                service = watched_job.Service(self.launcher.build, folder)
                stack.callback(service.kill)
            least = self.count - self.event.lost
            yield stack.enter_context(watched_job.Job(
                self.launcher, folder, self.count, least, self.event.spares, service, hosts,
                self.event.options))

    def _sample(self, job):
        """Takes one sample; returns whether the job can be used for another one."""
        job.settle()
        if self.event.strike is strike_host:
            job.watch.rest(VOTER_TIME)
        node, old = self._node(job), job.watch.alive()
        here = job.worker_of(node)
        others = [worker for worker in old if worker is not here]
        struck = self.launcher.strike_of(self.event)(job, node)
        if self.event.name == "service":
            self._await_service(job, old, struck)
        else:
            self._await_round(job, old, others, struck)
        if self.event.replaced and not self.launcher.replaces(self.event):
            return False
        if self.event.replaced:
            job.replace(node)
        job.watch.forget()
        return True

    def _node(self, job):
        if self.event.strike is strike_host:
            return job.nodes[0]
        if self.event.of_rank < 0:
            return job.victim()
        for worker in job.watch.alive():
            if worker.node_rank == self.event.of_rank:
                return job.node_of(worker)
        raise Missing(f"no worker of node rank {self.event.of_rank}")

    def _await_round(self, job, old, others, struck):
        size, known = self.count - self.event.lost, set(old)
        def new():
            return [worker for worker in job.watch.workers
                    if worker not in known and worker.world == size and not worker.ended]
        def done():
            return all(worker.ended for worker in others) and len(new()) == size
        limit = SLOW_LIMIT if self.event.slow else LIMIT
        if not job.watch.wait(done, limit):
            left = sum(not worker.ended for worker in others)
            raise Missing(f"after {limit} s {left} of {len(others)} other workers of the old round "
                          f"live, {len(new())} of {size} of the next; the first node said last: "
                          f"{job.nodes[0].last_words()}")
        if others and self.launcher.strikes_alone(self.event):
            self.stopped.append(max(worker.ended for worker in others) - struck)
        self.running.append(max(worker.begun for worker in new()) - struck)

    def _await_service(self, job, old, struck):
        deadline = struck + LIMIT
        while job.service.agents() < self.count:
            if time.monotonic() > deadline:
                raise Missing(f"after {LIMIT} s {job.service.agents()} of {self.count} agents have "
                              "come back to the service")
            job.watch.rest(0.005)
        self.running.append(time.monotonic() - struck)
        job.watch.rest(1)
        if ended := sum(worker.ended is not None for worker in old):
            raise Missing(f"{ended} workers stopped as the service was started again")

    def row(self):
        def shown(times):
            if not times:
                return f"{'-':>9} {'-':>9}"
            return f"{statistics.median(times) * 1e3:9.1f} {max(times) * 1e3:9.1f}"
        lacks = f"  {len(self.missing)} missing: {self.missing[-1]}" if self.missing else ""
        return (f"{self.launcher.name:15} {self.event.text:32} {self.count:6} {len(self.running):7}"
                f" {shown(self.stopped)} {shown(self.running)}{lacks}")

    def record(self):
        return {"launcher": self.launcher.name, "event": self.event.name, "agents": self.count,
                "stopped_s": self.stopped, "running_s": self.running, "missing": self.missing}


HEAD = (f"{'':64} {'stopped, ms':>19} {'running, ms':>19}\n{'launcher':15} {'what is struck':32} "
        f"agents samples {'median':>9} {'worst':>9} {'median':>9} {'worst':>9}")


def tell_progress(cell, done):
    if sys.stderr.isatty():
        print(f"\r\033[K{cell.launcher.name}, {cell.event.name}, {cell.count} agents: {done}",
              end="", file=sys.stderr, flush=True)


def tell(text):
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(text, flush=True)


def build_worker(folder):
    """Builds a small static program, to keep its own start out of the figures."""
    compiler = shutil.which("cc") or sys.exit("no C compiler (cc) in PATH")
    source = pathlib.Path(__file__).resolve().with_name("stamp_worker.c")
    for static in (["-static"], []):
        built = subprocess.run([compiler, "-O2", *static, "-o", folder / "stamp_worker", source],
                               capture_output=True, text=True, check=False)
        if built.returncode == 0:
            return folder / "stamp_worker"
    sys.exit(f"{source.name} does not compile: {built.stderr}")


def torchrun(python, worker):
    """torchrun of this Python, or None with a message."""
    if not os.access(python, os.X_OK):
        tell(f"torchrun is left out: no {python} (--torch)")
        return None
    asked = subprocess.run([python, "-c", "from importlib.metadata import version\n"
                            "print(version('torch'))"], capture_output=True, text=True, check=False)
    if asked.returncode != 0:
        tell(f"torchrun is left out: {python} has no torch")
        return None
    return Torchrun(python, asked.stdout.split("+")[0].strip(), worker)


def left_out(event, count):
    """Why an event cannot be measured here with `count` agents; empty if it can."""
    if count < event.least:
        return f"needs {event.least} agents"
    if event.hosts and os.geteuid() != 0:
        return "hosts as namespaces need root"
    return ""


def measure(launcher, events, counts, rounds, folder, cells):
    """Appends to `cells`, and prints each cell as soon as it is complete. `rounds` are those of a
    fast event and those of a slow one."""
    for count in counts if launcher else ():
        for name in events:
            event = launcher.events.get(name)
            if not event:
                continue
            if reason := left_out(event, count):
                tell(f"{launcher.name:15} {event.text:32} left out: {reason}")
                continue
            cell = Cell(launcher, event, count, folder)
            cells.append(cell)  # Before the samples, so that after a Ctrl-C the file has them.
            cell.measure(rounds[launcher.is_slow(event)], tell_progress)
            tell(cell.row())


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def names(text):
    asked = text.split(",")
    if unknown := [name for name in asked if name not in EVENTS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(EVENTS)}")
    return asked


def parse():
    cached = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    pythons = sorted(map(str, cached.glob("hlaunch/torch-2.*/bin/python")))
    programs = pathlib.Path(os.environ.get("HLAUNCH_BIN", watched_job.ROOT / "build/bin"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--slow-rounds", type=int, default=5,
                        help="of what waits for a limit of silence, which is most of it")
    parser.add_argument("--agents", type=numbers, default="2,8,64")
    parser.add_argument("--events", type=names, default=",".join(EVENTS))
    parser.add_argument("--build", type=pathlib.Path, default=programs.parent)
    parser.add_argument("--torch", metavar="PYTHONS", default=",".join(pythons),
                        help="Pythons that have a torch, with commas between; by default all that "
                        "tests/run has brought")
    parser.add_argument("--torch-agents", type=numbers, default="2,8",
                        help="each takes some 200 MB and 2 s of a core to start")
    parser.add_argument("--json", type=pathlib.Path, help="write every single figure to this file")
    return parser.parse_args()


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}, {args.rounds} rounds, "
          f"{args.slow_rounds} of what waits for a limit of silence\n\n{HEAD}", flush=True)
    cells, rounds = [], (args.rounds, args.slow_rounds)
    with tempfile.TemporaryDirectory(prefix="hlaunch-recovery-") as name:
        folder = pathlib.Path(name)
        worker = build_worker(folder)
        try:
            launchers = [(Hlaunch(args.build.resolve(), worker), args.agents)]
            launchers += [(torchrun(python, worker), args.torch_agents)
                          for python in args.torch.split(",") if python]
            for launcher, counts in launchers:
                measure(launcher, args.events, counts, rounds, folder, cells)
        except KeyboardInterrupt:
            sys.exit(128 + signal.SIGINT)
        finally:
            if args.json:
                record = [cell.record() for cell in cells]
                args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if not all(cell.running for cell in cells):
        sys.exit("some figures are missing altogether; see above")


if __name__ == "__main__":
    main()
