#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An own cluster on three hosts with systemd, installed from the package alone: the steps of
launcher/manual/own-cluster.md, and units that are killed, restarted and upgraded under jobs."""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
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


@functools.cache
def next_package():
    """(version, a .deb of it): this build's programs, changed to report another version."""
    tree, own = pathlib.Path(MADE.name) / "next", package().name.split("_")[1]
    version = f"{own[:-1]}{(int(own[-1]) + 1) % 10}"
    subprocess.run(["dpkg-deb", "-R", package(), tree], check=True, timeout=60 * lab.PATIENCE)
    (tree / "DEBIAN/md5sums").unlink()
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {own}\n", f"Version: {version}\n"))
    for program in ("bin/hlaunch", "sbin/hlaunchd", "libexec/hlaunch/hlaunch-agent"):
        parts = re.split(rb"(?<![\w.])%s\0" % re.escape(own).encode(),
                         (tree / "usr" / program).read_bytes())
        if len(parts) != 2:
            raise AssertionError(f"{program} says its version {len(parts) - 1} times, and not once")
        (tree / "usr" / program).write_bytes((b"%s\0" % version.encode()).join(parts))
    deb = tree.with_name(f"hlaunch_{version}.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, deb], check=True,
                   capture_output=True, timeout=60 * lab.PATIENCE)
    return version, deb


def files(nodes):
    known = "127.0.0.1 localhost\n" + "".join(f"{node.ip} {node.name}\n" for node in nodes)
    etc = {name: pathlib.Path("/etc", name).read_text(encoding="utf-8") for name in ("passwd", "group")}
    for name, uid in USERS.items():
        # These come first, since this machine may have another user with that number.
        etc["passwd"] = f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n" + etc["passwd"]
        etc["group"] = f"{name}:x:{uid}:\n" + etc["group"]
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
        """Makes the host start what a test enables, and nothing that this machine has. dpkg makes no
        index of manual pages there, which would take as long as all else that it does."""
        host.run("sh", "-c", "rm -rf /etc/systemd/system/*.wants /etc/systemd/system/default.target"
                 " /usr/lib/systemd/system/multi-user.target.wants"
                 " /usr/lib/systemd/system/timers.target.wants"
                 " /usr/lib/systemd/system/sockets.target.wants/[!sd]*"
                 " /var/lib/man-db/auto-update")
        host.systemctl("set-default", "multi-user.target")
        host.systemctl("start", "dbus.socket")
        for name, uid in USERS.items():
            host.run("chown", "-R", f"{uid}:{uid}", f"/home/{name}")
            host.run("chmod", "700", f"/home/{name}")

    def form(self):
        """Forms the cluster as the manual shows it: init, and a line for each of two hosts."""
        said = self.hosts[0].run("hlaunch", "cluster", "init").stdout
        lab.poll(self.free, 30, 0.2)
        for host in self.hosts[1:]:
            host.run("hlaunch", "cluster", "join", *own_cluster_lab.join_words(said))
            said = self.hosts[0].run("hlaunch", "cluster", "token").stdout
        self.assert_comes_to(self.free, COUNT, timeout=30)

    def free(self):
        done = self.hosts[0].run("hlaunch", "nodes", "--json", check=False)
        return done.returncode == 0 and sum(host["state"] == "free"
                                            for host in json.loads(done.stdout)["hosts"])

    @staticmethod
    def login(name):
        uid = USERS[name]
        return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--init-groups", "env", "-C",
                f"/home/{name}", f"HOME=/home/{name}", f"USER={name}", "PYTHON_EXEC=/usr/bin/python3",
                f"SECRET={name}ssecret")

    def user(self, name, index, *words, check=True, timeout=60):
        return self.hosts[index].run(*self.login(name), "hlaunch", *words, check=check, timeout=timeout)

    def submit(self, name, index, *words):
        return self.user(name, index, "--detach", *words).stdout.strip()

    def jobs(self, index=0):
        """{number: (state, user)}, as an administrator sees it; None if the command fails."""
        done = self.hosts[index].run("hlaunch", "ps", "-a", "--json", check=False)
        if done.returncode != 0:
            return None
        return {job["number"]: (job["state"], job["user"]) for job in json.loads(done.stdout)["jobs"]}

    def assert_comes_to(self, ask, wanted, timeout=10):
        """Calls `ask` until its answer is right."""
        lab.poll(lambda: ask() == wanted, timeout, 0.2)
        self.assertEqual(ask(), wanted, self.hosts[0].tail())

    def assert_jobs(self, wanted, timeout=10):
        self.assert_comes_to(self.jobs, wanted, timeout)

    def said(self, name, job):
        """(pids of the ranks, {rank: its ticks}, what hlaunch warns of) from a job's log."""
        done = self.user(name, 1, "logs", job)
        text = done.stdout
        pids = sorted(re.findall(r"(?m)^\[(\d+)\] rank \d+ of \d+ pid (\d+)$", text))
        ticks = {}
        for rank, tick in re.findall(r"(?m)^\[(\d+)\] tick (\d+)$", text):
            ticks.setdefault(rank, []).append(int(tick))
        return pids, ticks, done.stderr

    def assert_undisturbed(self, name, job, before):
        pids, ticks, warned = self.said(name, job)
        self.assertEqual((pids, warned), (before, ""))
        for rank, counted in ticks.items():
            self.assertEqual(counted, list(range(len(counted))), f"job {job}, rank {rank}")

    def await_ranks(self, name, job, count):
        lab.poll(lambda: len(self.said(name, job)[0]) == count, 30, 0.2)
        pids = self.said(name, job)[0]
        self.assertEqual(len(pids), count, self.hosts[0].tail())
        return pids


