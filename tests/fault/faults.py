# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The faults of chaos_test. Each acts on a place (a node and what runs there) and returns a
function that ends the fault."""

import contextlib
import os
import signal
import subprocess

import lab


def send(number, *pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # It has ended meanwhile.
            os.kill(pid, number)


def nothing():
    pass


class Place:
    """A node and the newest run of hlaunch on it."""

    def __init__(self, node, run):
        self.node, self.run = node, run

    @property
    def keeper(self):
        return next(iter(lab.children(self.run.process.pid)), None)

    @property
    def agent(self):
        return next(iter(lab.children(self.keeper)), None) if self.keeper else None

    @property
    def workers(self):
        below = lab.children(self.agent) if self.agent else []
        return [pid for pid in below if "chaos_worker" in lab.command_line(pid)]

    def pids(self, *names):
        found = []
        for name in names:
            pid = getattr(self, name)
            found += pid if isinstance(pid, list) else [pid]
        return [pid for pid in found if pid]

    def all(self):
        return [self.keeper, *lab.descendants(self.keeper)] if self.keeper else []

    def stop(self, pids):
        """Stops processes. nsenter stops itself with the keeper, so it is continued as well."""
        send(signal.SIGSTOP, *pids)
        return lambda: send(signal.SIGCONT, *reversed(pids), self.run.process.pid)

    def in_network(self, *command):
        subprocess.run(["nsenter", "-t", str(self.node.init), "-n", "--", *command], check=True)


def one_of(processes, rng):
    """One of the processes as a list; empty if there is none at the moment."""
    return rng.sample(processes, min(1, len(processes)))


def stop_agent(place, _):
    return place.stop(place.pids("agent"))


def stop_keeper(place, _):
    return place.stop(place.pids("keeper"))


def stop_both(place, _):
    return place.stop(place.pids("keeper", "agent"))


def stop_worker(place, rng):
    return place.stop(one_of(place.workers, rng))


def freeze_node(place, rng):
    pids = place.all()
    undo = place.stop(pids)
    rng.shuffle(pids)
    return undo


def kill_agent(place, _):
    send(signal.SIGKILL, *place.pids("agent"))
    return nothing


def kill_keeper(place, _):
    send(signal.SIGKILL, *place.pids("keeper"))
    return nothing


def kill_both(place, _):
    send(signal.SIGKILL, *place.pids("keeper", "agent"))
    return nothing


def kill_worker(place, rng):
    send(signal.SIGKILL, *one_of(place.workers, rng))
    return nothing


def cut(place, _):
    place.node.cut()
    return place.node.heal


def drop(place, _):
    place.node.drop()
    return place.node.heal


def vanish(place, _):
    """The node loses its power: it sends nothing more."""
    place.node.drop()
    send(signal.SIGKILL, *place.all())
    return place.node.heal


def lose_packets(place, rng):
    rule = ["INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability",
            f"{rng.uniform(0.05, 0.5):.2f}", "-j", "DROP"]
    place.in_network("iptables", "-w", "-A", *rule)
    return lambda: place.in_network("iptables", "-w", "-D", *rule)


OF_NODES = (stop_agent, stop_keeper, stop_both, stop_worker, freeze_node, kill_agent, kill_keeper,
            kill_both, kill_worker, cut, drop, vanish, lose_packets)
# Nothing on the node can act meanwhile; see agent/DESIGN.md, "Stands still".
EXCUSED = (stop_both, freeze_node)
# No process of hlaunch is left on the node.
DEADLY = (kill_agent, kill_keeper, kill_both, vanish)
