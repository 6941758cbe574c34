# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Jobs of N agents whose workers are watched from outside: when each began, and when it was gone.

Each worker (stamp_worker.c) connects to a socket of the bench and reports by the host's monotonic
clock when it began. The kernel closes the connection when the process ends. So nothing is polled.
"""

import os
import pathlib
import random
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
import lab  # noqa: E402

START_LIMIT = 120  # Seconds for a round of all agents, at the start or with a new agent.
END_LIMIT = 20  # Seconds for processes to end after they were told to; then they are killed.


class Missing(Exception):
    """A figure is missing; the text says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment():
    """The environment without what changes a job: tokens, other options, the user's settings."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("HLAUNCH_", "TORCHELASTIC", "PET_", "SLURM_"))}
    return {**clean, "XDG_CONFIG_HOME": "/nowhere", "OMP_NUM_THREADS": "1"}


def in_background(command, out):
    """Starts a command that Ctrl-C does not reach."""
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                            env=clean_environment(), start_new_session=True)


class Worker:
    """One worker's life. Times are seconds of the monotonic clock; None means not yet."""

    def __init__(self, connection):
        self.connection, self.begun, self.ended = connection, None, None
        self.world = self.node_rank = -1
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = struct.unpack("3i", credentials)[0]

    def read(self):
        """Reads from the connection: the worker's only line, or its end."""
        try:
            said = self.connection.recv(256)
        except OSError:
            said = b""
        if not said:
            self.ended = time.monotonic()
        else:
            stamp, self.world, self.node_rank = map(int, said.split())
            self.begun = stamp / 1e9


class Watch:
    """All workers that have connected since the last forget()."""

    def __init__(self, folder):
        self.path = folder / "workers"
        self.workers, self._closing = [], False
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(4096)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def turn(self, limit):
        """Handles all events; waits for them for `limit` seconds at most."""
        for key, _ in self._selector.select(max(0, limit)):
            if key.fileobj is self._listener:
                self._accept()
                continue
            key.data.read()
            if key.data.ended:
                self._drop(key.data)

    def _accept(self):
        worker = Worker(self._listener.accept()[0])
        if self._closing:
            worker.connection.close()
            return
        self.workers.append(worker)
        self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def _drop(self, worker):
        self._selector.unregister(worker.connection)
        worker.connection.close()

    def wait(self, condition, limit):
        """Whether condition() became true within `limit` seconds."""
        deadline = time.monotonic() + limit
        while not (true := condition()) and time.monotonic() < deadline:
            self.turn(min(0.2, deadline - time.monotonic()))
        return true

    def rest(self, seconds):
        self.wait(lambda: False, seconds)

    def alive(self):
        return [worker for worker in self.workers if not worker.ended]

    def running(self, size):
        """Whether `size` workers of a round of `size` run, and no others."""
        alive = self.alive()
        return len(alive) == size and all(worker.world == size for worker in alive)

    def forget(self):
        """Forgets the workers that have ended."""
        self.workers = self.alive()

    def release(self):
        """Makes every worker end with 0, including those that connect from now on."""
        self._closing = True
        for worker in self.alive():
            self._drop(worker)
            worker.ended = time.monotonic()

    def close(self):
        self.release()
        self._listener.close()
        self._selector.close()
        self.path.unlink()


