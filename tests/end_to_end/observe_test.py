#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What other programs can observe: the event log, hlaunch's lines as JSON, the metrics."""

import datetime
import json
import os
import re
import shutil
import signal
import subprocess

import jobs
import lab

SCRAPE = ("import sys, urllib.request as u; answer = u.urlopen(sys.argv[1], timeout=10);"
          " sys.stdout.write(answer.headers['Content-Type'] + '\\n' + answer.read().decode())")


class Observed(jobs.JobTest):
    """A job of two nodes with two workers each."""

    def events(self, run):
        files = list(run.node.folder.glob("logs/*/events.jsonl"))
        self.assertEqual(1, len(files), f"{files}\n{run}")
        lines = files[0].read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def scrape(self, node, run, path="/metrics"):
        url = run.wait_for(r"metrics are at (http://\S+)/metrics").group(1) + path
        return self.scrape_url(node, url)

    def scrape_url(self, node, url):
        answer = node.run(jobs.PYTHON, "-c", SCRAPE, url)
        self.assertEqual(0, answer.code, str(answer))
        kind, _, text = answer.out.partition("\n")
        return kind, text

    def test_the_event_log_tells_the_jobs_story(self):
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                           "--rdzv-id", "told", "--node-rank", node.index, "--nproc-per-node", 2,
                           "--max-restarts", 1, "--log-dir", "logs", "--no-python", "sh", "-c",
                           jobs.fails_once(self.lab.folder, 3, 4)) for node in self.nodes]
        self.assert_done(runs, jobs.OK, 60)
        for index, run in enumerate(runs):
            told = self.events(run)
            names = [event["event"] for event in jobs.story(told)]
            start, end = ["worker_started"] * 2, ["worker_ended"] * 2
            first_end = end if index == 0 else end[:1]  # Rank 3 ends before the stop.
            early = [] if index == 0 else end[:1]
            self.assertEqual(names, ["joined", "round_started", *start, *early, "round_stopped",
                                     *first_end, "restarted", "round_started", *start, *end,
                                     "round_stopped", "finished"], told)
            for event in told:
                self.assertEqual((event["job_id"], event["host"]), ("told", run.node.name))
                datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
            clock = [event["monotonic_ms"] for event in told]
            self.assertEqual(clock, sorted(clock))
            begun = [event for event in told if event["event"] == "round_started"]
            self.assertEqual([(e["restart_count"], e["first_rank"], e["last_rank"],
                               e["world_size"], e["node_rank"]) for e in begun],
                             [(0, 2 * index, 2 * index + 1, 4, index),
                              (1, 2 * index, 2 * index + 1, 4, index)])
            self.assertEqual(told[-1]["exit_code"], 0)
            pids = [{e["pid"] for e in told if e["event"] == name} for name in (start[0], end[0])]
            self.assertEqual(pids[0], pids[1])
        failed = [e for e in self.events(runs[1]) if e.get("exit_code") == 7]
        self.assertEqual([(e["rank"], e["local_rank"], e["stopped"]) for e in failed],
                         [(3, 1, False)])
        stopped = [e for e in self.events(runs[0]) if e["event"] == "round_stopped"][0]
        self.assertIn("rank 3", stopped["reason"])

    def test_every_node_keeps_the_first_cause_as_its_termination_message(self):
        ends = [node.folder / "end" for node in self.nodes]
        for end in ends:
            end.touch()  # The kubelet does this.
        runs = self.start("--no-python", "sh", "-c", "exit $((RANK / 3 * 7))",
                          options=["--nproc-per-node", 2, "--termination-log", "end"])
        self.assert_done(runs, 7, 30)
        for end in ends:
            self.assertRegex(end.read_text(encoding="utf-8"),
                             r"^job failed: rank 3 \(node\d, local rank 1, .* exited with code 7")

    def test_a_job_that_ends_well_leaves_no_termination_message(self):
        end = self.nodes[0].folder / "end"
        end.touch()
        runs = self.start("--no-python", "true", options=["--termination-log", end])
        self.assert_done(runs, jobs.OK, 30)
        self.assertEqual(end.read_text(encoding="utf-8"), "")

    def test_without_a_log_directory_nothing_is_left(self):
        runs = self.start("--no-python", "true")
        self.assert_done(runs, jobs.OK, 30)
        for node in self.nodes:
            self.assertEqual([], list(node.folder.rglob("events.jsonl")))

    def test_hlaunchs_own_lines_are_json(self):
        runs = self.start("--no-python", "sh", "-c", "exit 3", options=["--json", "--nproc-per-node",
                                                                       2, "--verbose"])
        self.assert_done(runs, 3, 30)
        for run in runs:
            said = [json.loads(line) for line in run.err.splitlines()]
            self.assertTrue(said, str(run))
            for line in said:
                self.assertEqual(list(line), ["time", "level", "host", "message"], line)
                self.assertEqual(line["host"], run.node.name)
            self.assertTrue(any(line["level"] == "error" and "exited with code 3" in
                                line["message"] for line in said), str(run))

    def test_a_keepers_lines_have_its_host_too(self):
        runs = self.start(jobs.WORKER, "env", "sleep", "600", options=["--json"])
        self.wait_for_workers(runs, 2)
        os.kill(jobs.agent_of(runs[1]), signal.SIGKILL)
        self.assert_done(runs, [jobs.NODE_LOST, jobs.AGENT_LOST], 30)
        said = [json.loads(line) for line in runs[1].err.splitlines()]
        self.assertTrue(any("the agent (pid" in line["message"] for line in said), str(runs[1]))
        self.assertEqual({line.get("host") for line in said}, {"node1"}, str(runs[1]))

    def test_a_keepers_lines_are_json_where_it_can_tell_nobody(self):
        runs = self.start(jobs.WORKER, "env", "sleep", "600", options=["--json"])
        self.wait_for_workers(runs, 2)
        self.nodes[1].forget("node0")
        os.kill(jobs.agent_of(runs[1]), signal.SIGKILL)
        self.assertEqual(jobs.AGENT_LOST, runs[1].wait(30), str(runs[1]))
        self.nodes[0].power_off()
        said = [json.loads(line) for line in runs[1].err.splitlines()]
        self.assertTrue(any("cannot tell the rendezvous that this node is gone" in line["message"]
                            for line in said), str(runs[1]))
        self.assertEqual({line.get("host") for line in said}, {"node1"}, str(runs[1]))

    def test_metrics_are_scraped_while_the_job_runs(self):
        end = self.lab.folder / "end"
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                           "--node-rank", node.index, "--nproc-per-node", 2, "--metrics-port",
                           "0" if node.index == 0 else "0.0.0.0:9400", "--no-python", jobs.WORKER,
                           "env", "await", end, env={"PYTHON_EXEC": jobs.PYTHON})
                for node in self.nodes]
        self.wait_for_workers(runs, 4)
        kind, text = self.scrape(self.nodes[0], runs[0])
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
        wanted = {"hlaunch_up": 1, "hlaunch_round": 1, "hlaunch_world_size": 4,
                  "hlaunch_workers_running": 2, "hlaunch_workers_started_total": 2,
                  "hlaunch_worker_failures_total": 0, "hlaunch_restarts_total": 0,
                  'hlaunch_state{state="running"}': 1, "hlaunch_rendezvous_connected": 1}
        self.assertEqual({name: float(values[name]) for name in wanted}, wanted, text)
        self.assertGreater(float(values["hlaunch_output_bytes_total"]), 100)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                     capture_output=True, check=False, timeout=30)
            self.assertEqual(0, checked.returncode, checked.stdout + checked.stderr)
        # Another host can reach the address that was opened to all, and no other.
        self.assertEqual(self.scrape(self.nodes[1], runs[1], "/healthz"), ("text/plain", "ok\n"))
        there = self.nodes[0].run(jobs.PYTHON, "-c", SCRAPE,
                                  f"http://{self.nodes[1].ip}:9400/metrics")
        self.assertIn('node_rank="1"', there.out, str(there))
        port = re.search(r"127\.0\.0\.1:(\d+)", runs[0].err).group(1)
        closed = self.nodes[1].run(jobs.PYTHON, "-c", SCRAPE,
                                   f"http://{self.nodes[0].ip}:{port}/metrics")
        self.assertIn("refused", closed.err, str(closed))
        end.touch()
        self.assert_done(runs, jobs.OK, 30)

    def test_a_page_a_snapshot_and_a_watch_show_a_restart(self):
        end = self.lab.folder / "end"
        fails_once = ('test "$TORCHELASTIC_RESTART_COUNT$RANK" != 03 || '
                      '{ echo "<b>HBM is gone" >&2; exit 7; }; ')
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                           "--rdzv-id", "seen", "--node-rank", node.index, "--nproc-per-node", 2,
                           "--max-restarts", 1, "--status-page", 9400, "--no-python", "sh", "-c",
                           fails_once + f"until test -e {end}; do sleep 0.1; done")
                for node in self.nodes]
        runs[0].wait_for(r"the status page is at http://127\.0\.0\.1:9400/", 30)
        ask = (lab.HLAUNCH, "status", "seen", "--rdzv-endpoint", self.endpoint)
        watch = self.nodes[1].start(*ask, "--watch")
        watch.wait_for(r"round 2 runs with 2 nodes and 4 workers", 60)
        kind, page = self.scrape_url(self.nodes[0], "http://localhost:9400/")
        self.assertEqual(kind, "text/html; charset=utf-8")
        file = self.lab.folder / "seen.html"
        self.assertEqual(0, self.nodes[0].run(*ask, "--html", file).code)
        snapshot = file.read_text(encoding="utf-8")
        for text in (page, snapshot):
            self.assertIn("round 2 runs with 2 nodes and 4 workers", text)
            self.assertRegex(text, r"rank 3 on node1 \(pid \d+\) exited with 7")
            self.assertIn("&lt;b&gt;HBM is gone", text)
            self.assertIn("Goodput", text)
            self.assertNotIn("<b>HBM", text)
        self.assertNotIn("<script", snapshot)
        # The page is only on the host of the rendezvous, and only for that host; others see less.
        self.assertIsNone(re.search("status page", runs[1].err))
        far = self.nodes[1].run(jobs.PYTHON, "-c", SCRAPE, f"http://{self.nodes[0].ip}:9400/")
        self.assertIn("refused", far.err, str(far))
        watch.signal(15)
        self.assertEqual(0, watch.wait(10), str(watch))
        self.assertRegex(watch.out, r"(?m)^  1    \|[ .?=!]{20}\| ran .*worker rank 3")
        self.assertNotIn("HBM", watch.out)
        self.assertNotIn("\x1b", watch.out)
        end.touch()
        self.assert_done(runs, jobs.OK, 30)

    def test_a_metrics_port_that_is_taken_costs_a_warning(self):
        squatter = self.nodes[0].start(jobs.PYTHON, "-m", "http.server", "9400")
        self.nodes[0].run("sh", "-c", "until ss -Hltn sport = 9400 | grep -q .; do :; done")
        runs = self.start("--no-python", "true", nodes=self.nodes, options=["--metrics-port", 9400])
        for run in runs:
            self.assertEqual(0, run.wait(30), self.told(runs))
        self.assert_said(runs[0], r"cannot serve metrics at 127\.0\.0\.1:9400: .*in use; the job")
        squatter.signal(15)
        squatter.wait(10)
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
