#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A node that is drained, by a user's command or by its own notice, is replaced."""

import http.server
import os
import subprocess
import tempfile
import threading
import unittest

import jobs
import lab


class Drained(jobs.JobTest):
    count = 3

    def job(self, nodes):
        # A job of so many nodes has a lease of 15 s, so the spare may be silent for a while and
        # still be one.
        return [self.nodes[i].start(
            lab.HLAUNCH, "--nnodes", 2, "--spares", 3000, "--rdzv-endpoint", "node0:29400",
            "--drain-file", self.nodes[i].folder / "notice", jobs.WORKER, "env", "await",
            self.lab.folder / "end", env={"PYTHON_EXEC": jobs.PYTHON}) for i in nodes]

    def drain(self, node, *options):
        return self.nodes[0].run(lab.HLAUNCH, "drain", node, "--rdzv-endpoint", "node0:29400",
                                 *options)

    def assert_goes_on_without(self, drained, others, seen, reason):
        self.assertEqual(drained.wait(20), jobs.OK, str(drained))
        self.assert_said(drained, f"this node left: it is drained: {reason}")
        facts = self.wait_for_workers(others, seen)
        self.assertEqual({f["TORCHELASTIC_RESTART_COUNT"] for f in facts}, {"0"})
        (self.lab.folder / "end").touch()
        self.assert_done(others, jobs.OK, 20)

    def test_a_spare_takes_the_place_of_a_node_that_a_person_drains(self):
        runs = self.job((0, 1))
        self.wait_for_workers(runs, 2)
        runs += self.job((2,))
        runs[2].wait_for("stands by as a spare")
        unknown = self.drain("node7")
        self.assertEqual(unknown.code, jobs.REFUSED, str(unknown))
        self.assertRegex(unknown.err, r"no node node7; it has node0 \(node rank 0")
        host = self.drain("node0")
        self.assertEqual(host.code, jobs.REFUSED, str(host))
        self.assertIn("node0 has the job's rendezvous", host.err)
        done = self.drain("node1", "--reason", "ECC errors")
        self.assertEqual(done.code, jobs.OK, str(done))
        self.assertIn("round 1 ends, and the next begins without node1", done.out)
        self.assert_goes_on_without(runs[1], [runs[0], runs[2]], 3, "ECC errors")
        self.assert_said(runs[0], "node1 is drained: ECC errors")

    def test_a_node_with_a_notice_stays_until_another_comes(self):
        runs = self.job((0, 1))
        self.wait_for_workers(runs, 2)
        (self.nodes[1].folder / "notice").write_text("the host goes down\n")
        for run in runs:
            run.wait_for("node1 is drained: the host goes down; nobody can take its place")
        runs += self.job((2,))
        self.assert_goes_on_without(runs[1], [runs[0], runs[2]], 3, "the host goes down")


class Imds(http.server.BaseHTTPRequestHandler):
    """AWS's metadata service: it demands a token, and has a notice from the second request on."""

    asked = 0

    def reply(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self):
        self.reply(200, "the token")

    def do_GET(self):
        if self.headers.get("X-aws-ec2-metadata-token") != "the token":
            return self.reply(401, "")
        Imds.asked += 1
        return self.reply(*((200, '{"action": "terminate"}') if Imds.asked > 1 else (404, "")))

    def log_message(self, *words):
        pass


class SpotNotice(unittest.TestCase):
    """deploy/examples/spot_notice.sh."""

    def test_it_writes_the_file_once_there_is_a_notice(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Imds) as server, \
                tempfile.TemporaryDirectory() as folder:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            file = os.path.join(folder, "notice")
            subprocess.run([lab.ROOT / "deploy/examples/spot_notice.sh", file], check=True,
                           timeout=60 * lab.PATIENCE,
                           env={**os.environ, "EVERY": "0.1",
                                "METADATA": f"http://127.0.0.1:{server.server_port}"})
            with open(file, encoding="utf-8") as notice:
                self.assertEqual(notice.read(),
                                 'the cloud takes this machine: {"action": "terminate"}\n')
            server.shutdown()
        self.assertGreaterEqual(Imds.asked, 2)  # More if an answer came too late.


if __name__ == "__main__":
    lab.main()
