#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A cluster of one's own on three hosts with systemd, from the package alone: what the page
launcher/manual/own-cluster.md says, with units that are killed, restarted and upgraded under jobs."""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import lab
import own_cluster_lab
import systemd_host

COUNT, USERS = 3, {"ann": 1001, "bob": 1002}
STOPPED = 128 + signal.SIGTERM
SETTINGS = "/etc/hlaunch/hlaunchd.conf"
DAEMON, HEAD = "hlaunchd.service", "hlaunch-head.service"
KILLS = int(os.environ.get("HLAUNCH_KILLS", "3"))
MADE = tempfile.TemporaryDirectory(prefix="hlaunch-deb-")


@functools.cache
def package():
    """The .deb of this build."""
    folder, env = pathlib.Path(MADE.name), {**os.environ, "PATH": f"/usr/bin:{os.environ['PATH']}"}
    done = subprocess.run(["cmake", "--install", lab.BIN.parent, "--prefix", folder / "tree", "--strip"],
                          env=env, capture_output=True, text=True, timeout=60 * lab.PATIENCE, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest(f"not all is built that a package holds: {done.stderr[-300:]}")
    made = subprocess.run([lab.ROOT / "deploy/package/make_deb", folder / "tree", folder],
                          env={**env, "XZ_LEVEL": "0"}, capture_output=True, text=True,
                          timeout=60 * lab.PATIENCE, check=False)
    if made.returncode != 0:
        raise AssertionError(made.stdout + made.stderr)
    return pathlib.Path(made.stdout.strip())


def files(nodes):
    known = "127.0.0.1 localhost\n" + "".join(f"{node.ip} {node.name}\n" for node in nodes)
    etc = {name: pathlib.Path("/etc", name).read_text(encoding="utf-8") for name in ("passwd", "group")}
    for name, uid in USERS.items():
        etc["passwd"] += f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n"
        etc["group"] += f"{name}:x:{uid}:\n"
    return {"/etc/hosts": known, "/etc/nsswitch.conf": "hosts: files\npasswd: files\ngroup: files\n",
            "/etc/passwd": etc["passwd"], "/etc/group": etc["group"],
            **{f"/home/{name}/tick.py": own_cluster_lab.TICK for name in USERS}}


class ThreeHosts(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("systemd-nspawn"):
            raise unittest.SkipTest("needs root and systemd-nspawn (Debian: systemd-container)")
        if reason := own_cluster_lab.missing():
            raise unittest.SkipTest(reason)
        deb = package()
        self.lab = lab.Lab(COUNT)
        self.addCleanup(self.lab.close)
        self.hosts = []
        for node in self.lab.nodes:
            host = systemd_host.Host(files(self.lab.nodes), node, installed=False)
            self.hosts.append(host)
            self.addCleanup(host.close)
            self.prepare(host)
            host.run("dpkg", "-i", host.bring(deb))
            host.run("sh", "-c", f"echo 'slots = 8' >> {SETTINGS}")

    @staticmethod
    def prepare(host):
        """A host that starts what is enabled, and nothing that this machine has."""
        host.run("sh", "-c", "rm -rf /etc/systemd/system/*.wants /etc/systemd/system/default.target"
                 " /usr/lib/systemd/system/multi-user.target.wants"
                 " /usr/lib/systemd/system/timers.target.wants"
                 " /usr/lib/systemd/system/sockets.target.wants/[!sd]*")
        host.systemctl("set-default", "multi-user.target")
        host.systemctl("start", "dbus.socket")
        for name, uid in USERS.items():
            host.run("chown", "-R", f"{uid}:{uid}", f"/home/{name}")
            host.run("chmod", "700", f"/home/{name}")

    def form(self):
        """As the manual has it: init, and two lines."""
        said = self.hosts[0].run("hlaunch", "cluster", "init").stdout
        for host in self.hosts[1:]:
            host.run("hlaunch", "cluster", "join", *own_cluster_lab.join_words(said))
            said = self.hosts[0].run("hlaunch", "cluster", "token").stdout
        lab.poll(lambda: self.free() == COUNT, 30, 0.2)
        self.assertEqual(self.free(), COUNT, self.hosts[0].tail())

    def free(self):
        done = self.hosts[0].run("hlaunch", "nodes", "--json", check=False)
        return done.returncode == 0 and sum(host["state"] == "free"
                                            for host in json.loads(done.stdout)["hosts"])

    def user(self, name, index, *words, check=True, timeout=60):
        uid = USERS[name]
        return self.hosts[index].run(
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--init-groups", "env", "-C", f"/home/{name}",
            f"HOME=/home/{name}", f"USER={name}", "PYTHON_EXEC=/usr/bin/python3", "hlaunch", *words,
            check=check, timeout=timeout)

    def submit(self, name, index, *words):
        return self.user(name, index, "--detach", *words).stdout.strip()

    def jobs(self, index=0):
        """{number: (state, user)}, as an administrator sees it; empty where nobody answers."""
        done = self.hosts[index].run("hlaunch", "ps", "-a", "--json", check=False)
        if done.returncode != 0:
            return {}
        return {job["number"]: (job["state"], job["user"]) for job in json.loads(done.stdout)["jobs"]}

    def assert_jobs(self, wanted, timeout=10):
        lab.poll(lambda: self.jobs() == wanted, timeout, 0.2)
        self.assertEqual(self.jobs(), wanted, self.hosts[0].tail())

    def said(self, name, job):
        """(pids of the ranks, {rank: its ticks}) of a job's log."""
        text = self.user(name, 1, "logs", job).stdout
        pids = sorted(re.findall(r"(?m)^\[(\d+)\] rank \d+ of \d+ pid (\d+)$", text))
        ticks = {}
        for rank, tick in re.findall(r"(?m)^\[(\d+)\] tick (\d+)$", text):
            ticks.setdefault(rank, []).append(int(tick))
        return pids, ticks

    def assert_undisturbed(self, name, job, before):
        pids, ticks = self.said(name, job)
        self.assertEqual(pids, before)
        for rank, counted in ticks.items():
            self.assertEqual(counted, list(range(len(counted))), f"job {job}, rank {rank}")

    def await_ranks(self, name, job, count):
        lab.poll(lambda: len(self.said(name, job)[0]) == count, 30, 0.2)
        pids = self.said(name, job)[0]
        self.assertEqual(len(pids), count, self.hosts[0].tail())
        return pids


