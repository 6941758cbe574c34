# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Test hosts on this machine alone: namespaces node0, node1, … on one bridge.

    with Lab(2) as lab:
        job = lab.nodes[0].start("hlaunch", "--nnodes", "2", …)
        lab.nodes[1].power_off()
        job.wait(10)

Each node has its own net, uts, mount and pid namespace, host name, /etc/hosts, and IPv4 and IPv6
addresses. A node lives as long as one process, pid 1 of its pid namespace: when that process ends,
the kernel ends all others of the node. So nothing outlives a test, not even a killed one.
Nothing has a name outside (no /run/netns, no interface in the host's network), so concurrent runs
do not disturb each other. Needs root or user namespaces; `main` skips (exit 77) and gives the
reason where it has neither.

Run as a program (`lab.py init …`) this file is pid 1 of a node.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SKIP = 77  # CTest's SKIP_RETURN_CODE
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = pathlib.Path(os.environ.get("HLAUNCH_BIN", ROOT / "build/bin"))
HLAUNCH = str(BIN / "hlaunch")
WORKERS = ROOT / "tests/workers"
# Tokens of two jobs.
TOKEN, OTHER_TOKEN = "0123456789abcdef" * 2, "fedcba9876543210" * 2
SUBNET, SUBNET6 = "10.77.0", "fd77::"
# Each limit of a wait is the time that a quiet machine needs. A busy machine may take PATIENCE
# times as long, which the test prints. A wait ends as soon as its condition is true, so the longer
# limit costs time only where a test fails.
PATIENCE = 10


def poll(condition, timeout, step=0.02):
    """Waits until condition() is true; returns its last value."""
    began = time.monotonic()
    while not (value := condition()) and time.monotonic() < began + PATIENCE * timeout:
        time.sleep(step)
    tell_slowness(began, timeout)
    return value


def tell_slowness(began, timeout):
    """Prints a line if a wait since `began` took longer than its limit for a quiet machine."""
    if (took := time.monotonic() - began) > timeout:
        print(f"slow: waited {took:.0f} s where {timeout:.0f} s are enough", flush=True)


def fields(pid, proc="/proc"):
    """The fields of /proc/PID/stat from the state on, or None if the process is gone."""
    try:
        stat = pathlib.Path(proc, str(pid), "stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid):
    """The pids of a process' children, including those of all its threads."""
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def namespace_pid(pid):
    """The process' pid in its own pid namespace, or 0 if it is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        return int(re.search(r"^NSpid:.*?(\d+)$", status, re.MULTILINE)[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def command_line(pid, proc="/proc"):
    try:
        words = pathlib.Path(proc, str(pid), "cmdline").read_bytes().split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words).strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def name_of(pid):
    """The name that a process has given itself; empty if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def remove_group(group):
    """Removes a control group and all groups below it that hold no process.

    Returns whether the group is gone.
    """
    for folder in [*sorted(group.rglob("*/"), reverse=True), group]:
        try:
            folder.rmdir()
        except OSError:
            pass
    return not group.exists()


class Run:
    """One command on a node: its output so far, its exit code, the processes under it."""

    def __init__(self, node, argv, env=None, cwd=None, stdin=subprocess.DEVNULL,
                 process_group=None):
        self.node, self.argv = node, [str(word) for word in argv]
        out, self._out = tempfile.mkstemp(dir=node.folder, prefix="out-")
        err, self._err = tempfile.mkstemp(dir=node.folder, prefix="err-")
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("HLAUNCH_TOKEN", "TORCHELASTIC", "PET_", "SLURM_"))}
        clean["XDG_CONFIG_HOME"] = "/nowhere"  # The user may have a token there.
        clean.update({name: str(value) for name, value in (env or {}).items()})
        self.process = subprocess.Popen(
            [*node.enter(), "env", "-C", str(cwd or node.folder), *self.argv],
            stdin=stdin, stdout=out, stderr=err, env=clean, process_group=process_group)
        os.close(out)
        os.close(err)

    @property
    def out(self):
        return pathlib.Path(self._out).read_text(encoding="utf-8", errors="replace")

    @property
    def err(self):
        return pathlib.Path(self._err).read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self):
        """The command's pid as the test sees it (nsenter's only child)."""
        poll(lambda: children(self.process.pid) or self.process.poll() is not None, 5)
        found = children(self.process.pid)
        if not found:
            raise AssertionError(f"not running: {self}")
        return found[0]

    def descendants(self):
        return descendants(self.pid)

    def signal(self, number):
        os.kill(self.pid, number)

    def wait_for(self, pattern, timeout=10):
        """Waits for a line on stdout or stderr that `pattern` matches; returns the match."""
        def look():
            return re.search(pattern, self.out + self.err, re.MULTILINE)
        match = poll(lambda: look() or self.process.poll() is not None, timeout) and look()
        if not match:
            raise AssertionError(f"never said /{pattern}/ in {PATIENCE * timeout} s: {self}")
        return match

    def wait(self, timeout):
        """The exit code as a shell would see it: 128 + n for signal n."""
        began = time.monotonic()
        try:
            code = self.process.wait(PATIENCE * timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {PATIENCE * timeout} s: {self}") from None
        tell_slowness(began, timeout)
        return code if code >= 0 else 128 - code

    def __str__(self):
        return (f"{self.node.name}: {' '.join(self.argv)}\n  exit code {self.process.poll()}\n"
                f"--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}")


class Node:
    """One host of the lab."""

    def __init__(self, lab, index):
        self.lab, self.index, self.name = lab, index, f"node{index}"
        self.port = f"v{index}"  # On the switch.
        self.ip, self.ip6 = f"{SUBNET}.{index + 10}", f"{SUBNET6}{index + 16:x}"
        self.folder = lab.folder / self.name
        self.folder.mkdir()
        self.init = lab.hold(f"{self.name}", self.folder / "ready",
                             "--uts", "--mount", "--pid", "--mount-proc")

    def enter(self):
        return ["nsenter", "-t", str(self.init), "-n", "-u", "-m", "-p", "--"]

    def connect(self):
        lab, veth = self.lab, self.port
        lab.at_switch("ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns",
                      str(self.init))
        lab.at_switch("ip", "link", "set", veth, "master", "br0", "up")
        self.set_up()

    def set_up(self):
        """Sets the addresses of eth0."""
        commands = ["link set lo up", f"addr add {self.ip6}/64 dev eth0 nodad",
                    "link set eth0 up"]
        if not self.lab.ipv6_only:
            commands.insert(0, f"addr add {self.ip}/24 dev eth0")
        batch = self.folder / "ip"
        batch.write_text("\n".join(commands) + "\n", encoding="utf-8")
        subprocess.run(["nsenter", "-t", str(self.init), "-n", "ip", "-batch", batch], check=True,
                       timeout=10 * PATIENCE)

    def lengthen(self, seconds):
        """Delays each frame to and from the switch by `seconds` from now on."""
        ready = self.folder / "cable"
        self.lab.at_switch("ip", "link", "del", self.port)
        self.lab.background(ready, sys.executable, HERE / "long_cable.py", self.init, "eth0",
                            self.lab.switch, self.port, seconds, ready)
        self.lab.at_switch("ip", "link", "set", self.port, "master", "br0", "up")
        self.set_up()

    def add_interface(self, name, address):
        """Adds another interface on the same bridge."""
        veth = f"{name}v{self.index}"
        self.lab.at_switch("ip", "link", "add", veth, "type", "veth", "peer", "name", name, "netns",
                           str(self.init))
        self.lab.at_switch("ip", "link", "set", veth, "master", "br0", "up")
        for command in (f"addr add {address} dev {name}", f"link set {name} up"):
            subprocess.run(["nsenter", "-t", str(self.init), "-n", "ip", *command.split()],
                           check=True, timeout=10 * PATIENCE)

    @property
    def _hosts(self):
        return self.lab.folder / f"hosts{self.index}"

    def know(self, name, address):
        """Adds a line to this node's /etc/hosts."""
        with self._hosts.open("a", encoding="utf-8") as hosts:
            hosts.write(f"{address} {name}\n")

    def forget(self, name):
        """Removes a name's lines from /etc/hosts, in place: the node has the file mounted."""
        kept = [line for line in self._hosts.read_text(encoding="utf-8").splitlines(True)
                if name not in line.split()]
        self._hosts.write_text("".join(kept), encoding="utf-8")

    def start(self, *argv, **options):
        """Starts a command here. The lab ends it at the latest."""
        run = Run(self, argv, **options)
        self.lab.runs.append(run)
        return run

    def run(self, *argv, timeout=30, **options):
        """Runs a command here and waits for its end."""
        run = self.start(*argv, **options)
        run.code = run.wait(timeout)
        return run

    def cut(self):
        """Pulls the cable: the node sees that its carrier is gone."""
        self.lab.at_switch("ip", "link", "set", self.port, "down")

    def heal(self):
        self.lab.at_switch("ip", "link", "set", self.port, "master", "br0", "up")
        forward = ("bridge", "link", "set", "dev", self.port, "state", "3")
        # The command fails ("Network is down") until the carrier is back, a moment later.
        if not poll(lambda: self.lab.at_switch(*forward, check=False) == 0, 5):
            raise RuntimeError(f"{self.port} does not come up again")

    def drop(self):
        """Makes the cable a black hole: the carrier stays, but no frame passes either way."""
        # The port has to leave the bridge. A port that stays in it, disabled, would be enabled
        # again by a late event of its carrier.
        self.lab.at_switch("ip", "link", "set", self.port, "nomaster")

    def power_off(self):
        """All processes of the node die at once and send nothing."""
        os.kill(self.init, signal.SIGKILL)

    def processes(self):
        """{pid in the node: command line} of all its live processes, except zombies and pid 1."""
        proc = f"/proc/{self.init}/root/proc"  # The node's own, so it shows nested pid namespaces.
        try:
            pids = [int(name) for name in os.listdir(proc) if name.isdigit() and name != "1"]
        except (FileNotFoundError, ProcessLookupError):
            return {}
        alive = {}
        for pid in pids:
            stat = fields(pid, proc)
            if stat and stat[0] not in "ZX":
                alive[pid] = command_line(pid, proc)
        return alive

    def shared_memory(self):
        """The names in the node's own /dev/shm."""
        return os.listdir(f"/proc/{self.init}/root/dev/shm")

    def left_over(self, timeout=3):
        """The processes that still live here after `timeout`. Returns early once there are none."""
        poll(lambda: not self.processes(), timeout)
        return self.processes()


class Lab:
    """`count` nodes on one bridge. Use it as a context manager."""

    def __init__(self, count, ipv6_only=False):
        self.ipv6_only, self.runs, self.nodes, self._outer = ipv6_only, [], [], []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hlaunch-lab-"))
        try:
            self.switch = self.hold("switch", self.folder / "switch.ready", "--pid")
            self.at_switch("ip", "link", "add", "name", "br0", "type", "bridge")
            self.at_switch("ip", "link", "set", "br0", "up")
            self._write_hosts(count)
            self.nodes = [Node(self, index) for index in range(count)]
            for node in self.nodes:
                node.connect()
        except BaseException:
            self.close()
            raise

    def _write_hosts(self, count):
        """Every node knows all nodes; node0 maps its own name to 127.0.1.1, as Debian does."""
        for index in range(count):
            lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
            for other in range(count):
                if other == index == 0 and not self.ipv6_only:
                    lines.append("127.0.1.1 node0")
                elif not self.ipv6_only:
                    lines.append(f"{SUBNET}.{other + 10} node{other}")
                suffix = "" if self.ipv6_only else "-v6"
                lines.append(f"{SUBNET6}{other + 16:x} node{other}{suffix}")
            (self.folder / f"hosts{index}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (self.folder / "nsswitch.conf").write_text("hosts: files\n", encoding="utf-8")

    def hold(self, name, ready, *namespaces):
        """Starts pid 1 of new namespaces; returns its pid."""
        outer = self.background(ready, "unshare", "--net", *namespaces, "--fork", "--kill-child",
                                sys.executable, os.path.abspath(__file__), "init", name,
                                self.folder, ready)
        return children(outer)[0]

    def background(self, ready, *command):
        """Starts a command that makes the file `ready` and ends with the lab; returns its pid."""
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        self._outer.append(process)
        poll(lambda: ready.exists() or process.poll() is not None, 20, 0.005)
        if not ready.exists():
            process.kill()
            raise RuntimeError(f"{command}: {process.stderr.read().decode().strip()}")
        return process.pid

    def at_switch(self, *argv, check=True):
        """Runs a command in the switch's network; returns its exit code."""
        return subprocess.run(["nsenter", "-t", str(self.switch), "-n", "--", *argv], check=check,
                              timeout=10 * PATIENCE).returncode

    def close(self):
        for outer in self._outer:
            for child in children(outer.pid):
                with contextlib.suppress(ProcessLookupError):  # It has just been powered off.
                    os.kill(child, signal.SIGKILL)
            outer.kill()
        for process in self._outer + [run.process for run in self.runs]:
            process.wait(10 * PATIENCE)
            if process.stderr:
                process.stderr.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class LabTest(unittest.TestCase):
    """A test on a lab of `self.count` nodes. No process may be left on any node at its end."""

    count, ipv6_only = 2, False

    def setUp(self):
        self.lab = Lab(self.count, self.ipv6_only)
        self.addCleanup(self.lab.close)
        self.nodes = self.lab.nodes

    def assert_nothing_left(self, timeout=3):
        for node in self.nodes:
            left = node.left_over(timeout)
            if left:
                said = "\n".join(str(run) for run in self.lab.runs)
                self.fail(f"left over on {node.name}: {left}\n{said}")


def init(name, folder, ready):
    """pid 1 of a node: sets up the mount and uts namespaces, then reaps children until killed."""
    if name.startswith("node"):
        subprocess.run(["hostname", name], check=True)
        for file, over in ((f"hosts{name[4:]}", "/etc/hosts"),
                           ("nsswitch.conf", "/etc/nsswitch.conf")):  # No name servers here.
            subprocess.run(["mount", "--bind", f"{folder}/{file}", over], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pathlib.Path(ready).touch()
    while True:
        signal.sigwait({signal.SIGCHLD})
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def main(needs_hlaunch=True):
    """Runs the calling file's tests, in a user namespace if the user is not root."""
    # A shell lets what it starts in the background ignore SIGINT, and hlaunch keeps to that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for tool in ("unshare", "nsenter", "setpriv", "ip", "bridge"):
        if not shutil.which(tool):
            skip(f"no {tool} in PATH (Debian: util-linux, iproute2)")
    probe = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc",
             "true"]
    if os.geteuid() != 0:
        wrap = ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*wrap, *probe], capture_output=True, check=False).returncode == 0:
            os.execvp(wrap[0], [*wrap, sys.executable, *sys.argv])
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"no namespaces here: {done.stderr.strip()} (run as root, or allow user namespaces)")
    if needs_hlaunch and not os.access(HLAUNCH, os.X_OK):
        sys.exit(f"{HLAUNCH} is not built: run tests/run")
    result = unittest.main(exit=False, verbosity=2).result
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
    # A class that is skipped as a whole counts as one skip and as no test.
    if result.skipped and len(result.skipped) >= result.testsRun:
        sys.exit(SKIP)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__" and sys.argv[1:2] == ["init"]:
    init(*sys.argv[2:])
