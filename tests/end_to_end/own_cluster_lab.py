# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An own cluster on a lab's nodes: the head on node0, a node daemon on each node, and users.

    cluster = OwnCluster(lab)
    cluster.form()                                    # init, and a join of each other node
    job = cluster.user("ann", 1, "train.sh")          # hlaunch, as ann, on node1

Each node has its own /etc, /run, /var/lib, /var/spool, control groups and boot id. All nodes share
/home, as hosts with a network file system do. None of these belongs to this machine. Needs root.
"""

import json
import os
import pathlib
import re
import secrets
import signal
import statistics
import subprocess
import time

import lab
import systemd_host

HLAUNCHD = lab.BIN / "hlaunchd"
USERS = {"ann": 1001, "bob": 1002, "eve": 1003}
HEAD_USER, HEAD_UID, ADMINS = "hlaunch-head", 991, 1500
PORT = 29401
# Each rank prints a number ten times a second. The first argument is the number of lines, the
# second the exit code. A gap in the numbers shows a disturbance.
TICK = """#!/usr/bin/python3
import os, sys, time
count, code = int(sys.argv[1]) if len(sys.argv) > 1 else 10**9, int(sys.argv[2]) if len(sys.argv) > 2 else 0
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "pid", os.getpid(), flush=True)
for n in range(count):
    print("tick", n, flush=True)
    time.sleep(0.1)
sys.exit(code)
"""
PREPARE = r"""
set -e
folder=$1 hosts=$2 home=$3 group=$4
mkdir -p "$folder/space"
mount -t tmpfs -o mode=755 tmpfs "$folder/space"
cd "$folder/space"
mkdir upper work
mount -t overlay overlay -o lowerdir=/etc,upperdir=$PWD/upper,workdir=$PWD/work /etc
for name in passwd group hlaunch; do cp -a "$folder/etc/$name" /etc/; done
cp "$hosts" /etc/hosts && mount --bind "$hosts" /etc/hosts
echo 'hosts: files' > /etc/nsswitch.conf
mount -t tmpfs -o mode=755 tmpfs /run
for name in lib spool; do mkdir -p "$folder/$name" && mount --bind "$folder/$name" /var/$name; done
mount --bind "$home" /home
mount --bind "$folder/boot_id" /proc/sys/kernel/random/boot_id
"""
# Enters the node's control groups; the command then sees no others.
IN_GROUPS = r"""
for group in $1; do echo 0 > "$group/cgroup.procs"; done
shift
exec unshare --cgroup --mount sh -c '
for mounted in $(findmnt -rnt cgroup,cgroup2 -o TARGET); do
  kind=$(findmnt -rno FSTYPE,OPTIONS "$mounted")
  case $kind in
    cgroup2*) umount "$mounted" && mount -t cgroup2 cgroup2 "$mounted" ;;
    *name=systemd*) umount "$mounted" && mount -t cgroup -o none,name=systemd cgroup "$mounted" ;;
  esac
done
exec "$@"' sh "$@"
"""


def make_groups(*names):
    """Makes a folder in each hierarchy of control groups, with a group for each host in it."""
    groups = [group / f"hlaunch-lab-{secrets.token_hex(4)}" for group in systemd_host.cgroups()]
    for group in groups:
        for name in names:
            (group / name).mkdir(parents=True)
    return groups


def in_groups(groups, name):
    """The prefix for a command that makes it see a host's control groups and no others."""
    return ["bash", "-c", IN_GROUPS, "bash", " ".join(str(group / name) for group in groups)]


def remove_groups(groups):
    for group in groups:
        lab.poll(lambda group=group: lab.remove_group(group), 10)


def missing():
    """What this lab needs and does not find here; empty if nothing is missing."""
    if os.geteuid() != 0:
        return "needs root, for users"
    return "" if os.access(HLAUNCHD, os.X_OK) else f"{HLAUNCHD} is not built"


def join_words(said):
    """The arguments of `cluster join` from a command's output: HOST:PORT, --token, TOKEN."""
    token, place = re.search(r"echo (\S+) \| sudo hlaunch cluster join (\S+) --token-file -$", said,
                             re.MULTILINE).groups()
    return [place, "--token", token]