class FromPackages(ThreeHosts):
    """One story, since three hosts take a while to boot."""

    def test_a_cluster_of_ones_own(self):
        for host in self.hosts:  # Nothing runs that nobody asked for.
            self.assertEqual(host.show(DAEMON, "ActiveState"), "inactive")
        self.form()
        self.units_are_as_systemd_wants_them()
        jobs = {self.submit("ann", 1, "--nnodes", 3, "tick.py"): ("ann", 3),
                self.submit("bob", 2, "--nnodes", 2, "--nproc-per-node", 2, "tick.py"): ("bob", 4)}
        before = {job: self.await_ranks(name, job, count) for job, (name, count) in jobs.items()}
        wanted = {int(job): ("running", name) for job, (name, _) in jobs.items()}
        self.parts_have_scopes(next(iter(jobs)))
        self.users_are_apart(*jobs)
        self.daemons_are_killed(wanted)
        self.packages_come_anew(wanted)
        for job, (name, _) in jobs.items():
            self.assert_undisturbed(name, job, before[job])
        self.a_host_is_drained(jobs)
        for job, (name, _) in jobs.items():
            self.user(name, 2, "stop", job)
        self.assert_jobs({})
        self.the_package_goes()

    def units_are_as_systemd_wants_them(self):
        for unit in (DAEMON, HEAD):
            checked = self.hosts[0].run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                                        unit)
            self.assertEqual(checked.stderr, "")
        self.hosts[0].run("systemd-analyze", "security", "--offline=no", "--threshold=15", HEAD)
        for host in self.hosts:
            self.assertEqual(host.systemctl("is-enabled", DAEMON).stdout.strip(), "enabled")

    def parts_have_scopes(self, job):
        for host in self.hosts:
            units = host.systemctl("list-units", "--type=scope", "--no-legend", "--plain").stdout
            self.assertIn(f"hlaunch-{job}.scope", units)
            mine = host.run("systemd-cgls", "--no-pager", "-u", DAEMON).stdout
            self.assertNotIn("tick.py", mine)

    def users_are_apart(self, anns, bobs):
        for words in (("stop", anns), ("kill", anns), ("logs", anns)):
            self.assertNotEqual(self.user("bob", 0, *words, check=False).returncode, 0, words)
        self.assertNotEqual(self.user("ann", 0, "stop", bobs, check=False).returncode, 0)

    def daemons_are_killed(self, wanted):
        for _ in range(KILLS):
            for unit, hosts in ((DAEMON, self.hosts), (HEAD, self.hosts[:1])):
                for host in hosts:
                    restarts = int(host.show(unit, "NRestarts"))
                    host.systemctl("kill", "-s", "KILL", "--kill-who=main", unit)
                    host.await_property(unit, "NRestarts", lambda n, was=restarts: int(n) > was)
                    host.await_property(unit, "ActiveState", "active".__eq__)
            self.assert_jobs(wanted)

    def packages_come_anew(self, wanted):
        """The same version once more is an upgrade to dpkg: units that run are started anew."""
        for host in self.hosts:
            was = host.show(DAEMON, "MainPID")
            host.run("sh", "-c", f"echo 'labels = mine' >> {SETTINGS}")
            host.run("dpkg", "-i", host.bring(package()))
            self.assertIn("labels = mine", host.run("cat", SETTINGS).stdout)  # An admin's file stays.
            self.assertNotEqual(host.show(DAEMON, "MainPID"), was)
            host.await_property(DAEMON, "ActiveState", "active".__eq__)
        self.assert_jobs(wanted)

    def a_host_is_drained(self, jobs):
        self.hosts[0].run("hlaunch", "drain", "node2", "--reason", "ECC errors")
        node = [host for host in json.loads(self.hosts[1].run("hlaunch", "nodes", "--json").stdout)["hosts"]
                if host["name"] == "node2"]
        self.assertEqual((node[0]["state"], node[0]["why"]), ("drained", "ECC errors"))
        self.assertEqual(len(self.jobs()), len(jobs))
        self.hosts[0].run("hlaunch", "undrain", "node2")

    def the_package_goes(self):
        host = self.hosts[2]
        host.run("dpkg", "-r", "hlaunch")
        self.assertEqual(host.show(DAEMON, "ActiveState"), "inactive")


