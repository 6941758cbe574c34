#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The units of deploy/systemd under a real systemd, which starts, watches, kills, restarts and
stops them. Their output is in its journal, with fields.
"""

import json
import os
import pathlib
import re
import secrets
import shutil
import unittest

import jobs
import lab
import systemd_host

RENDEZVOUS = "hlaunch-rendezvous.service"
WATCHDOG = 8  # Seconds; a healthy process that waits for a processor is not killed.
# Prints who it is, then works until SIGTERM, after which it takes $1 seconds to end.
WORKER = """#!/bin/sh
trap 'sleep $1; echo drained; exit 0' TERM
echo "worker $RANK of $WORLD_SIZE is $$ notify '$NOTIFY_SOCKET' journal '$JOURNAL_STREAM'"
echo "a complaint" >&2
while :; do sleep 0.1; done
"""
# Prints its uid and home, and works until there is a file named end in its home.
VICTIM = """#!/bin/sh
[ . -ef "$HOME" ] && echo mine >"$HOME/secret" && echo mine >/tmp/secret || exit
echo "victim is $$ uid $(id -u) home $HOME"
until [ -e "$HOME/end" ]; do sleep 0.1; done
"""
# Attacks the process $1, whose home is $2, in every way it can.
EVIL = """#!/usr/bin/python3
import ctypes, errno, os, signal, sys
pid, home = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
def attach():
    if libc.ptrace(16, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
def put(name):
    open(name, "w").close()
for what, attempt in {
        "environ": lambda: open(f"/proc/{pid}/environ").read(),
        "memory": lambda: open(f"/proc/{pid}/mem", "rb").read(1),
        "kill": lambda: os.kill(pid, signal.SIGKILL),
        "ptrace": attach,
        "home": lambda: open(home + "/secret").read(),
        "end": lambda: put(home + "/end"),
        "tmp": lambda: open("/tmp/secret").read(),
        "its tmp": lambda: open(f"/proc/{pid}/root/tmp/secret").read(),
        "list": lambda: [] if str(pid) not in os.listdir("/proc") else ["there"]}.items():
    try:
        print(f"evil tried {what}: got {attempt()!r:.40}", flush=True)
    except OSError as error:
        print(f"evil tried {what}: {errno.errorcode[error.errno]}", flush=True)
"""


def job(drain=0, **options):
    return json.dumps({**options, "command": ["/srv/worker.sh", str(drain)]})


def two_nodes(rank):
    return job(nnodes=2, rdzv_endpoint="127.0.0.1", rdzv_conf="is_host=0", rdzv_id="pair",
               node_rank=rank, nproc_per_node=2)


FILES = {
    "/srv/worker.sh": WORKER,
    "/etc/hlaunch/left.json": two_nodes(0),
    "/etc/hlaunch/right.json": two_nodes(1),
    "/etc/hlaunch/alone.json": job(rdzv_id="alone", nproc_per_node=2),
    "/etc/hlaunch/slow.json": job(15, rdzv_id="slow", shutdown_timeout=60),
    "/etc/hlaunch/wrong.json": '{"nnodes": 2, "nproc": 3}',
    "/etc/systemd/system/hlaunch@alone.service.d/test.conf":
        f"[Service]\nWatchdogSec={WATCHDOG}\nRestartSec=100ms\n",
    # Less than the worker takes to end, and enough for hlaunch to ask for more time.
    "/etc/systemd/system/hlaunch@slow.service.d/test.conf": "[Service]\nTimeoutStopSec=12\n",
    "/etc/systemd/system/hlaunch-rendezvous.service.d/test.conf":
        f"[Service]\nWatchdogSec={WATCHDOG}\nRestartSec=100ms\nLoadCredential=token:/etc/hlaunch/token\n"
        "Environment=\"OPTIONS=--token-file %d/token\"\n",
    "/etc/hlaunch/stranger.json": job(nnodes=2, rdzv_endpoint="127.0.0.1", rdzv_conf="is_host=0",
                                      rdzv_id="pair", token_file="/etc/hlaunch/another-token"),
    "/etc/systemd/system/hlaunch@stranger.service.d/test.conf": "[Service]\nRestart=no\n",
    "/etc/hlaunch/another-token": secrets.token_hex(32) + "\n",
    "/etc/hlaunch/token": lab.TOKEN + "\n",
    "/srv/victim.sh": VICTIM,
    "/srv/evil.py": EVIL,
    **{f"/etc/hlaunch/{name}.json": json.dumps({"rdzv_id": name, "command": ["/srv/victim.sh"]})
       for name in ("victim", "of-alice", "x" * 23, "x" * 24)},
    "/etc/passwd": pathlib.Path("/etc/passwd").read_text(encoding="utf-8")
        + "alice:x:1234:1234::/home/alice:/bin/sh\n",
    "/etc/group": pathlib.Path("/etc/group").read_text(encoding="utf-8") + "alice:x:1234:\n",
    "/home/alice/.profile": "",
    "/etc/systemd/system/hlaunch@of-alice.service.d/test.conf":
        "[Service]\nDynamicUser=no\nUser=alice\nWorkingDirectory=/home/alice\n"
        "Environment=HOME=/home/alice\nProtectHome=no\nReadWritePaths=/home/alice\n"
        "SupplementaryGroups=video\n",
    "/etc/systemd/system/hlaunch@.service.d/token.conf":
        "[Service]\nLoadCredential=token:/etc/hlaunch/token\n"
        "Environment=HLAUNCH_TOKEN_FILE=%d/token\n",
}


class Systemd(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not shutil.which("systemd-nspawn"):
            raise unittest.SkipTest("needs root and systemd-nspawn (Debian: systemd-container)")
        cls.host = systemd_host.Host(FILES)
        cls.addClassCleanup(cls.host.close)

    def workers(self, job_id, count, after=0):
        """The journal entries of the last `count` workers of a job that printed who they are."""
        match = f"HLAUNCH_JOB_ID={job_id}"
        return self.host.await_message(" is ", match, "HLAUNCH_STREAM=stdout",
                                       count=after + count)[-count:]

    def pids(self, job_id, count, after=0):
        return [int(re.search(r" is (\d+) ", entry["MESSAGE"])[1])
                for entry in self.workers(job_id, count, after)]

    def alive(self, pid):
        return self.host.run("kill", "-0", pid, check=False).returncode == 0

    def test_the_units_are_as_systemd_wants_them_and_closed(self):
        for unit, most in ((RENDEZVOUS, 15), ("hlaunch@alone.service", 47)):
            with self.subTest(unit):
                checked = self.host.run("systemd-analyze", "verify", "--man=no",
                                        "--recursive-errors=no", unit)
                self.assertEqual(checked.stderr, "")
                for offline in ("yes", "no"):
                    self.host.run("systemd-analyze", "security", f"--offline={offline}",
                                  f"--threshold={most}", unit)

    def test_a_job_of_two_nodes_and_its_rendezvous(self):
        host = self.host
        host.systemctl("start", RENDEZVOUS)
        # The unit is up though the other node is not there, so starting both in turn does not
        # block.
        host.systemctl("start", "hlaunch@left")
        host.await_property("hlaunch@left", "StatusText", lambda text: "1 of 2 nodes" in text)
        host.systemctl("start", "hlaunch@right")
        pids = self.pids("pair", 4)
        host.await_property("hlaunch@left", "StatusText",
                            lambda text: text == "round 1 runs: ranks 0 to 1 of 4")
        self.assert_the_journal_knows_who_spoke()
        for what, words in (("restart", ("restart", RENDEZVOUS)),
                            ("kill", ("kill", "-s", "KILL", "--kill-who=main", RENDEZVOUS)),
                            ("watchdog", ("kill", "-s", "STOP", "--kill-who=main", RENDEZVOUS)),
                            ("reload", ("daemon-reload",)), ("reexec", ("daemon-reexec",))):
            with self.subTest(what):
                before = host.show(RENDEZVOUS, "MainPID")
                host.systemctl(*words)
                if RENDEZVOUS in words:
                    host.await_property(RENDEZVOUS, "MainPID",
                                        lambda pid, before=before: pid not in (before, "0"))
                host.await_property(RENDEZVOUS, "ActiveState", lambda state: state == "active")
                host.await_property(RENDEZVOUS, "StatusText", lambda text: text == "1 job goes on")
                self.assertTrue(all(map(self.alive, pids)), host.tail())
        for unit, ranks in (("hlaunch@left", "0 to 1"), ("hlaunch@right", "2 to 3")):
            host.await_property(unit, "StatusText", lambda text, ranks=ranks:
                                text == f"round 1 runs: ranks {ranks} of 4")
        host.await_message("Watchdog timeout", f"UNIT={RENDEZVOUS}")
        status = host.run("env", f"HLAUNCH_TOKEN={lab.OTHER_TOKEN}", "hlaunch", "status",
                          "--rdzv-endpoint", "127.0.0.1", check=False)
        self.assertEqual(status.returncode, jobs.REFUSED, status.stderr)
        self.assertEqual(len(host.journal("HLAUNCH_JOB_ID=pair", "HLAUNCH_STREAM=stdout")), 4)
        # Stopping a node is no failure, and the job goes on once the node is back.
        for turn, (stopped, other) in enumerate((("left", "right"), ("right", "left")), 1):
            with self.subTest(stopped=stopped):
                self.stop_one_node(f"hlaunch@{stopped}", f"hlaunch@{other}")
                drained = host.await_message("drained", "HLAUNCH_JOB_ID=pair", count=4 * turn)
                self.assertEqual(len(drained), 4 * turn)
                host.systemctl("start", f"hlaunch@{stopped}")
                self.pids("pair", 4, 4 * turn)
        for unit in ("hlaunch@left", "hlaunch@right"):
            host.systemctl("stop", unit)
            host.await_property(unit, "ActiveState", lambda state: state in ("inactive", "failed"))
        host.systemctl("stop", RENDEZVOUS)
        self.assertEqual(host.show(RENDEZVOUS, "Result"), "success", host.tail())

    def stop_one_node(self, unit, other):
        """Stops one node. The other one reports it, and its restarted unit waits for the first."""
        host = self.host
        before = int(host.show(other, "NRestarts"))
        host.systemctl("stop", unit)
        self.assertEqual(host.show(unit, "ActiveState"), "inactive", host.tail())
        host.await_message("Deactivated successfully", f"UNIT={unit}.service")
        host.await_property(other, "NRestarts", lambda n: n == str(before + 1))
        host.await_property(other, "StatusText", lambda text: "1 of 2 nodes" in text)
        host.await_message(f"status={jobs.NODE_STOPPED}/n/a", f"UNIT={other}.service")
        host.await_message("job stopped: host0 was stopped by SIGTERM",
                           f"_SYSTEMD_UNIT={other}.service")

    def assert_the_journal_knows_who_spoke(self):
        host = self.host
        for entry in self.workers("pair", 4):
            rank = re.search(r"worker (\d)", entry["MESSAGE"])[1]
            self.assertEqual(
                [entry[name] for name in ("HLAUNCH_RANK", "HLAUNCH_LOCAL_RANK", "HLAUNCH_ROUND",
                                          "PRIORITY", "SYSLOG_IDENTIFIER")],
                [rank, str(int(rank) % 2), "1", "6", "hlaunch"])
            side = "left" if rank in "01" else "right"
            self.assertEqual(entry["_SYSTEMD_UNIT"], f"hlaunch@{side}.service")
            self.assertIn("notify '' journal ''", entry["MESSAGE"])
        complaints = host.await_message("complaint", "HLAUNCH_STREAM=stderr", "HLAUNCH_RANK=3")
        self.assertEqual([entry["MESSAGE"] for entry in complaints], ["[3] a complaint"])
        own = host.await_message("waiting ", "HLAUNCH_JOB_ID=pair", "_SYSTEMD_UNIT=hlaunch@left.service")
        self.assertEqual(own[0]["PRIORITY"], "6")
        self.assertNotIn("HLAUNCH_RANK", own[0])

    def test_an_agent_that_hangs_or_is_killed_is_restarted(self):
        host, unit = self.host, "hlaunch@alone"
        host.systemctl("start", unit)
        for restarts, (signal, wanted) in enumerate((("STOP", "watchdog"), ("KILL", "exit-code"))):
            with self.subTest(signal):
                before = self.pids("alone", 2, 2 * restarts)
                keeper = host.show(unit, "MainPID")
                agent = host.run("pgrep", "-P", keeper).stdout.strip()
                host.run("kill", f"-{signal}", agent)
                host.await_property(unit, "NRestarts", lambda n: n == str(restarts + 1))
                host.await_property(unit, "ActiveState", lambda state: state == "active")
                self.pids("alone", 2, 2 * restarts + 2)
                self.assertFalse(any(map(self.alive, before)), host.tail())
                host.await_message(f"Failed with result '{wanted}'", f"UNIT={unit}.service")
        host.systemctl("stop", unit)
        self.assertEqual(host.show(unit, "Result"), "success", host.tail())

    def test_a_stop_has_the_workers_grace_even_beyond_the_units_limit(self):
        host, unit = self.host, "hlaunch@slow"
        host.systemctl("start", unit)
        self.pids("slow", 1)
        host.systemctl("stop", unit)
        host.await_message("drained", "HLAUNCH_JOB_ID=slow")
        self.assertEqual(host.show(unit, "Result"), "success", host.tail())

    def test_systemd_gives_hlaunchs_own_exit_codes_no_name_of_its_own(self):
        rows = self.host.run("systemd-analyze", "exit-status",
                             *jobs.OWN_CODES).stdout.splitlines()[1:]
        self.assertEqual([row.split() for row in rows],
                         [["-", str(code), "-"] for code in jobs.OWN_CODES])
        self.host.systemctl("start", RENDEZVOUS)
        unit = "hlaunch@stranger"
        self.host.systemctl("start", unit, check=False)
        self.host.await_property(unit, "ExecMainStatus", lambda code: code == str(jobs.REFUSED))
        said = self.host.run("systemctl", "status", "--full", "--lines=0", unit, check=False).stdout
        self.assertRegex(said, fr"code=exited, status={jobs.REFUSED}(/n/a)?\)")
        self.host.systemctl("stop", unit, RENDEZVOUS)

    def start_victim(self, name):
        """Returns its worker's pid, uid and home, which is also the working directory."""
        self.host.systemctl("start", f"hlaunch@{name}")
        said = self.host.await_message("victim is ", f"_SYSTEMD_UNIT=hlaunch@{name}.service")
        pid, uid, home = re.fullmatch(r"victim is (\d+) uid (\d+) home (\S+)",
                                      said[-1]["MESSAGE"]).groups()
        return int(pid), int(uid), home

    def end_victim(self, name, home):
        self.host.run("touch", f"{home}/end")
        self.host.await_property(f"hlaunch@{name}", "ActiveState", lambda state: state == "inactive")
        self.assertEqual(self.host.show(f"hlaunch@{name}", "Result"), "success", self.host.tail())

    def test_a_job_can_do_nothing_to_another_one(self):
        host = self.host
        pid, uid, home = self.start_victim("victim")
        self.assertEqual(home, "/var/lib/hlaunch/victim")
        host.run("sh", "-c", 'echo "$1" >/etc/hlaunch/evil.json', "sh", json.dumps(
            {"rdzv_id": "evil", "command": ["/srv/evil.py", str(pid), home]}))
        host.systemctl("start", "hlaunch@evil")
        tries = 9
        said = host.await_message("evil tried ", "_SYSTEMD_UNIT=hlaunch@evil.service", count=tries)
        came_to = dict(re.fullmatch(r"evil tried (.*): (.*)", entry["MESSAGE"]).groups()
                       for entry in said)
        self.assertEqual(came_to, {
            "environ": "ENOENT", "memory": "ENOENT", "kill": "EPERM", "ptrace": "EPERM",
            "home": "ENOENT", "end": "ENOENT", "tmp": "ENOENT", "its tmp": "ENOENT",
            "list": "got []"})
        host.await_property("hlaunch@evil", "ActiveState", lambda state: state == "inactive")
        evil = {int(entry["_UID"]) for entry in
                host.journal("_SYSTEMD_UNIT=hlaunch@evil.service")}
        self.assertEqual(len(evil), 1)
        self.assertNotIn(uid, evil)
        self.assertTrue(self.alive(pid), host.tail())
        self.end_victim("victim", home)

    def test_a_job_runs_as_the_user_that_the_admin_names(self):
        host = self.host
        host.run("chown", "-R", "alice:alice", "/home/alice")
        pid, uid, home = self.start_victim("of-alice")
        self.assertEqual((uid, home), (1234, "/home/alice"))
        self.assertIn("Groups:\t44", host.run("cat", f"/proc/{pid}/status").stdout)
        self.end_victim("of-alice", home)

    def test_a_name_that_is_too_long_for_a_user_is_refused(self):
        _, _, home = self.start_victim("x" * 23)
        self.end_victim("x" * 23, home)
        long = "hlaunch@" + "x" * 24
        self.assertNotEqual(self.host.systemctl("start", long, check=False).returncode, 0)
        self.host.await_message("Failed with result 'resources'", f"UNIT={long}.service")
        self.host.systemctl("stop", long)

    def test_a_wrong_configuration_fails_the_start_and_is_not_tried_again(self):
        host, unit = self.host, "hlaunch@wrong"
        self.assertNotEqual(host.systemctl("start", unit, check=False).returncode, 0)
        self.assertEqual([host.show(unit, name) for name in ("ExecMainStatus", "NRestarts")],
                         ["2", "0"])
        said = host.await_message("/etc/hlaunch/wrong.json: nproc: unknown key",
                                  f"_SYSTEMD_UNIT={unit}.service")
        self.assertEqual(said[0]["PRIORITY"], "3")


if __name__ == "__main__":
    lab.main()