# A user tries to access another's processes and files. The kernel shows all command lines.
TRY = r"""
for process in /proc/[0-9]*; do
  [ "$(stat -c %u "$process" 2> /dev/null)" = "$1" ] || continue
  tried=$((tried + 1)) pid=${process#/proc/}
  kill -0 "$pid" && echo "GOT a signal to $pid"
  for file in environ maps mem; do head -c 1 "$process/$file" > /dev/null && echo "GOT $process/$file"; done
  ls "$process/fd/" && echo "GOT $process/fd"
done 2> /dev/null
find /home /run /var/lib /var/spool /tmp /dev/shm -user "$1" ! -type l '(' -readable -o -writable ')' \
  -printf 'GOT %p\n' 2> /dev/null
echo "tried $tried"
"""


class FromPackages(ThreeHosts):
    """One long test, since three hosts take a while to boot."""

    def test_a_cluster_of_ones_own(self):
        for host in self.hosts:  # Nothing runs before somebody asks for it.
            self.assertEqual(host.show(DAEMON, "ActiveState"), "inactive")
        self.chapter(self.form)
        self.chapter(self.units_are_as_systemd_wants_them)
        self.chapter(self.five_jobs_run_and_one_waits)
        self.chapter(self.parts_have_scopes)
        self.chapter(self.users_are_apart)
        self.chapter(self.daemons_are_killed)
        self.chapter(self.another_version_comes)
        self.chapter(self.nobody_was_disturbed)
        self.chapter(self.a_host_is_drained)
        self.chapter(self.jobs_end)
        self.chapter(self.the_package_goes)

    def chapter(self, what):
        """Runs a part of the test and prints how long it took."""
        since = time.monotonic()
        what()
        print(f"figure: {what.__name__}: {time.monotonic() - since:.0f} s", flush=True)

    def five_jobs_run_and_one_waits(self):
        """Sets self.ran to {number: (user, ranks)}."""
        self.ran = {}
        for name, nodes, each in (("ann", 3, 1), ("bob", 2, 2), ("ann", 1, 2), ("bob", 3, 1), ("ann", 2, 1)):
            job = self.submit(name, nodes - 1, "--cluster", "hlaunchd", "--nnodes", nodes,
                              "--nproc-per-node", each, "-x", "SECRET", "tick.py", 10**9, 0,
                              f"--password={name}sword")
            self.ran[job] = (name, nodes * each)
        self.waiting = self.submit("bob", 1, "--nnodes", 3, "--nproc-per-node", 8, "tick.py", 1)
        self.before = {job: self.await_ranks(name, job, count) for job, (name, count) in self.ran.items()}
        self.wanted = {int(job): ("running", name) for job, (name, _) in self.ran.items()}
        self.wanted[int(self.waiting)] = ("waiting", "bob")
        self.assert_jobs(self.wanted)

    def units_are_as_systemd_wants_them(self):
        for unit in (DAEMON, HEAD):
            checked = self.hosts[0].run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                                        unit)
            self.assertEqual(checked.stderr, "")
        self.hosts[0].run("systemd-analyze", "security", "--offline=no", "--threshold=15", HEAD)
        for host in self.hosts:
            self.assertEqual(host.systemctl("is-enabled", DAEMON).stdout.strip(), "enabled")

    def parts_have_scopes(self):
        job = next(iter(self.ran))
        for host in self.hosts:
            units = host.systemctl("list-units", "--type=scope", "--no-legend", "--plain").stdout
            self.assertIn(f"hlaunch-{job}.scope", units)
            mine = host.run("systemd-cgls", "--no-pager", "-u", DAEMON).stdout
            self.assertNotIn("tick.py", mine)

    def users_are_apart(self):
        for job, (owner, _) in self.ran.items():
            other = "bob" if owner == "ann" else "ann"
            for words in (("stop", job), ("kill", job), ("logs", job)):
                self.assertNotEqual(self.user(other, 0, *words, check=False).returncode, 0, words)
        for other, owner in (("ann", "bob"), ("bob", "ann")):
            listed = self.user(other, 1, "ps", "-a", "--json").stdout
            self.assertIn(f"{other}sword", listed)
            for secret in (f"{owner}sword", f"{owner}ssecret"):
                self.assertNotIn(secret, listed)
            for host in self.hosts:
                tried = host.run(*self.login(other), "bash", "-c", TRY, "try", USERS[owner]).stdout
                self.assertRegex(tried, r"\Atried [1-9]\d*\n\Z")

    def daemons_are_killed(self):
        self.figures = own_cluster_lab.Figures()
        for _ in range(KILLS):
            for index in range(COUNT):
                self.kill_one(DAEMON, index)
            self.kill_one(HEAD, 0)
        self.assert_all_here()
        for unit, host in (*((DAEMON, host) for host in self.hosts), (HEAD, self.hosts[0])):
            self.assertEqual(host.show(unit, "NRestarts"), str(KILLS))
        self.figures.tell()

    def kill_one(self, unit, index):
        """Kills a unit's process, then asks there and elsewhere until the answer is right."""
        self.hosts[index].systemctl("kill", "-s", "KILL", "--kill-who=main", unit)
        since = time.monotonic()
        for where, asked in (("another host", (index + 1) % COUNT), ("its host", index)):
            self.figures.wait(f"{unit} is killed: ps is right on {where}", since,
                              lambda asked=asked: self.jobs(asked) == self.wanted, 10)
            self.assertEqual(self.jobs(asked), self.wanted, self.hosts[index].tail())

    def another_version_comes(self):
        """Upgrades host by host, then puts the head's host back to the old version."""
        version, deb = next_package()
        own = package().name.split("_")[1]
        for host in self.hosts:
            host.run("sh", "-c", f"echo 'labels = mine' >> {SETTINGS}")  # An admin's file stays.
        for index in (1, 2, 0):
            self.install(index, version, deb)
            self.assertIn("labels = mine", self.hosts[index].run("cat", SETTINGS).stdout)
            if index == 1:
                self.assert_versions(own, version, own)
        self.assert_versions(*[version] * COUNT)
        self.install(0, own, package())
        self.assert_versions(own, version, version)

    def install(self, index, version, deb):
        host, was = self.hosts[index], self.hosts[index].show(DAEMON, "MainPID")
        host.run("dpkg", "-i", host.bring(deb))
        self.assertIn(f" {version} ", host.run("hlaunch", "--version").stdout)
        self.assertNotEqual(host.show(DAEMON, "MainPID"), was)
        host.await_property(DAEMON, "ActiveState", "active".__eq__)
        lab.poll(lambda: version in self.versions()[index:index + 1], 10, 0.2)
        self.assert_jobs(self.wanted)
        self.assert_all_here()

    def nodes_now(self, index=1):
        done = self.hosts[index].run("hlaunch", "nodes", "--json", check=False)
        hosts = json.loads(done.stdout)["hosts"] if done.returncode == 0 else []
        return sorted(hosts, key=lambda host: host["name"])

    def assert_all_here(self):
        """Waits until the head hears from all hosts. After its restart each of them comes back in a
        time of its own, and until then its logs cannot be read. All of them have work."""
        self.assert_comes_to(lambda: [host["state"] for host in self.nodes_now()], ["busy"] * COUNT)

    def versions(self):
        return [host["version"].split("+")[0].split(" ")[0] for host in self.nodes_now()]

    def assert_versions(self, *wanted):
        """A head has a host's version from the last time that it heard from the host."""
        self.assert_comes_to(self.versions, list(wanted))

    def nobody_was_disturbed(self):
        for job, (name, _) in self.ran.items():
            self.assert_undisturbed(name, job, self.before[job])

    def a_host_is_drained(self):
        self.hosts[0].run("hlaunch", "drain", "node2", "--reason", "ECC errors")
        node = self.nodes_now()[2]
        self.assertEqual((node["state"], node["why"]), ("drained", "ECC errors"))
        self.assert_jobs(self.wanted)
        self.hosts[0].run("hlaunch", "undrain", "node2")

    def jobs_end(self):
        """The waiting job gets its turn, on hosts of two versions."""
        for job, (name, _) in self.ran.items():
            self.user(name, 2, "stop", job)
        self.assert_jobs({}, timeout=30)
        self.assertIn("tick 0", self.user("bob", 1, "logs", self.waiting).stdout)

    def the_package_goes(self):
        host = self.hosts[2]
        host.run("dpkg", "-r", "hlaunch")
        self.assertEqual(host.show(DAEMON, "ActiveState"), "inactive")


class Power(ThreeHosts):
    """The head's host loses its power and gets it back; jobs on other hosts run on."""

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
        # Everything works as before.
        self.assertEqual(self.user("bob", 0, "--nnodes", 3, "tick.py", 3).returncode, 0)

    def test_a_spare_takes_the_place_of_a_drained_host(self):
        self.form()
        job = self.submit("ann", 0, "--nnodes", 2, "--spares", 1, "--max-restarts", 3, "tick.py")
        self.await_ranks("ann", job, 2)
        # The spare is the host that joined the job last; draining it would change nothing.
        busy = [host for host in self.hosts[1:]
                if host.run("pgrep", "-f", "^/usr/bin/python3 -u tick.py", check=False).returncode == 0]
        self.hosts[0].run("hlaunch", "drain", busy[0].node.name, "--reason", "new disks", "--deadline", 60)
        self.await_ranks("ann", job, 4)  # Two more, in the next round.
        self.user("ann", 1, "stop", job)
        self.assert_jobs({})


if __name__ == "__main__":
    lab.main()