class Power(ThreeHosts):
    """The head's host loses its power, and has it back; jobs on other hosts run on."""

    def test_the_heads_host_is_off_and_on(self):
        self.form()
        job = self.submit("ann", 1, "--nodes", "node1,node2", "--nnodes", 2, "tick.py")
        before = self.await_ranks("ann", job, 2)
        self.hosts[0].power_off()
        self.hosts[0].power_on()
        self.hosts[0].await_property(DAEMON, "ActiveState", "active".__eq__)
        self.assert_jobs({int(job): ("running", "ann")}, timeout=30)
        lab.poll(lambda: all(host.run("hlaunch", "nodes", check=False).returncode == 0
                             for host in self.hosts), 10, 0.2)
        self.assert_undisturbed("ann", job, before)
        self.user("ann", 2, "stop", job)
        self.assert_jobs({})
        # All of it works as before.
        self.assertEqual(self.user("bob", 0, "--nnodes", 3, "tick.py", 3).returncode, 0)

    def test_a_spare_takes_the_place_of_a_drained_host(self):
        self.form()
        job = self.submit("ann", 0, "--nnodes", 2, "--spares", 1, "--max-restarts", 3, "tick.py")
        self.await_ranks("ann", job, 2)
        # The spare is whichever came last: its drain would change nothing.
        busy = [host for host in self.hosts[1:]
                if host.run("pgrep", "-f", "^/usr/bin/python3 -u tick.py", check=False).returncode == 0]
        self.hosts[0].run("hlaunch", "drain", busy[0].node.name, "--reason", "new disks", "--deadline", 60)
        self.await_ranks("ann", job, 4)  # Two once more, in the next round.
        self.user("ann", 1, "stop", job)
        self.assert_jobs({})


if __name__ == "__main__":
    lab.main()
