#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The built `hlaunch` with a small hlaunchd that knows one job: what a user types and sees.

Usage: words_test.py BUILD_FOLDER
"""

import json
import os
import pathlib
import secrets
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HLAUNCH = pathlib.Path(sys.argv[1]).resolve() / "bin/hlaunch"
PATIENCE = 60
TIME = "2026-11-25T16:41:07.123Z"


class Daemon:
    """Answers like hlaunchd; `job` is the cluster's only job. Tests change its data."""

    def __init__(self, path):
        self.here = {"version": "1", "host": "node0", "head": "node0:29400", "connected": True, "trouble": ""}
        self.job = {"number": 17, "version": 1, "user": "anna", "name": "train.py", "state": "waiting",
                    "why": "needs 2 nodes; 1 is free", "min_nodes": 2, "max_nodes": 2, "workers": 1,
                    "parts": [], "submitted_ms": 1764000000000}
        self.logs = {0: "", 1: ""}
        self.meeting = {"endpoint": "", "token": ""}
        self.hosts = [{"name": "node0", "state": "free", "version": "1", "slots": 4, "slots_free": 4}]
        self.asked = []
        self.changed = threading.Condition()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while head := stream.read(4):
                question = json.loads(stream.read(struct.unpack(">I", head)[0]))
                with self.changed:
                    self.asked.append((question["ask"], question["body"]))
                    try:
                        answer = {"body": getattr(self, "answer_" + question["ask"])(question["body"])}
                    except PermissionError as error:
                        answer = {"error": {"code": "PERMISSION_DENIED", "message": str(error)}}
                    except KeyError as error:
                        answer = {"error": {"code": "NOT_FOUND", "message": str(error)}}
                    self.changed.notify_all()
                frame = json.dumps({"id": question["id"], **answer}).encode()
                try:
                    connection.sendall(struct.pack(">I", len(frame)) + frame)
                except OSError:
                    return

    def answer_here(self, _):
        return self.here

    def answer_submit(self, _):
        return {"job": 17}

    def answer_jobs(self, _):
        return {"jobs": [self.job]}

    def answer_job(self, body):
        if body["job"] != 17:
            raise KeyError("there is no such job")
        self.changed.wait_for(lambda: self.job["version"] != body.get("seen", 0), body.get("wait_s", 0))
        return self.job

    def answer_nodes(self, _):
        return {"hosts": self.hosts, "head": self.here["head"]}

    def answer_log(self, body):
        log = self.logs[body["node_rank"]].encode()
        start = int(body.get("position") or 0)
        self.changed.wait_for(lambda: len(self.logs[body["node_rank"]]) > start or self.job["state"] == "ended",
                              body.get("wait_s", 0))
        log = self.logs[body["node_rank"]].encode()
        return {"text": log[start:].decode(), "position": str(len(log)), "ended": self.job["state"] == "ended"}

    def answer_meeting(self, _):
        return self.meeting

    def answer_stop(self, _):
        return {}

    answer_kill = answer_drain = answer_undrain = answer_stop

    def say(self, rank, text, stream="stdout"):
        with self.changed:
            self.logs[rank] += f"{TIME} {stream} F {text}\n"
            self.changed.notify_all()

    def change(self, **fields):
        with self.changed:
            self.job = {**self.job, **fields, "version": self.job["version"] + 1}
            self.changed.notify_all()

    def run(self):
        self.change(state="running", why="", parts=[{"node_rank": rank, "host": f"node{rank}", "state": "running"}
                                                    for rank in (0, 1)])

    def await_question(self, verb, count=1):
        with self.changed:
            found = self.changed.wait_for(lambda: [ask for ask, _ in self.asked].count(verb) >= count, PATIENCE)
        if not found:
            raise AssertionError(f"nobody asked {verb}: {self.asked}")

    def body_of(self, verb):
        return [body for ask, body in self.asked if ask == verb][-1]


