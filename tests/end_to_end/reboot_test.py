#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""All hosts of a job that systemd started lose their power at once and get it back. The job starts
by itself and goes on from its checkpoint."""

import json
import os
import re
import shutil
import unittest

import lab
import systemd_host

COUNT = 3
UNIT = "hlaunch@train"
# Counts steps, saves the number after each step, and starts from the saved one.
TRAIN = """#!/usr/bin/python3
import os, time
checkpoint, step = os.environ["HOME"] + "/checkpoint", 0
if os.path.exists(checkpoint):
    step = int(open(checkpoint).read())
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "begins at", step, flush=True)
while True:
    step += 1
    with open(checkpoint + ".new", "w") as out:
        out.write(str(step))
        out.flush()
        os.fsync(out.fileno())
    os.rename(checkpoint + ".new", checkpoint)
    time.sleep(0.1)
"""


class Reboot(unittest.TestCase):
    """Node0 hosts the rendezvous itself."""

    options, enabled = {"rdzv_endpoint": "node0"}, ()

    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("systemd-nspawn"):
            raise unittest.SkipTest("needs root and systemd-nspawn (Debian: systemd-container)")
        self.lab = lab.Lab(COUNT)
        self.addCleanup(self.lab.close)
        known = "127.0.0.1 localhost\n" + "".join(f"{node.ip} {node.name}\n"
                                                  for node in self.lab.nodes)
        job = {"nnodes": COUNT, "rdzv_id": "train", "command": ["/srv/train.py"], **self.options}
        files = {"/etc/hosts": known, "/etc/nsswitch.conf": "hosts: files\n",
                 "/srv/train.py": TRAIN, "/etc/hlaunch/train.json": json.dumps(job)}
        self.hosts = []
        for node in self.lab.nodes:
            self.hosts.append(systemd_host.Host(files, node))
            self.addCleanup(self.hosts[-1].close)

    def enable(self):
        """Enables the units as an admin does, on hosts that start nothing else."""
        for host in self.hosts:
            host.run("sh", "-c", "rm -rf /etc/systemd/system/*.wants"
                     " /etc/systemd/system/default.target /usr/lib/systemd/system/multi-user.target.wants"
                     " /usr/lib/systemd/system/timers.target.wants"
                     " /usr/lib/systemd/system/sockets.target.wants/[!s]*")
            host.systemctl("set-default", "multi-user.target")
            host.systemctl("enable", "--now", "--no-block", UNIT,
                           *(self.enabled if host is self.hosts[0] else ()))

    def begun(self):
        """[(rank, step)] of each host's newest worker since the last boot."""
        said = [host.await_message(f" of {COUNT} begins at ", f"_SYSTEMD_UNIT={UNIT}.service", "-b",
                                   timeout=60)[-1]["MESSAGE"] for host in self.hosts]
        return [tuple(map(int, re.search(r"rank (\d+) of \d+ begins at (\d+)", words).groups()))
                for words in said]

    def steps(self):
        return [int(host.run("cat", "/var/lib/hlaunch/train/checkpoint", check=False).stdout or 0)
                for host in self.hosts]

    def test_it_goes_on(self):
        self.enable()
        self.assertEqual(sorted(self.begun()), [(rank, 0) for rank in range(COUNT)])
        lab.poll(lambda: min(self.steps()) > 5, 10, 0.1)
        written = self.steps()
        self.assertGreater(min(written), 5)
        for host in self.hosts:
            host.power_off()
        for host in reversed(self.hosts):
            host.power_on()
        begun = self.begun()
        self.assertEqual(sorted(rank for rank, _ in begun), list(range(COUNT)))
        for (_, step), was in zip(begun, written):
            self.assertGreaterEqual(step, was)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class RebootWithVotersAtLength(Reboot):
    options = {"rdzv_endpoint": "node0", "on_host_loss": "wait"}


class RebootWithService(Reboot):
    """The service is up again before its nodes are, and knows of the round before."""

    options = {"rdzv_endpoint": "node0", "rdzv_conf": "is_host=0", "max_restarts": 3}
    enabled = ("hlaunch-rendezvous",)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class RebootWithoutRestartsAtLength(RebootWithService):
    """The places of the former nodes are reserved for them until the loss limit has passed."""

    options = {"rdzv_endpoint": "node0", "rdzv_conf": "is_host=0"}


if __name__ == "__main__":
    lab.main()