class Figures:
    """Durations by what they measure. They are printed at the end and never asserted."""

    def __init__(self):
        self.took = {}

    def wait(self, what, since, condition, timeout):
        """Like lab.poll; records the time since `since` on the monotonic clock."""
        value = lab.poll(condition, timeout, 0.05)
        self.took.setdefault(what, []).append(time.monotonic() - since)
        return value

    def tell(self):
        for what, took in self.took.items():
            print(f"figure: {what}: median {statistics.median(took):.2f} s, at most {max(took):.2f} s"
                  f" of {len(took)}", flush=True)


class OwnCluster:
    def __init__(self, of, settings=""):
        """`settings` are added to each node's hlaunchd.conf."""
        self.lab, self.nodes = of, of.nodes
        self.daemons, self.head, self.trouble = {}, None, []
        self.home = of.folder / "home"
        self.home.mkdir(mode=0o755)
        for name, uid in USERS.items():
            (self.home / name).mkdir(mode=0o700)
            script = self.home / name / "tick.py"
            script.write_text(TICK, encoding="utf-8")
            script.chmod(0o755)
            for path in (self.home / name, script):
                os.chown(path, uid, uid)
        self.groups = make_groups(*[node.name for node in self.nodes])
        for node in self.nodes:
            self._prepare(node, settings)

    def _prepare(self, node, settings):
        etc = node.folder / "etc"
        (etc / "hlaunch").mkdir(parents=True)
        (etc / "hlaunch/hlaunchd.conf").write_text(f"slots = 8\nadmin-group = hlaunch-admin\n{settings}",
                                                   encoding="utf-8")
        people = "".join(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n" for name, uid in USERS.items())
        passwd = pathlib.Path("/etc/passwd").read_text(encoding="utf-8")
        # These come first, since this machine may have another user with one of these numbers.
        (etc / "passwd").write_text(
            f"{people}{HEAD_USER}:x:{HEAD_UID}:{HEAD_UID}::/var/lib/hlaunch-head:/bin/false\n{passwd}",
            encoding="utf-8")
        groups = pathlib.Path("/etc/group").read_text(encoding="utf-8")
        own = "".join(f"{name}:x:{uid}:\n" for name, uid in {**USERS, HEAD_USER: HEAD_UID}.items())
        (etc / "group").write_text(f"{own}hlaunch-admin:x:{ADMINS}:eve\n{groups}", encoding="utf-8")
        self.new_boot(node)
        subprocess.run([*node.enter(), "bash", "-c", PREPARE, "bash", node.folder,
                        self.lab.folder / f"hosts{node.index}", self.home, ""], check=True,
                       timeout=20 * lab.PATIENCE)

    @staticmethod
    def new_boot(node):
        """Gives the host a new boot id."""
        digits = secrets.token_hex(16)
        (node.folder / "boot_id").write_text(
            "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])) + "\n",
            encoding="utf-8")

    def close(self):
        """Removes what the cluster made outside of the lab. Call it after the lab's close."""
        remove_groups(self.groups)

    # Programs: as which user and on which node.

    @staticmethod
    def login(name):
        """The prefix for a command that runs it as a user, in the user's home."""
        uid = USERS[name]
        return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--init-groups", "env", f"--chdir=/home/{name}",
                f"HOME=/home/{name}", f"USER={name}", "PATH=/usr/local/bin:/usr/bin:/bin",
                "PYTHON_EXEC=/usr/bin/python3"]

    def user(self, name, index, *words, env=None):
        """Starts hlaunch as a user on a node, in the user's home."""
        variables = [f"{key}={value}" for key, value in (env or {}).items()]
        return self.nodes[index].start(*self.login(name), *variables, lab.HLAUNCH, *words)

    def as_user(self, name, index, *words, timeout=30, **options):
        """Like `user`, and waits for the command's end."""
        run = self.user(name, index, *words, **options)
        run.code = run.wait(timeout)
        return run

    def root(self, index, *words, timeout=30, env=None):
        """Runs hlaunch as root on a node and waits for its end."""
        return self.nodes[index].run(lab.HLAUNCH, *words, timeout=timeout, env=env)

    def json(self, name, index, *words):
        """The output of a command with --json."""
        run = self.as_user(name, index, *words, "--json")
        if run.code != 0:
            raise AssertionError(str(run))
        return json.loads(run.out)

    # The daemons.

    def in_groups(self, node, *words):
        return node.start(*in_groups(self.groups, node.name), *words)

    def start_head(self):
        words = [HLAUNCHD, "head", "--folder", "/var/lib/hlaunch-head", "--listen", PORT]
        self.head = self.nodes[0].start("setpriv", f"--reuid={HEAD_UID}", f"--regid={HEAD_UID}",
                                        "--clear-groups", *words)

    def start_daemon(self, index):
        self.daemons[index] = self.in_groups(self.nodes[index], HLAUNCHD)

    def form(self):
        """Runs `cluster init` on node0 and joins each other node with a token of its own."""
        self.init()
        for index in range(1, len(self.nodes)):
            self.join(index)
        self.await_hosts(len(self.nodes))

    def init(self):
        run = self.root(0, "cluster", "init", "--listen", f"{self.nodes[0].ip}:{PORT}")
        if run.code != 0:
            raise AssertionError(str(run))
        self.line = run.out
        self.start_head()
        self.start_daemon(0)
        self.await_connected(0)

    def token(self):
        """The arguments of a new line that joins a host: HOST:PORT, --token, TOKEN."""
        run = self.root(0, "cluster", "token")
        if run.code != 0:
            raise AssertionError(str(run))
        return join_words(run.out)

    def join(self, index, words=None):
        run = self.root(index, "cluster", "join", *(words or self.token()))
        if run.code != 0:
            raise AssertionError(str(run))
        self.start_daemon(index)
        self.await_connected(index)

    def await_connected(self, index):
        def connected():
            return self.root(index, "nodes").code == 0
        if not lab.poll(connected, 20, 0.1):
            raise AssertionError(f"node{index} never reached the head: {self.daemons[index]}\n{self.head}")

    def hosts(self):
        """{host: what `nodes` prints about it}."""
        return {host["name"]: host for host in json.loads(self.root(0, "nodes", "--json").out)["hosts"]}

    def await_hosts(self, count, state="free"):
        def look():
            return [host for host in self.hosts().values() if host["state"] == state]
        if not lab.poll(lambda: len(look()) == count, 20, 0.1):
            raise AssertionError(f"never {count} hosts are {state}: {self.hosts()}")

    def await_all_here(self):
        """Waits until the head hears from all hosts."""
        def away():
            run = self.root(0, "nodes", "--json")
            hosts = json.loads(run.out)["hosts"] if run.code == 0 else []
            return len(hosts) != len(self.nodes) or [host for host in hosts if host["state"] == "away"]
        if not lab.poll(lambda: not away(), 20, 0.1):
            raise AssertionError(f"not all hosts are here: {away()}\n{self.told()}")

    def kill(self, which):
        """Sends SIGKILL to the head ("head") or a node's daemon; nothing starts it again."""
        run = self.head if which == "head" else self.daemons[which]
        os.kill(run.pid, signal.SIGKILL)
        run.wait(10)

    def start(self, which):
        if which == "head":
            self.start_head()
        else:
            self.start_daemon(which)

    def reboot(self, index):
        """All processes of the node die. The node then has a new boot id."""
        node = self.nodes[index]
        subprocess.run([*node.enter(), "sh", "-c", "kill -KILL -1"], check=True, timeout=10 * lab.PATIENCE)
        node.left_over(10)
        self.new_boot(node)
        subprocess.run([*node.enter(), "sh", "-c", "rm -rf /run/*"], check=True, timeout=10 * lab.PATIENCE)

    def told(self):
        runs = [*self.daemons.values(), *([self.head] if self.head else [])]
        return "\n".join(str(run) for run in runs)