class Words(unittest.TestCase):
    """Each command, from its command line to its exit code."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.daemon = Daemon(f"{self.folder}/socket")
        self.addCleanup(self.daemon.listener.close)
        self.env = {"HLAUNCHD_SOCKET": f"{self.folder}/socket", "PATH": os.environ["PATH"],
                    "HOME": self.folder, "NCCL_DEBUG": "INFO"}

    def start(self, *words):
        process = subprocess.Popen([HLAUNCH, *words], env=self.env, cwd=self.folder, encoding="utf-8",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def run_words(self, *words):
        return self.end(self.start(*words))

    def test_a_job_is_handed_over_and_followed(self):
        job = self.start("--nnodes", "2", "--max-restarts", "3", "train.py", "--lr", "1")
        self.daemon.await_question("job")
        self.daemon.run()
        self.daemon.say(0, "[0] hello")
        self.daemon.say(1, "[1] oops", "stderr")
        self.daemon.await_question("log", 4)
        self.daemon.change(state="ended", exit_code=3, why="rank 1 failed")
        code, out, err = self.end(job)
        self.assertEqual((code, out), (3, "[0] hello\n"), err)
        self.assertIn("job 17 on this cluster; --cluster none starts it here", err)
        self.assertIn("job 17 waits: needs 2 nodes; 1 is free", err)
        self.assertIn("\n[1] oops\n", err)
        request = self.daemon.body_of("submit")
        self.assertEqual((request["min_nodes"], request["options"], request["script"]),
                         (2, ["--max-restarts", "3"], ["train.py", "--lr", "1"]))
        self.assertIn("NCCL_DEBUG=INFO", request["environment"])
        self.assertEqual(request["directory"], self.folder)

    def test_ctrl_c_stops_and_the_second_kills(self):
        job = self.start("--cluster", "hlaunchd", "train.py")
        self.daemon.await_question("job")
        self.daemon.run()
        job.send_signal(signal.SIGINT)
        self.daemon.await_question("stop")
        job.send_signal(signal.SIGINT)
        self.daemon.await_question("kill")
        self.daemon.change(state="ended", why="killed by anna")
        code, _, err = self.end(job)
        self.assertEqual(code, 130, err)
        self.assertIn("stopping job 17; once more kills it", err)
        self.assertEqual(self.daemon.body_of("stop")["job"], 17)

    def test_a_detached_job_that_waits_is_left_at_once(self):
        code, out, err = self.run_words("--nnodes", "2", "--detach", "train.py")
        self.assertEqual((code, out), (0, "17\n"), err)
        self.assertIn("waits: needs 2 nodes", err)
        self.assertIn("hlaunch attach 17", err)

    def test_a_head_that_is_away_starts_nothing_here(self):
        self.daemon.here.update(connected=False, trouble="refused since 16:41:07")
        code, _, err = self.run_words("--nnodes", "2", "train.py")
        self.assertEqual(code, 194)
        self.assertIn("refused since 16:41:07", err)
        self.assertIn("--cluster none", err)
        self.assertNotIn("submit", [ask for ask, _ in self.daemon.asked])

    def test_a_daemon_that_does_not_run_starts_nothing_here(self):
        # The socket's file stays. close() alone would leave the socket open in the thread that is
        # in accept.
        self.daemon.listener.shutdown(socket.SHUT_RDWR)
        self.daemon.listener.close()
        for words in (("--nnodes", "2", "/bin/true"), ("ps",), ("nodes",), ("logs", "17"), ("stop", "17"),
                      ("status", "17"), ("drain", "node0", "--reason", "ECC")):
            code, out, err = self.run_words(*words)
            self.assertEqual((code, out), (194, ""), err)
            self.assertIn(f"hlaunchd of this host does not run: nobody listens at {self.folder}/socket; "
                          "see systemctl status hlaunchd", err)
        code, out, _ = self.run_words("cluster", "status")
        self.assertEqual(code, 194)
        self.assertIn("hlaunchd of this host does not run", out)
        self.assertEqual(self.run_words("cluster", "token")[0], 194)
        os.unlink(f"{self.folder}/socket")
        self.assert_without_cluster("ps")

    def assert_without_cluster(self, word):
        """It shows jobs of this host alone; other tests may run some."""
        code, out, err = self.run_words(word)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, "no job of yours runs on this host|JOB +STATE +STARTED +COMMAND")
        self.assertNotIn("anna", out)

    def test_who_has_no_right_to_it(self):
        self.daemon.answer_token = self.daemon.answer_throw_out = self.refuse
        for words in (("token",), ("throw-out", "node1")):
            code, _, err = self.run_words("cluster", *words)
            self.assertEqual(code, 2, err)
            self.assertIn("for administrators", err)

    @staticmethod
    def refuse(_):
        raise PermissionError("this is for administrators")

    def test_one_node_stays_here(self):
        self.assertEqual(self.run_words("/bin/true")[0], 0)
        self.assertEqual(self.daemon.asked, [])

    def test_ps(self):
        code, out, _ = self.run_words("ps", "-a")
        self.assertEqual(code, 0)
        self.assertIn("anna", out)
        self.assertIn("    needs 2 nodes; 1 is free\n", out)
        self.assertEqual(self.daemon.body_of("jobs"), {"all": True, "ended": False})
        self.assertEqual(json.loads(self.run_words("ps", "--json", "17")[1])["number"], 17)
        self.assertEqual(self.run_words("ps", "18")[0], 196)
        self.daemon.here["head"] = ""
        self.assert_without_cluster("ps")

    def test_nodes(self):
        code, out, _ = self.run_words("nodes")
        self.assertEqual(code, 0)
        self.assertIn("node0", out)
        self.assertEqual(json.loads(self.run_words("nodes", "--json")[1])["head"], "node0:29400")

    def test_logs(self):
        self.daemon.run()
        for second, rank, text in ((3, 1, "[1] c"), (1, 0, "[0] a"), (2, 1, "[1] b")):
            self.daemon.logs[rank] += f"2026-11-25T16:41:0{second}.000Z stdout F {text}\n"
        self.daemon.logs[1] = "".join(sorted(self.daemon.logs[1].splitlines(keepends=True)))
        self.assertEqual(self.run_words("logs", "17")[:2], (0, "[0] a\n[1] b\n[1] c\n"))
        self.assertEqual(self.run_words("logs", "17", "--node", "node1")[1], "[1] b\n[1] c\n")
        self.assertEqual(self.run_words("logs", "17", "--rank", "0")[1], "[0] a\n")
        self.assertEqual(self.run_words("logs", "17", "--since", "2026-11-25T16:41:03")[1], "[1] c\n")
        self.assertEqual(self.run_words("logs", "17", "--tail", "2")[1], "[1] b\n[1] c\n")
        self.assertEqual(self.run_words("logs", "17", "--node", "node9")[0], 196)
        follower = self.start("logs", "-f", "17")
        self.daemon.await_question("log", 12)
        self.daemon.change(state="ended", exit_code=1)
        self.assertEqual(self.end(follower)[0], 0)

    def test_logs_of_a_job_that_waits(self):
        code, out, err = self.run_words("logs", "17")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("job 17 has not started: needs 2 nodes; 1 is free", err)

    def test_attach_is_left_by_ctrl_c(self):
        self.daemon.run()
        self.daemon.say(0, "[0] hello")
        attached = self.start("attach", "17")
        self.assertEqual(attached.stdout.readline(), "[0] hello\n")
        attached.send_signal(signal.SIGINT)
        code, _, err = self.end(attached)
        self.assertEqual(code, 130)
        self.assertIn("job 17 goes on", err)
        self.assertNotIn("stop", [ask for ask, _ in self.daemon.asked])

    def test_attach_and_stop_are_left_with_the_code_of_the_signal(self):
        self.daemon.run()
        stop = self.start("stop", "17")
        self.daemon.await_question("job", 2)  # It handles signals before it asks for the job's end.
        stop.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(stop)[0], 128 + signal.SIGTERM)
        self.daemon.say(0, "[0] hello")
        attached = self.start("attach", "17")
        self.assertEqual(attached.stdout.readline(), "[0] hello\n")
        attached.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(attached)[0], 128 + signal.SIGTERM)

    def test_stop_and_kill_wait_for_the_end(self):
        self.daemon.run()
        for word in ("stop", "kill"):
            process = self.start(word, "17")
            self.daemon.await_question(word)
            self.daemon.change(state="ended", exit_code=143)
            code, out, _ = self.end(process)
            self.assertEqual(code, 0)
            self.assertIn("train.py: ended 143", out)
            self.daemon.change(state="running", exit_code=None)
            del self.daemon.job["exit_code"]

    def test_status_of_a_job_that_meets_nobody(self):
        code, out, _ = self.run_words("status", "17")
        self.assertEqual(code, 0)
        self.assertIn("job 17 of anna, train.py: waiting\n", out)
        code, _, err = self.run_words("why", "17")
        self.assertEqual(code, 196)
        self.assertIn("no nodes to ask", err)

    @unittest.skipUnless((HLAUNCH.parent / "hlaunch-agent").exists(), "there is no hlaunch-agent")
    def test_status_asks_where_the_job_meets(self):
        self.daemon.run()
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            self.daemon.meeting = {"endpoint": f"127.0.0.1:{nobody.getsockname()[1]}", "token": secrets.token_urlsafe(32)}
            code, _, err = self.run_words("status", "17")
        self.assertEqual(code, 194, err)
        self.assertIn("127.0.0.1", err)

    def test_drain(self):
        code, out, _ = self.run_words("drain", "node0", "--reason", "ECC", "--deadline", "60")
        self.assertEqual(code, 0)
        self.assertIn("host node0 takes no new jobs; jobs of several nodes that are there are asked to move", out)
        self.assertEqual(self.daemon.body_of("drain"), {"host": "node0", "reason": "ECC", "evict_s": 60})
        self.assertEqual(self.run_words("undrain", "node0")[1], "host node0 takes jobs\n")
        self.assertEqual(self.run_words("drain", "node0")[0], 2)

    def test_top(self):
        top = self.start("top", "-a")
        shown = ""
        deadline = time.monotonic() + PATIENCE
        while "needs 2 nodes" not in shown or "node0" not in shown.split("HOST")[-1]:
            self.assertLess(time.monotonic(), deadline, shown)
            shown += top.stdout.readline()
        top.send_signal(signal.SIGINT)
        self.assertEqual(self.end(top)[0], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
