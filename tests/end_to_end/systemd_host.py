# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A host with systemd as its pid 1, in a container of systemd-nspawn.

Its files are this machine's own, below an overlay that goes with the host, plus hlaunch and its
units as `cmake --install` lays them out. It starts no service that is installed on this machine,
and has the network of a lab's node, or only loopback. A parent-death signal of the test ends all of
it.
"""

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import unittest

import lab

UNITS = lab.ROOT / "deploy/systemd"
BOOT = r"""
set -e
folder=$1
mount -t tmpfs tmpfs "$folder/space"
cd "$folder/space"
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/work root
cp -a "$folder/seed/." root/
set +e
while systemd-nspawn -q -D root --boot --register=no --keep-unit -M "$2" $3 --console=pipe \
  --link-journal=no --resolv-conf=off --timezone=off
  [ -e "$folder/off" ]
do
  touch "$folder/is-off"
  while [ -e "$folder/off" ]; do sleep 0.05; done
done
"""


def cgroups():
    """Where this machine's cgroup hierarchies are mounted: those of version one, two or both."""
    root = pathlib.Path("/sys/fs/cgroup")
    if (root / "cgroup.procs").exists():
        return [root]
    return [root / name for name in ("systemd", "unified") if (root / name).is_dir()]


class Host:
    def __init__(self, files, node=None, installed=True):
        """`files`: files to add beside hlaunch, {path: text}. `node`: a lab's node, whose name and
        network the host has. `installed`: whether hlaunch is already installed."""
        self.node, self.installed = node, installed
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hlaunch-systemd-"))
        self.name = f"hlaunch-{secrets.token_hex(6)}"  # A machine's name cannot contain '_'.
        self.process = None
        (self.folder / "space").mkdir()
        self._seed(files)
        # The host needs a group of its own: nspawn makes the container's groups below the current
        # one.
        self.groups = [group / self.name for group in cgroups()]
        try:
            self._boot()
        except BaseException:
            self.close()
            raise

    @property
    def hostname(self):
        return self.node.name if self.node else "host0"

    def _seed(self, files):
        seed = self.folder / "seed"
        if self.installed:
            self._seed_hlaunch(seed)
        own = seed / "etc/systemd/system"
        own.mkdir(parents=True)
        (own / "default.target").symlink_to("/usr/lib/systemd/system/sysinit.target")
        for path, text in {"/etc/machine-id": "", "/etc/hostname": self.hostname + "\n",
                           **files}.items():
            file = seed / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(0o755 if text.startswith("#!") else 0o644)

    @staticmethod
    def _seed_hlaunch(seed):
        for name, place in (("hlaunch", "bin"), ("hlaunch-rendezvous", "bin"),
                            ("hlaunch-agent", "libexec/hlaunch")):
            target = seed / "usr/local" / place
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(lab.BIN / name, target)
        shutil.copytree(UNITS, seed / "usr/local/lib/systemd/system")

    def _boot(self):
        try:
            for group in self.groups:
                group.mkdir()
        except OSError as error:
            raise unittest.SkipTest(f"no control groups for a container: {error}") from error

        def enter():
            for group in self.groups:
                (group / "cgroup.procs").write_text("0", encoding="utf-8")

        self.log = (self.folder / "console").open("wb")
        network = ["nsenter", "-t", str(self.node.init), "-n", "--"] if self.node else []
        self.process = subprocess.Popen(
            [*network, "setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork",
             "--kill-child", "--mount-proc", "bash", "-c", BOOT, "bash", self.folder, self.name,
             "" if self.node else "--private-network"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
            preexec_fn=enter)
        self._await_systemd()

    def _await_systemd(self):
        self.init = lab.poll(self._find_init, 20)
        state = lab.poll(lambda: self.init and self.run(
            "systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded"), 30)
        if not state:
            said = (self.folder / "console").read_text(errors="replace")[-1000:]
            raise unittest.SkipTest(f"systemd does not boot in systemd-nspawn here: {said}")

    def _find_init(self):
        for pid in lab.descendants(self.process.pid):
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                    return pid
            except OSError:
                pass
        return 0

    def power_off(self):
        """All its processes die at once; the files that they wrote stay."""
        (self.folder / "off").touch()
        os.kill(self.init, signal.SIGKILL)
        if not lab.poll((self.folder / "is-off").exists, 20):
            raise AssertionError(f"{self.hostname} does not lose its power")

    def power_on(self):
        (self.folder / "is-off").unlink()
        (self.folder / "off").unlink()
        self._await_systemd()

    def bring(self, path):
        """Copies a file into the host's root folder; returns its path there."""
        inside = pathlib.Path(f"/proc/{self.init}/root") / path.name
        shutil.copy(path, inside)
        return "/" + path.name

    def run(self, *argv, check=True, timeout=60):
        done = subprocess.run(
            ["nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "--",
             "env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8", *map(str, argv)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=lab.PATIENCE * timeout,
            check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"{argv} came to {done.returncode}: {done.stdout}{done.stderr}\n"
                                 f"{self.tail()}")
        return done

    def tail(self):
        return self.run("journalctl", "-n", "60", "--no-pager", check=False).stdout

    def systemctl(self, *words, **options):
        return self.run("systemctl", "--no-pager", *words, **options)

    def show(self, unit, name):
        """One property of a unit, as text."""
        return self.systemctl("show", "--value", "-p", name, unit).stdout.strip()

    def await_property(self, unit, name, wanted, timeout=30):
        """Waits until wanted(value) is true for a property's value; returns the value."""
        lab.poll(lambda: wanted(self.show(unit, name)), timeout, 0.1)
        value = self.show(unit, name)
        if not wanted(value):
            raise AssertionError(f"{unit}: {name} is {value!r}\n{self.tail()}")
        return value

    def journal(self, *matches):
        """The journal's entries that match, oldest first."""
        out = self.run("journalctl", "-o", "json", "--no-pager", "-q", *matches).stdout
        return [json.loads(line) for line in out.splitlines()]

    def await_message(self, text, *matches, count=1, timeout=20):
        """Waits until `count` matching entries contain `text`; returns them."""
        def look():
            found = [entry for entry in self.journal(*matches) if text in str(entry["MESSAGE"])]
            return found if len(found) >= count else []
        found = lab.poll(look, timeout, 0.1)
        if not found:
            raise AssertionError(f"nobody said {text!r} {count} times\n{self.tail()}")
        return found

    def close(self):
        if self.process is not None:
            for child in lab.children(self.process.pid):
                with contextlib.suppress(ProcessLookupError):  # It has ended by itself.
                    os.kill(child, signal.SIGKILL)
            self.process.wait(20 * lab.PATIENCE)
            self.log.close()
        for group in self.groups:
            lab.poll(lambda group=group: lab.remove_group(group), 5)
        shutil.rmtree(self.folder, ignore_errors=True)
