#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunchd on one machine: parts of jobs run as their users, outlive the daemon, and it finds them
again. Users' questions reach the head with their names. The head is that of small_head."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from datetime import timedelta

import lab
import own_cluster_lab
import small_head

# Not sys.executable: root's Python may be in a folder that users cannot read.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
ANN, BOB, STAFF = 41001, 41002, 41100
PASSWD = f"""root:x:0:0:root:/root:/bin/sh
ann:x:{ANN}:{ANN}::/:/bin/sh
bob:x:{BOB}:{BOB}::/:/bin/sh
wrong:x:41009:41009::/:/bin/sh
service:x:33:33::/:/bin/sh
nobody:x:65534:65534::/:/bin/sh
"""
GROUP = f"""root:x:0:
ann:x:{ANN}:
bob:x:{BOB}:
staff:x:{STAFF}:ann
admins:x:41200:bob
"""
# Mounts files of `folder` as /etc/passwd and /etc/group, for the command alone.
WITH_USERS = ('mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && '
              'mount --bind "$0/nsswitch.conf" /etc/nsswitch.conf && exec "$@"')
# The hierarchies of version 1 that have limits.
LIMITING = [group for group in map(pathlib.Path, ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"))
            if (group / "cgroup.procs").exists()]
WITH_LIMITS = ('for group in $0; do umount $group && mount -t cgroup -o ${group##*/} cgroup $group || exit 1; done; '
               'exec "$@"')


class Daemon:
    """hlaunchd of one host in a folder of its own."""

    def __init__(self, test, name, settings=""):
        self.test, self.name = test, name
        self.folder = test.folder / name
        self.folder.mkdir(mode=0o755)
        self.trust, self.parts = self.folder / "trust", self.folder / "parts"
        self.socket = self.folder / "socket"
        self.config = self.folder / "hlaunchd.conf"
        self.config.write_text(f"least-uid = 1000\nadmin-group = admins\nslots = 4\n{settings}")
        self.said = self.folder / "said"
        self.groups = own_cluster_lab.make_groups(name)
        if settings:
            self.groups += [group / self.groups[0].name for group in LIMITING]
            for group in self.groups:
                (group / name).mkdir(parents=True, exist_ok=True)
        self.process = None

    def join(self, authority, port):
        authority.sign_host(self.name)
        self.trust.mkdir(mode=0o700)
        for name, source in (("authority.pem", "authority.pem"), ("host.pem", f"{self.name}.pem"),
                             ("host.key", f"{self.name}.key")):
            self.write(name, authority.read(source))
        self.write("head", f"127.0.0.1:{port}\n")

    def write(self, name, text):
        (self.trust / name).write_text(text)
        (self.trust / name).chmod(0o600)

    def start(self, *more):
        with self.said.open("ab") as said:
            self.process = subprocess.Popen(
                [*own_cluster_lab.in_groups(self.groups, self.name), "sh", "-c", WITH_LIMITS,
                 " ".join(str(group.parent) for group in self.groups if group.parent in LIMITING),
                 "sh", "-c", WITH_USERS, self.test.folder, self.test.folder / "bin/hlaunchd", "--folder", self.trust, "--parts", self.parts,
                 "--socket", self.socket, "--config", self.config, *more],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        self.test.addCleanup(self.kill)

    def await_socket(self):
        """Waits until the daemon accepts connections, a moment after its socket exists."""
        def listens():
            with socket.socket(socket.AF_UNIX) as one:
                return one.connect_ex(str(self.socket)) == 0
        self.test.assertTrue(lab.poll(listens, 10), self.text())

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(lab.PATIENCE * 10)

    def text(self):
        return self.said.read_text(encoding="utf-8", errors="replace")

    def part(self, job):
        return json.loads((self.parts / str(job) / "part.json").read_text())

    def holder(self, job):
        return self.part(job)["holder"]

    def ask(self, verb, body=None, uid=0, groups=()):
        """Asks the daemon as a user; returns its answer."""
        script = ("import sys, json; sys.path.insert(0, sys.argv[1]); import small_head, socket\n"
                  "s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[2])\n"
                  "try: s.sendall(small_head.frame(json.loads(sys.argv[3])))\n"
                  "except BrokenPipeError: pass  # It has refused already, and said why.\n"
                  "print(json.dumps(small_head.read_frame(s)))")
        question = json.dumps({"id": 1, "ask": verb, "body": body or {},
                               "user": {"name": "root", "uid": 0, "admin": True}})
        done = subprocess.run(
            [PYTHON, "-c", script, lab.HERE, self.socket, question], user=uid,
            group=uid, extra_groups=list(groups), stdout=subprocess.PIPE, check=True,
            timeout=10 * lab.PATIENCE)
        return json.loads(done.stdout)


class DaemonTest(unittest.TestCase):
    FOLDERS = None  # The default temporary folder.

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hlaunchd-", dir=self.FOLDERS))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.folder.chmod(0o755)
        (self.folder / "passwd").write_text(PASSWD)
        (self.folder / "group").write_text(GROUP)
        (self.folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
        (self.folder / "bin").mkdir(mode=0o755)
        for name in ("hlaunch", "hlaunch-agent", "hlaunchd"):
            shutil.copy(lab.BIN / name, self.folder / "bin" / name)
        ca = self.folder / "ca"
        ca.mkdir(mode=0o700)
        self.authority = small_head.Authority(ca)
        self.authority.sign_head()
        self.head = small_head.SmallHead(self.authority)
        self.addCleanup(self.head.close)
        self.jobs = []
        self.daemons = []
        self.addCleanup(self.end_parts)

    def end_parts(self):
        for daemon in self.daemons:
            daemon.kill()
            for record in daemon.parts.glob("*/part.json"):
                part = json.loads(record.read_text())
                found = lab.fields(part["holder"])
                if found and int(found[19]) == part["start_time"]:
                    os.kill(part["holder"], signal.SIGKILL)
            own_cluster_lab.remove_groups(daemon.groups)

    def daemon(self, name="node0", settings=""):
        daemon = Daemon(self, name, settings)
        daemon.join(self.authority, self.head.port)
        self.daemons.append(daemon)
        daemon.start()
        self.await_up(daemon)
        return daemon

    def await_up(self, daemon):
        """Waits until the daemon has reported all parts since it last connected."""
        came = lambda: daemon.name in self.head.hosts and (daemon.name, "parts", {}) in [
            news for news in self.head.news]
        self.assertTrue(lab.poll(came, 15), daemon.text())

    def told(self, host, job):
        """The last report about a part."""
        parts = [body for name, verb, body in self.head.news
                 if name == host and verb == "part" and body["job"] == job]
        return parts[-1] if parts else {}

    def await_state(self, daemon, job, state, timeout=20):
        reached = lambda: self.told(daemon.name, job).get("state") == state
        self.assertTrue(lab.poll(reached, timeout),
                        f"{self.told(daemon.name, job)}\n{daemon.text()}\n{self.log(daemon, job)}")
        return self.told(daemon.name, job)

    @staticmethod
    def log(daemon, job):
        log = daemon.parts / str(job) / "job/log"
        return log.read_text(errors="replace") if log.exists() else "no log"

    def await_log(self, daemon, job, pattern):
        """Waits until a line of a part's log matches; returns the match."""
        look = lambda: re.search(pattern, self.log(daemon, job), re.MULTILINE)
        self.assertTrue(lab.poll(look, 20), self.log(daemon, job) + daemon.text())
        return look()

    def worker(self, daemon, job, words):
        """Waits for a part's process with this command line; returns its pid."""
        look = lambda: [pid for pid in lab.descendants(daemon.holder(job)) if lab.command_line(pid) == words]
        found = lab.poll(look, 20)
        self.assertEqual(len(found), 1, self.log(daemon, job) + daemon.text())
        return found[0]

    def order(self, job, script, user="ann", uid=ANN, **more):
        request = {"script": script, "directory": "/", "environment": ["PATH=/usr/bin:/bin"],
                   **more.pop("request", {})}
        return {"job": job, "node_rank": 0, "min_nodes": 1, "max_nodes": 1, "user": user,
                "uid": uid, "workers": 1, "request": request, **more}

    def start(self, daemon, job, script, **more):
        self.assertEqual(self.head.order(daemon.name, "start", self.order(job, script, **more)), {})


def shell(text):
    return ["/bin/sh", "-c", text]


class Parts(DaemonTest):
    def test_a_part_runs_as_its_user_with_his_groups(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("id -u; id -g; id -G; umask; pwd; echo $HOME-$MORE; exit 3"),
                   request={"environment": ["PATH=/usr/bin:/bin", "MORE=x"], "umask": 0o27,
                            "directory": "/usr"})
        told = self.await_state(daemon, 7, "ended")
        self.assertEqual(told["exit_code"], 3)
        log = self.log(daemon, 7)
        for line in (f"{ANN}", f"{ANN} {STAFF}", "0027", "/usr", "/-x"):
            self.assertRegex(log, rf"(?m)stdout F (\[0\] )?{line}$")
        job = (daemon.parts / "7/job").stat()
        self.assertEqual((job.st_uid, job.st_mode & 0o777), (ANN, 0o700))

    def test_kill_and_restart_of_the_daemon_disturb_nothing(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"))
        self.start(daemon, 8, shell(f"while [ ! -e {self.folder}/go ]; do sleep 0.05; done; exit 5"))
        self.await_state(daemon, 7, "running")
        self.await_state(daemon, 8, "running")
        worker = self.worker(daemon, 7, "sleep 600")
        for again in range(5):
            daemon.kill()
            self.head.news.clear()
            if again == 2:  # The job ends while no daemon runs.
                (self.folder / "go").touch()
                gone = daemon.holder(8)
                self.assertTrue(lab.poll(lambda: (lab.fields(gone) or "Z")[0] in "ZX", 10))
            daemon.start()
            self.await_up(daemon)
            self.assertEqual(self.told("node0", 7)["state"], "running")
        self.assertEqual(self.told("node0", 8)["exit_code"], 5, daemon.text())
        self.assertEqual(self.worker(daemon, 7, "sleep 600"), worker)

    def test_sigterm_ends_a_job_by_itself_and_sigkill_at_once(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("trap 'echo stopping; exit 9' TERM; echo ready; sleep 600 & wait"))
        self.start(daemon, 8, shell("trap '' TERM; echo ready; sleep 601"))
        for job in (7, 8):
            self.await_state(daemon, job, "running")
            self.await_log(daemon, job, "ready$")
        below = lab.descendants(daemon.holder(8))
        self.head.order("node0", "signal", {"job": 7, "signal": signal.SIGTERM})
        self.assertEqual(self.await_state(daemon, 7, "ended")["exit_code"], 128 + signal.SIGTERM)
        self.assertIn("stopping", self.log(daemon, 7))
        self.head.order("node0", "signal", {"job": 8, "signal": signal.SIGKILL})
        told = self.await_state(daemon, 8, "ended")
        self.assertEqual(told["exit_code"], 128 + signal.SIGKILL)
        self.assertIn("killed on request", told["trouble"])
        gone = lambda: all((lab.fields(pid) or "Z")[0] in "ZX" for pid in below)
        self.assertTrue(lab.poll(gone, 10), below)

    def test_a_holder_that_is_killed_is_a_lost_part(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"))
        self.await_state(daemon, 7, "running")
        os.kill(daemon.holder(7), signal.SIGKILL)
        self.assertIn("node0", self.await_state(daemon, 7, "lost")["trouble"])

    def test_what_a_killed_job_leaves_behind_is_killed_with_it(self):
        for again in (False, True):  # The daemon sees it happen; it finds it at its start.
            daemon = self.daemon(f"node{int(again)}")
            self.start(daemon, 7, shell("setsid sleep 600 & echo left $!; wait"))
            self.await_state(daemon, 7, "running")
            left = int(self.await_log(daemon, 7, r"left (\d+)$")[1])
            group = pathlib.Path(f"/proc/{left}/cgroup").read_text()
            if "hlaunch" not in group:
                self.skipTest(f"no control group of its own: {group}")
            if again:
                daemon.kill()
            dying = {daemon.holder(7), *lab.descendants(daemon.holder(7))} - {left}
            for number in (signal.SIGSTOP, signal.SIGKILL):  # So none ends what is left.
                for pid in dying:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
            if again:
                self.assertNotIn((lab.fields(left) or "Z")[0], "ZX")
                daemon.start()
            gone = lambda left=left: (lab.fields(left) or "Z")[0] in "ZX"
            self.assertTrue(lab.poll(gone, 15), daemon.text())
            empty = lambda daemon=daemon: not [
                found for root in daemon.groups for found in root.glob("*/hlaunch/7")]
            self.assertTrue(lab.poll(empty, 15), daemon.text())

    def test_a_job_has_nothing_of_the_daemons(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("grep SigBlk /proc/self/status; stat -c 'of %u' /proc/self/environ"))
        self.await_state(daemon, 7, "ended")
        self.assertRegex(self.log(daemon, 7), r"SigBlk:\s+0{16}")
        self.assertIn(f"of {ANN}", self.log(daemon, 7))  # The job may dump its core.

    def test_a_file_system_on_a_jobs_folder_is_not_entered(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"))
        self.await_state(daemon, 7, "running")
        job = daemon.parts / "7/job"
        subprocess.run(["nsenter", "-m", "-t", str(daemon.process.pid), "sh", "-c",
                        f"mount -t tmpfs none {job} && echo secret > {job}/log && chown {ANN} {job}/log"],
                       check=True)
        self.assertNotIn("secret", self.head.order("node0", "log", {"job": 7, "node_rank": 0})["text"])

    def test_users_who_may_not_are_refused_and_the_host_is_named(self):
        daemon = self.daemon()
        for job, user, uid, why in ((1, "nosuch", 41003, "no user nosuch"),
                                    (2, "wrong", 41008, "has the number 41009 here"),
                                    (3, "service", 33, "least-uid"),
                                    (4, "root", 0, "allow-root"),
                                    (5, "nobody", 65534, "runs no jobs")):
            self.start(daemon, job, shell("echo ran"), user=user, uid=uid)
            told = self.await_state(daemon, job, "failed")
            self.assertIn("host node0: ", told["trouble"])
            self.assertIn(why, told["trouble"])
            self.assertFalse((daemon.parts / str(job) / "job/log").exists())

    def test_who_cannot_be_looked_up_is_refused_and_not_unknown(self):
        daemon = self.daemon()
        getent = self.folder / "getent"
        real = self.folder / "real"
        shutil.copy("/usr/bin/getent", real)
        getent.write_text(f'#!/bin/sh\n[ "$1" = initgroups ] && exit 3\nexec {real} "$@"\n')
        getent.chmod(0o755)
        place = ["nsenter", "-m", "-t", str(daemon.process.pid), "mount", "--bind"]
        subprocess.run([*place, getent, "/usr/bin/getent"], check=True)
        self.start(daemon, 7, shell("echo ran"))
        told = self.await_state(daemon, 7, "failed")
        self.assertIn("cannot find out the groups of the user ann: getent ended with exit code 3",
                      told["trouble"])
        getent.write_text("#!/bin/sh\nexit 1\n")
        self.start(daemon, 8, shell("echo ran"))
        told = self.await_state(daemon, 8, "failed")
        self.assertIn("cannot find out who the user ann is: getent ended with exit code 1", told["trouble"])
        refused = daemon.ask("jobs", uid=BOB)["error"]
        self.assertEqual(refused["code"], "UNAVAILABLE")
        self.assertIn("cannot find out who the user with number", refused["message"])

    def test_what_cannot_start_says_why(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("true"), request={"directory": "/no/such"})
        self.assertIn("no working directory /no/such",
                      self.await_state(daemon, 7, "failed")["trouble"])
        self.start(daemon, 8, ["/no/such/program"])
        self.assertEqual(self.await_state(daemon, 8, "ended")["exit_code"], 127)

    def test_a_part_is_not_started_twice_and_is_forgotten_once_it_ended(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"))
        self.await_state(daemon, 7, "running")
        self.start(daemon, 7, shell("sleep 600"))
        holder = daemon.holder(7)
        with self.assertRaisesRegex(small_head.Refused, "runs"):
            self.head.order("node0", "forget", {"job": 7})
        self.assertEqual(daemon.holder(7), holder)
        self.head.order("node0", "signal", {"job": 7, "signal": signal.SIGKILL})
        self.await_state(daemon, 7, "ended")
        self.head.order("node0", "forget", {"job": 7})
        self.assertTrue(daemon.part(7)["forgotten"])

    def test_an_ended_job_of_another_head_gives_way(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("exit 3"), token="a" * 32)
        self.assertEqual(self.await_state(daemon, 7, "ended")["exit_code"], 3)
        self.head.news.clear()
        self.start(daemon, 7, shell("exit 3"), token="a" * 32)
        self.assertEqual(self.told("node0", 7)["exit_code"], 3)
        self.start(daemon, 7, shell("exit 4"), token="b" * 32)
        self.assertTrue(lab.poll(lambda: self.told("node0", 7).get("exit_code") == 4, 20),
                        daemon.text())

    def test_no_secret_is_kept_or_shown(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"), min_nodes=2, max_nodes=2,
                   token="0123456789abcdef" * 2,
                   request={"environment": ["PATH=/usr/bin:/bin", "SECRET=hunter2"]})
        self.assertTrue(lab.poll(lambda: self.told("node0", 7).get("meeting"), 20),
                        self.log(daemon, 7))
        record = (daemon.parts / "7/part.json").read_text()
        self.assertNotIn("0123456789abcdef", record)
        self.assertNotIn("hunter2", record)
        for pid in [daemon.holder(7), *lab.descendants(daemon.holder(7))]:
            self.assertNotIn("0123456789abcdef", lab.command_line(pid))


class Logs(DaemonTest):
    def read(self, daemon, job, **more):
        return self.head.order(daemon.name, "log", {"job": job, "node_rank": 0, **more})

    def test_a_log_is_followed_to_its_end_and_read_after_it(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"))
        text, answer = "", {"position": ""}
        while not answer.get("ended"):
            answer = self.read(daemon, 7, position=answer["position"], wait_s=20)
            text += answer["text"]
        self.assertEqual([line.rpartition(" ")[2] for line in text.splitlines()
                          if "line" in line], list("12345"))
        self.assertIn("line 5", self.read(daemon, 7, tail=1)["text"])
        daemon.kill()
        self.head.news.clear()
        daemon.start()
        self.await_up(daemon)
        self.assertEqual(self.read(daemon, 7)["text"], text)

    def test_nothing_is_read_through_a_link(self):
        daemon = self.daemon()
        secret = self.folder / "secret"
        secret.write_text("root's\n")
        secret.chmod(0o600)
        self.start(daemon, 7, shell(f"cd {daemon.parts}/7/job && mv log old; ln -s {secret} log"))
        self.await_state(daemon, 7, "ended")
        self.assertNotIn("root's", self.read(daemon, 7)["text"])

    def test_a_log_that_is_not_here_is_an_error(self):
        daemon = self.daemon()
        with self.assertRaisesRegex(small_head.Refused, "not on host node0"):
            self.read(daemon, 99)


class Users(DaemonTest):
    def test_the_head_hears_who_asks_whatever_he_says(self):
        daemon = self.daemon()
        for uid, groups, name, admin in ((ANN, (STAFF,), "ann", False), (BOB, (41200,), "bob", True),
                                         (0, (), "root", True)):
            answer = daemon.ask("jobs", {"all": True}, uid, groups)
            self.assertEqual(answer["body"]["said"], {"all": True})
            you = answer["body"]["you"]
            self.assertEqual((you["name"], you["uid"], you.get("admin", False)), (name, uid, admin))

    def test_here_is_answered_by_the_daemon_itself(self):
        daemon = self.daemon()
        here = daemon.ask("here", uid=ANN)["body"]
        self.assertEqual((here["host"], here["connected"]), ("node0", True))
        self.assertIn(f"127.0.0.1:{self.head.port}", here["head"])
        self.head.close()
        away = lambda: not daemon.ask("here", uid=ANN)["body"]["connected"]
        self.assertTrue(lab.poll(away, 15))
        refused = daemon.ask("jobs", uid=ANN)["error"]
        self.assertEqual(refused["code"], "UNAVAILABLE")
        self.assertIn(str(self.head.port), refused["message"])

    def test_only_users_questions_are_brought_to_the_head(self):
        daemon = self.daemon()
        for verb in ("renew", "host", "start", "nonsense"):
            self.assertIn("error", daemon.ask(verb, uid=ANN))
        self.assertEqual(daemon.ask("jobs", uid=41003)["error"]["code"], "PERMISSION_DENIED")

    def test_who_has_no_name_or_asks_nothing_is_cut(self):
        daemon = self.daemon()
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import small_head, socket\n"
                  "s = socket.socket(socket.AF_UNIX); s.settimeout(100); s.connect(sys.argv[2])\n"
                  "if sys.argv[3]: s.sendall(small_head.frame({'id': 1, 'ask': 'here'}))\n"
                  "if sys.argv[3]: assert small_head.read_frame(s)['error']\n"
                  "assert s.recv(1) == b''")
        for uid, asks in ((41003, "x"), (ANN, "")):
            subprocess.run([PYTHON, "-c", script, lab.HERE, daemon.socket, asks], user=uid,
                           group=uid, check=True, timeout=10 * lab.PATIENCE)

    def test_one_user_cannot_take_all_connections(self):
        daemon = self.daemon()
        hold = ("import select, socket, sys, time\n"
                "all = [socket.socket(socket.AF_UNIX) for _ in range(40)]\n"
                "[s.connect(sys.argv[1]) for s in all]\n"
                "until = time.monotonic() + 60\n"
                "while len(cut := select.select(all, [], [], 0.1)[0]) < 8:\n"
                "    assert time.monotonic() < until, len(cut)\n"
                "assert not [s for s in cut if b'too many connections of' not in s.recv(1000)]\n"
                "print(len(cut), flush=True); sys.stdin.read()")
        with subprocess.Popen([PYTHON, "-c", hold, daemon.socket], user=ANN, group=ANN,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as many:
            self.assertEqual(int(many.stdout.readline()), 8)
            self.assertIn("body", daemon.ask("here", uid=BOB))
            many.stdin.close()
        self.assertTrue(lab.poll(lambda: "body" in daemon.ask("here", uid=ANN), 5))


class Bounds(DaemonTest):
    """The limits of a part that hlaunchd.conf sets."""
    FOLDERS = "/var/lib"

    def test_each_part_has_a_tmp_of_its_own_that_goes_with_it(self):
        daemon = self.daemon(settings="private-tmp = yes\n")
        mine = pathlib.Path(tempfile.mkdtemp(prefix="hlaunchd-seen-", dir="/tmp"))
        self.addCleanup(mine.rmdir)
        go = self.folder / "go"
        look = ("echo found $(ls -A /tmp /var/tmp | tr '\\n' ' ').; stat -c 'mode %a' /tmp; "
                "echo x > /tmp/left && echo x > /var/tmp/left && mkdir /tmp/deep && ls /dev/shm > /dev/null; "
                f"while [ ! -e {go} ]; do sleep 0.05; done; ls /tmp")
        for job, user, uid in ((7, "ann", ANN), (8, "bob", BOB)):
            self.start(daemon, job, shell(look), user=user, uid=uid)
            self.await_log(daemon, job, "mode [0-7]+$")
            self.assertRegex(self.log(daemon, job), r"found /tmp:( hlaunch-agent\.\w+)? /var/tmp: \.")
            self.assertIn("mode 1777", self.log(daemon, job))
        self.assertFalse(pathlib.Path("/tmp/left").exists())
        private = daemon.parts / "7/private"
        self.assertEqual(private.stat().st_mode & 0o777, 0o700)
        daemon.kill()  # The next daemon removes the folders all the same.
        go.touch()
        gone = daemon.holder(7)
        self.assertTrue(lab.poll(lambda: (lab.fields(gone) or "Z")[0] in "ZX", 20))
        self.head.news.clear()
        daemon.start()
        self.await_up(daemon)
        for job in (7, 8):
            self.await_state(daemon, job, "ended")
            self.assertRegex(self.log(daemon, job), "left")
        empty = lambda: not [*daemon.parts.glob("*/private"), *daemon.parts.glob("gone-*")]
        self.assertTrue(lab.poll(empty, 20), list(daemon.parts.iterdir()))

    def test_a_part_over_its_memory_is_killed_and_says_so(self):
        daemon = self.daemon(settings="memory-max = 200M\n")
        eat = "x = []\nwhile True: x.append(bytes(b'x') * (8 << 20))"
        self.start(daemon, 7, [PYTHON, "-c", eat])
        told = self.await_ended(daemon, 7)
        self.assertEqual(told["exit_code"], 128 + signal.SIGKILL, self.log(daemon, 7))
        self.assertIn("for lack of memory (the cgroup's limit is 0.2 GiB)", self.log(daemon, 7))

    def test_a_part_cannot_start_more_processes_than_it_may(self):
        daemon = self.daemon(settings="tasks-max = 64\n")
        self.start(daemon, 7, shell("for i in $(seq 80); do sleep 60 & done; echo all; kill 0"))
        self.await_ended(daemon, 7)
        self.assertRegex(self.log(daemon, 7), "[Cc]annot fork|Resource temporarily")
        self.start(daemon, 8, shell("for i in $(seq 20); do sleep 0 & done; wait; echo all"))
        self.await_ended(daemon, 8)
        self.assertRegex(self.log(daemon, 8), "(?m)all$")

    def await_ended(self, daemon, job):
        """Skips the test if no group with the limit's controller can be made here."""
        over = lambda: self.told(daemon.name, job).get("state") in ("ended", "failed")
        self.assertTrue(lab.poll(over, 30), self.log(daemon, job) + daemon.text())
        told = self.told(daemon.name, job)
        if "cannot be held to" in told.get("trouble", ""):
            self.skipTest(told["trouble"])
        return told

    def test_a_folder_of_parts_that_would_not_be_seen_is_refused(self):
        daemon = Daemon(self, "node0", "private-tmp = yes\n")
        self.daemons.append(daemon)
        daemon.start("--parts", "/tmp/hlaunchd-parts")
        self.assertEqual(daemon.process.wait(10 * lab.PATIENCE), 2)
        self.assertIn("private-tmp = yes hides /tmp/hlaunchd-parts", daemon.text())


class Membership(DaemonTest):
    def test_a_host_joins_and_leaves_while_its_daemon_runs(self):
        daemon = Daemon(self, "node0")
        self.daemons.append(daemon)
        daemon.start()
        daemon.await_socket()
        self.assertIn("in no cluster", daemon.ask("here")["body"]["trouble"])
        self.assertEqual(daemon.ask("jobs")["error"]["code"], "FAILED_PRECONDITION")
        daemon.join(self.authority, self.head.port)
        self.await_up(daemon)
        facts = next(body for _, verb, body in self.head.news if verb == "host")
        self.assertEqual(facts["slots"], 4)
        (daemon.trust / "head").unlink()
        self.assertTrue(lab.poll(lambda: "node0" not in self.head.hosts, 10), daemon.text())

    def test_a_certificate_is_renewed_in_its_last_third(self):
        daemon = Daemon(self, "node0")
        self.daemons.append(daemon)
        daemon.join(self.authority, self.head.port)
        # Renewals are spread over two days after two thirds of the lifetime; those days are over
        # here.
        self.authority.sign_host("node0", before=timedelta(days=23), after=timedelta(days=7))
        daemon.write("host.pem", self.authority.read("node0.pem"))
        daemon.write("host.key", self.authority.read("node0.key"))
        self.head.replies["renew"] = self.renew
        old = (daemon.trust / "host.pem").read_text()
        daemon.start()
        self.await_up(daemon)
        renewed = lambda: (daemon.trust / "host.pem").read_text() != old
        self.assertTrue(lab.poll(renewed, 15), daemon.text())
        self.assertNotIn("PRIVATE", str(self.head.asked))
        self.assertTrue(lab.poll(lambda: "was renewed" in daemon.text(), 5), daemon.text())
        self.head.close()
        self.head.news.clear()
        self.head.listen()
        self.await_up(daemon)  # With the new certificate.

    def renew(self, message):
        self.assertIsNone(message.get("user"))
        return {"body": {"certificate": self.authority.sign_request("node0",
                                                                    message["body"]["request"]),
                         "authority": self.authority.read("authority.pem")}}

    def test_it_comes_back_to_a_head_that_was_away(self):
        daemon = self.daemon()
        self.start(daemon, 7, shell("sleep 600"))
        self.await_state(daemon, 7, "running")
        self.head.close()
        self.head.hosts.clear()
        self.head.news.clear()
        self.head.listen()
        self.await_up(daemon)
        self.assertEqual(self.told("node0", 7)["state"], "running")

    def test_two_parts_make_one_job(self):
        one, two = self.daemon("node0"), self.daemon("node1")
        script = shell("echo rank $RANK of $WORLD_SIZE")
        both = {"min_nodes": 2, "max_nodes": 2, "token": "fedcba9876543210" * 2}
        self.start(one, 7, script, **both)
        self.assertTrue(lab.poll(lambda: self.told("node0", 7).get("meeting"), 20),
                        self.log(one, 7))
        self.start(two, 7, script, **both, node_rank=1, meeting=self.told("node0", 7)["meeting"])
        for daemon, rank in ((one, 0), (two, 1)):
            self.assertEqual(self.await_state(daemon, 7, "ended")["exit_code"], 0)
            self.assertIn(f"rank {rank} of 2", self.log(daemon, 7))

    def test_a_second_daemon_does_not_take_the_socket(self):
        daemon = self.daemon()
        other = subprocess.run([self.folder / "bin/hlaunchd", "--socket", daemon.socket, "--folder",
                                daemon.trust, "--parts", daemon.parts], capture_output=True,
                               timeout=10 * lab.PATIENCE, check=False)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn(b"another hlaunchd listens", other.stderr)
        self.assertIn("body", daemon.ask("here"))


if __name__ == "__main__":
    lab.main()