class Node:
    """One `hlaunch` or `torchrun`, on this host or on a node of the lab."""

    def __init__(self, command, log, host=None):
        self.host, self._log = host, log
        if host:
            run = host.start(*command, cwd="/", env=clean_environment())
            self.process, self.pid, self._log = run.process, run.pid, None
            return
        with log.open("ab") as out:
            self.process = in_background(command, out)
        self.pid = self.process.pid

    @property
    def agent(self):
        """hlaunch's agent: the keeper's only child."""
        found = lab.children(self.pid)
        if not found:
            raise Missing("a keeper has no agent")
        return found[0]

    def last_words(self):
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log else []
        return lines[-1][:200] if lines else "nothing"

    def kill(self):
        """Kills everything that it started, and itself."""
        for pid in [*lab.descendants(self.pid), self.pid, self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(END_LIMIT)


class Service:
    """hlaunch-rendezvous with its own state. Needs setpriv of util-linux."""

    def __init__(self, build, folder):
        self.port, self._metrics = free_port(), free_port()
        self._log = folder / "service"
        # Nothing else ends the service if the bench is killed.
        self._command = ["setpriv", "--pdeathsig", "KILL", str(build / "bin/hlaunch-rendezvous"),
                         "--listen", f"127.0.0.1:{self.port}", "--state", f"file://{folder}/state",
                         "--metrics-port", f"127.0.0.1:{self._metrics}"]
        self.start()

    def start(self):
        with self._log.open("ab") as out:
            self.process = in_background(self._command, out)

    def kill(self):
        self.process.kill()
        self.process.wait(END_LIMIT)

    def agents(self):
        """The number of agents that are connected to it; -1 while it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self._metrics), 1) as one:
                one.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
                text = b"".join(iter(lambda: one.recv(65536), b"")).decode()
        except OSError:
            return -1
        found = [line.split()[1] for line in text.splitlines()
                 if line.startswith("hlaunch_rendezvous_agents")]
        return int(float(found[0])) if found else -1


class Job:
    """`count` agents that run one worker each, and `spares` that stand by. The first node hosts the
    rendezvous if there is no service. Use it as a context manager, which leaves nothing behind."""

    def __init__(self, launcher, folder, count, least=None, spares=0, service=None, hosts=None,
                 options=()):
        self.launcher, self.folder, self.count, self.spares = launcher, folder, count, spares
        self.least = count if least is None else least
        self.service, self.hosts, self.options = service, hosts, options
        self.watch, self.nodes, self._started = Watch(folder), [], 0  # In the order of their start.
        self.id = f"recovery-{os.getpid()}-{random.getrandbits(32):x}"
        port = service.port if service else 29400 if hosts else free_port()
        self.endpoint = f"{'node0' if hosts else '127.0.0.1'}:{port}"

    def __enter__(self):
        try:
            self.fill()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def fill(self):
        """Starts missing nodes, and waits until all run in one round and the spares stand by."""
        while len(self.nodes) < self.count + self.spares:
            self._start()
        if not self.watch.wait(lambda: self.watch.running(self.count), START_LIMIT):
            raise Missing(f"{len(self.watch.alive())} of {self.count} workers after {START_LIMIT} "
                          f"s; the first node said last: {self.nodes[0].last_words()}")
        if self.spares:
            self._await_spares()
        self.watch.forget()

    def _await_spares(self):
        deadline = time.monotonic() + START_LIMIT
        while self.launcher.nodes_of(self) < self.count + self.spares:
            if time.monotonic() > deadline:
                raise Missing(f"the spare has not joined after {START_LIMIT} s")
            self.watch.rest(0.1)

    def _start(self):
        taken = {node.host for node in self.nodes}
        host = next((host for host in self.hosts or () if host not in taken), None)
        is_host = not self.service and not self.nodes
        command = self.launcher.command(self, is_host)
        self.nodes.append(Node(command, self.folder / f"node{self._started}", host))
        self._started += 1

    def settle(self):
        """Lets a round's start finish, for a random time, so no strike is in step with a timer."""
        self.watch.rest(0.4 + 0.02 * self.count + random.random())

    def node_of(self, worker):
        pids = {node.pid: node for node in self.nodes}
        pid = worker.pid
        while pid and pid not in pids:
            stat = lab.fields(pid)
            pid = int(stat[1]) if stat else 0
        if not pid:
            raise Missing("a worker that belongs to no node")
        return pids[pid]

    def worker_of(self, node):
        for worker in self.watch.alive():
            if self.node_of(worker) is node:
                return worker
        raise Missing("a node has no worker")

    def victim(self):
        """The last started node that runs a worker and does not host the rendezvous."""
        working = {id(self.node_of(worker)) for worker in self.watch.alive()}
        for node in reversed(self.nodes[0 if self.service else 1:]):
            if id(node) in working:
                return node
        raise Missing("no node to strike")

    def replace(self, node):
        """Waits for the end of a node that was struck, and starts another one in its place."""
        if not self.watch.wait(lambda: node.process.poll() is not None, END_LIMIT):
            node.kill()
        self.nodes.remove(node)
        if node.host:
            node.host.heal()
        self.fill()

    def end(self):
        """Makes all workers end well, and with them the job; kills what does not end. The lab's
        nodes, of which one may be cut off, end with the lab."""
        self.watch.release()
        def left():
            return [node for node in self.nodes if node.process.poll() is None]
        if not self.hosts and not self.watch.wait(lambda: not left(), END_LIMIT):
            print(f"{len(left())} nodes did not end by themselves in {END_LIMIT} s",
                  file=sys.stderr)
        for node in left():
            node.kill()
        self.watch.close()
