#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""--on-event: a command or a URL receives the events of a job."""

import json

import jobs
import lab

# Prints each post but the first on its own line; the first one gets an error (503).
SERVER = """
import http.server, sys
class Hook(http.server.BaseHTTPRequestHandler):
    posts = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        Hook.posts += 1
        if Hook.posts > 1:
            print('POSTED ' + body.strip(), flush=True)
        self.send_response(204 if Hook.posts > 1 else 503)
        self.end_headers()
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(('0.0.0.0', 0), Hook)
print('PORT', server.server_port, flush=True)
server.serve_forever()
"""


class OnEvent(jobs.JobTest):
    """Two nodes with one worker each."""

    def assert_story(self, told):
        names = [event["event"] for event in jobs.story(told)]
        self.assertEqual(names, ["joined", "round_started", "round_stopped", "restarted",
                                 "round_started", "round_stopped", "finished"], told)
        stopped = [event for event in told if event["event"] == "round_stopped"]
        self.assertIn("rank 1", stopped[0]["reason"])
        self.assertIn("exited with 7", stopped[0]["reason"])
        self.assertEqual({event["host"] for event in told}, {"node0"})
        self.assertEqual(told[-1]["exit_code"], 0)

    def wait_for_rounds(self, told, count):
        """Waits until the command has read that `count` rounds have started. What is left at the
        job's end has to be read within 10 s."""
        def read():
            return told.exists() and \
                told.read_text(encoding="utf-8").count('"event":"round_started"') >= count
        self.assertTrue(lab.poll(read, 20), self.told(self.lab.runs))

    def test_a_command_reads_what_becomes_of_the_job(self):
        told, end = self.lab.folder / "told", self.lab.folder / "end"
        wait = 'test "$TORCHELASTIC_RESTART_COUNT" = 0 || ' \
               f'until test -e "{end}"; do sleep 0.1; done; '
        runs = self.start("--no-python", "sh", "-c", wait + jobs.fails_once(self.lab.folder, 1, 2),
                          options=["--max-restarts", 1, "--on-event", f"tee -a '{told}'"])
        self.wait_for_rounds(told, 2)
        end.touch()
        self.assert_done(runs, jobs.OK, 60)
        lines = told.read_text(encoding="utf-8").splitlines()
        self.assert_story([json.loads(line) for line in lines])
        self.assertIn('"event":"finished"', runs[0].err)
        self.assertNotIn('"event"', runs[0].out, "what it prints is no worker's output")

    def test_events_are_posted_to_a_url(self):
        server = self.nodes[1].start(jobs.PYTHON, "-c", SERVER)
        port = server.wait_for(r"PORT (\d+)").group(1)
        runs = self.start("--no-python", "sh", "-c", jobs.fails_once(self.lab.folder, 1, 2), options=[
            "--max-restarts", 1, "--on-event", f"http://node1:{port}/hook"])
        for run in runs:
            self.assertEqual(jobs.OK, run.wait(60), str(run))
        posted = [line.removeprefix("POSTED ") for line in server.out.splitlines()
                  if line.startswith("POSTED ")]
        server.signal(9)
        server.wait(10)
        self.assert_story([json.loads(line) for line in posted])

    def test_one_that_fails_or_hangs_costs_the_job_nothing(self):
        for command in ("false", "/none/such", "sleep 600"):
            run = self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 2, "--on-event", command,
                                      "--no-python", "true")
            self.assert_done([run], jobs.OK, 60)
            self.assertRegex(run.err, r"--on-event: \S+ was not told of an event")
            self.assertEqual(1, run.err.count("was not told of an event"), str(run))

    def test_the_end_is_told_where_the_job_is_stopped(self):
        told = self.lab.folder / "told"
        run = self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 2, "--on-event",
                                  f"tee -a '{told}'", "--no-python", jobs.WORKER, "env", "sleep",
                                  "600", env={"PYTHON_EXEC": jobs.PYTHON})
        self.wait_for_workers([run], 2)
        self.wait_for_rounds(told, 1)
        run.signal(15)
        self.assert_done([run], 143, 60)
        last = json.loads(told.read_text(encoding="utf-8").splitlines()[-1])
        self.assertEqual(("finished", 143), (last["event"], last["exit_code"]))

    def test_https_is_refused_with_the_way_out(self):
        run = self.nodes[0].run(lab.HLAUNCH, "--on-event", "https://hooks.example/7", "--no-python",
                                "true")
        self.assertEqual(jobs.USAGE, run.code, str(run))
        self.assertIn("curl", run.err)


if __name__ == "__main__":
    lab.main()
