#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The rendezvous as a service on node0, with jobs on node1 and node2: it dies at every point at
which it saves something and comes back, and workers never notice. Also many jobs, and `status`.
"""

import json
import os
import pathlib
import signal
import subprocess

import jobs
import lab

SERVICE = str(lab.BIN / "hlaunch-rendezvous")
DYING = str(lab.BIN.parent / "tests/workers/hlaunch_test_dying_rendezvous")
# For a job of two nodes that restarts once. The service saves that round 1 is proposed, runs and
# stops, that round 2 is proposed and runs, and that the job is over; then it forgets the job.
POINTS = ([f"{step}:{n}" for step in ("sync", "rename", "sync-directory") for n in range(1, 7)]
          + ["open:3", "write:5", "remove:1", "sync-directory:7"])


# Prints the status and the body of an HTTP server's answer.
ASK = ("import sys, urllib.request as u, urllib.error as e\n"
       "try: answer = u.urlopen(sys.argv[1], timeout=float(sys.argv[2]))\n"
       "except e.HTTPError as error: answer = error\n"
       "print(answer.status, answer.read().decode().strip())")
# Opens connections and sends only a part of a request on each, again and again.
SLOW = ("import socket, sys, time\n"
        "def slow():\n"
        "    one = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "    one.sendall(b'GET /me')\n"
        "    return one\n"
        "held = [slow() for _ in range(64)]\n"
        "print('slow', flush=True)\n"
        "while True:\n"
        "    held = held[1:] + [slow()]\n"
        "    time.sleep(0.005)\n")


class ServiceTest(jobs.JobTest):
    count = 3

    def serve(self, *options, program=SERVICE, port=29400, state="state", ready=True):
        """A service on node0. `state` is a folder there; with None the service saves nothing."""
        kept = [] if state is None else ["--state", f"file://{self.nodes[0].folder / state}"]
        run = self.nodes[0].start(program, "--listen", port, *kept, *options)
        if ready:
            run.wait_for(r"listening on \[::\]:")
        return run

    def job(self, name, *words, options=(), port=29400, nodes=None, env=None):
        """Starts `hlaunch` on node1 and node2."""
        nodes = self.nodes[1:] if nodes is None else nodes
        return [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", f"node0:{port}",
                           "--rdzv-id", name, *options, jobs.WORKER, *words,
                           env={"PYTHON_EXEC": jobs.PYTHON, **(env or {})}) for node in nodes]

    def status(self, *words, port=29400, code=0, **options):
        run = self.nodes[2].run(lab.HLAUNCH, "status", *words, "--rdzv-endpoint", f"node0:{port}",
                                **options)
        self.assertEqual(run.code, code, str(run))
        return run

    def facts(self, name):
        return json.loads(self.status(name, "--json").out)

    def kill(self, service):
        os.kill(service.pid, signal.SIGKILL)
        service.wait(5)

    def end(self, service):
        service.signal(signal.SIGTERM)
        self.assertEqual(service.wait(5), 0, str(service))


class Died(ServiceTest):
    """All points at once, each with a service and a job of its own."""

    def assert_two_rounds(self, runs):
        """Two rounds of two workers. In the first one rank 1 failed, maybe before rank 0 printed
        anything. No worker was started twice, and there was no third round.
        """
        seen = [facts["RANK"] + "@" + facts["TORCHELASTIC_RESTART_COUNT"]
                for run in runs for facts in jobs.environments(run)]
        self.assertIn(sorted(seen), [["0@0", "0@1", "1@0", "1@1"], ["0@1", "1@0", "1@1"]],
                      self.told(runs))

    def start_again(self, left):
        """Restarts each service that has died, and takes it off `left`. Returns whether that is
        empty now.
        """
        for each in [each for each in left if each[2].process.poll() is not None]:
            point, port, service, _ = each
            self.assertEqual(service.wait(1), 128 + signal.SIGKILL, f"{point}: {service}")
            self.serve(port=port, state=point, ready=False)
            left.remove(each)
        return not left

    def test_at_every_point_at_which_it_keeps_something(self):
        tried, left = [], []
        for i, point in enumerate(POINTS):
            port = 29400 + i
            service = self.serve("--die-at", point, program=DYING, port=port, state=point)
            runs = self.job(point, "env", "fail", 1, 9, 0, "sleep", 0.3, port=port,
                            options=["--max-restarts", 1, "--shutdown-timeout", 3])
            tried.append((point, port, service, runs))
            left.append(tried[-1])
            self.start_again(left)  # Jobs do not wait until all the others have begun.
        self.assertTrue(lab.poll(lambda: self.start_again(left), 60),
                        [f"{point}: {service}" for point, _, service, _ in left])
        for point, _, _, runs in tried:
            with self.subTest(point):
                for run in runs:
                    self.assertEqual(run.wait(30), 0, self.told(runs))
                self.assert_two_rounds(runs)

    def test_while_workers_run(self):
        service, end = self.serve(), self.lab.folder / "end"
        runs = self.job("a", "env", "await", end)
        before = self.wait_for_workers(runs, 2)
        self.kill(service)
        runs[0].wait_for("rendezvous at node0:29400: ")
        again = self.serve()
        again.wait_for("1 job restored from ")
        lab.poll(lambda: {node["state"] for node in self.facts("a")["nodes"]} == {"running"}, 5)
        facts = self.facts("a")
        self.assertEqual([node["state"] for node in facts["nodes"]], ["running"] * 2, facts)
        end.touch()
        for run in runs:
            self.assertEqual(run.wait(20), 0, self.told(runs))
        self.assertEqual(jobs.environments(runs[0]) + jobs.environments(runs[1]), before)
        lab.poll(lambda: not list((self.nodes[0].folder / "state").glob("*.job")), 5)
        self.assertEqual(list((self.nodes[0].folder / "state").glob("*.job")), [])

    def test_between_a_failure_and_the_round_after_it(self):
        service = self.serve()
        runs = self.job("a", "env", "stubborn", "fail", 1, 9, 0, "sleep", 0.5,
                        options=["--max-restarts", 1, "--shutdown-timeout", 1])
        runs[0].wait_for("stopping|restart")  # The worker ignores SIGTERM for a second.
        self.kill(service)
        self.serve()
        for run in runs:
            self.assertEqual(run.wait(20), 0, self.told(runs))
        self.assert_two_rounds(runs)

    def test_for_longer_than_the_loss_limit(self):
        service = self.serve()
        runs = self.job("a", "env", "sleep", 600,
                        options=["--loss-limit", 5, "--shutdown-timeout", 1])
        self.wait_for_workers(runs, 2)
        self.kill(service)
        self.assert_done(runs, jobs.RENDEZVOUS_LOST, 20)

    def test_without_state(self):
        service = self.serve(state=None)
        runs = self.job("a", "env", "sleep", 600, options=["--shutdown-timeout", 1])
        self.wait_for_workers(runs, 2)
        self.kill(service)
        self.serve(state=None)
        for run in runs:
            self.assertEqual(run.wait(20), jobs.NODE_LOST, self.told(runs))
            self.assert_said(run, "comes from round 1 of job a, which this rendezvous does not know")


class Service(ServiceTest):
    def test_many_jobs_of_which_one_fails(self):
        service = self.serve()
        good = [self.job(f"good{i}", "env", "sleep", 2) for i in range(3)]
        bad = self.job("bad", "env", "fail", 1, 9, 0, "sleep", 600,
                       options=["--shutdown-timeout", 1])
        for run in bad:
            self.assertEqual(run.wait(20), 9, self.told(bad))
        for runs in good:
            for run in runs:
                self.assertEqual(run.wait(20), 0, self.told(runs))
        listed = json.loads(self.status("--json").out)["jobs"]
        self.assertEqual([(job["job_id"], job["state"], job["exit_code"]) for job in listed],
                         [("bad", "over", 9), ("good0", "over", 0), ("good1", "over", 0),
                          ("good2", "over", 0)])
        # The same id again is a new run.
        again = self.job("bad", "env", "sleep", 0)
        for run in again:
            self.assertEqual(run.wait(20), 0, self.told(again))
        self.end(service)
        self.assert_said(service, "stopping; no job is going on")

    def test_says_that_it_lives_and_how_many_jobs_it_has(self):
        service = self.serve("--metrics-port", f"{self.nodes[0].ip}:9400")
        runs = self.job("a", "env", "sleep", 600, options=["--shutdown-timeout", 1])
        self.wait_for_workers(runs, 2)
        read = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
        def get(path):
            url = f"http://{self.nodes[0].ip}:9400{path}"
            return self.nodes[2].run(jobs.PYTHON, "-c", read, url).out
        self.assertEqual([get("/healthz").strip(), get("/readyz").strip()], ["ok", "ok"])
        text = get("/metrics")
        for line in ("hlaunch_rendezvous_up 1", "hlaunch_rendezvous_jobs 1",
                     "hlaunch_rendezvous_agents 2"):
            self.assertIn(line + "\n", text)
        os.kill(service.pid, signal.SIGSTOP)  # A hanging service does not report that it lives.
        asked = self.nodes[2].start("timeout", "1", jobs.PYTHON, "-c", read,
                                    f"http://{self.nodes[0].ip}:9400/healthz")
        self.assertEqual(asked.wait(10), 124, str(asked))
        os.kill(service.pid, signal.SIGCONT)
        service.process.send_signal(signal.SIGCONT)  # nsenter stops with its child.
        runs[0].signal(signal.SIGTERM)
        for run, code in zip(runs, (143, jobs.NODE_STOPPED)):
            self.assertEqual(run.wait(20), code, self.told(runs))
        self.end(service)

    def ask(self, node, path, patience=100):
        """The answer of the service's metrics port, such as "200 ok"."""
        return node.run(jobs.PYTHON, "-c", ASK, f"http://{self.nodes[0].ip}:9400{path}", patience,
                        timeout=120).out.strip()

    def test_out_of_threads_it_says_so_serves_on_and_stops(self):
        # The limit does not apply to root, unless root is that of a user namespace.
        mapped = pathlib.Path("/proc/self/uid_map").read_text(encoding="utf-8").split()
        user = ["setpriv", "--reuid", "61234", "--clear-groups"] if mapped[:2] == ["0", "0"] else []
        service = self.nodes[0].start(*user, SERVICE, "--listen", 29400, "--metrics-port",
                                      f"{self.nodes[0].ip}:9400")
        service.wait_for(r"listening on \[::\]:")
        self.assertEqual(self.ask(self.nodes[0], "/healthz"), "200 ok")
        subprocess.run([*user, "prlimit", "--pid", str(service.pid), "--nproc=1:1"], check=True)
        service.wait_for("cannot start a thread: Resource temporarily unavailable; raise the limit")
        for path in ("/healthz", "/readyz"):
            self.assertRegex(self.ask(self.nodes[0], path), "^503 cannot start a thread")
        for name in ("a", "b"):
            runs = self.job(name, "env", "sleep", 0)
            for run in runs:
                self.assertEqual(run.wait(30), 0, self.told(runs))
        self.end(service)

    def test_slow_connections_keep_no_probe_waiting(self):
        service = self.serve("--metrics-port", f"{self.nodes[0].ip}:9400")
        slow = self.nodes[2].start(jobs.PYTHON, "-c", SLOW, self.nodes[0].ip, 9400)
        slow.wait_for("slow")
        for _ in range(5):
            for node in self.nodes[:2]:
                self.assertEqual(self.ask(node, "/healthz"), "200 ok")
        self.end(service)

    def test_stopped_by_sigterm_and_started_again(self):
        service = self.serve()
        end = self.lab.folder / "end"
        runs = self.job("a", "env", "await", end)
        self.wait_for_workers(runs, 2)
        self.end(service)
        self.assert_said(service, "stopping; 1 job goes on: the agents wait for this service")
        self.serve()
        end.touch()
        for run in runs:
            self.assertEqual(run.wait(20), 0, self.told(runs))

    def test_a_node_beside_it(self):
        service = self.serve()
        for _ in range(2):  # The second time it is a new run.
            runs = self.job("a", "env", "sleep", 0, nodes=self.nodes[:2])
            for run in runs:
                self.assertEqual(run.wait(20), 0, self.told(runs))
        self.end(service)

    def test_a_second_one_on_the_same_state(self):
        self.serve()
        second = self.serve(port=29401, ready=False)
        self.assertEqual(second.wait(5), jobs.USAGE, str(second))
        self.assert_said(second, r"another hlaunch-rendezvous \(pid \d+\) keeps its jobs in .*state")

    def test_a_second_one_on_the_same_port(self):
        self.serve()
        second = self.serve(state="other", ready=False)
        self.assertEqual(second.wait(5), jobs.PORT_IN_USE, str(second))

    def test_damaged_and_newer_state(self):
        state = self.nodes[0].folder / "state"
        state.mkdir()
        (state / "a.job").write_text("hlaunch-job 1 00000000 3\nabc", encoding="utf-8")
        service = self.serve()
        self.assert_said(service, r"a job is lost: .*/a.job is damaged \(its checksum is wrong\)")
        self.kill(service)
        # crc32("2 3\nabc")
        (state / "b.job").write_text("hlaunch-job 2 e665d4d1 3\nabc", encoding="utf-8")
        refused = self.serve(ready=False)
        self.assertEqual(refused.wait(5), jobs.USAGE, str(refused))
        self.assert_said(refused, "cannot go on with .*/b.job: it has format 2")

    def test_a_disk_that_is_full(self):
        small = self.nodes[0].folder / "small"
        small.mkdir()
        mounted = self.nodes[0].run("mount", "-t", "tmpfs", "-o", "size=64k", "none", small)
        self.assertEqual(mounted.code, 0, str(mounted))
        self.serve(state="small/state")
        self.nodes[0].run("dd", "if=/dev/zero", f"of={small}/full", "bs=1k")  # Fills it.
        runs = self.job("a", "env", "sleep", 600, options=["--shutdown-timeout", 1])
        self.wait_for_workers(runs, 2)
        lab.poll(lambda: "not kept" in self.facts("a")["explanation"], 10, 0.2)
        self.assertRegex(self.facts("a")["explanation"],
                         r"round 1 runs .*; not kept in .*small/state since .*No space left")
        self.nodes[0].run("rm", f"{small}/full")
        def kept():
            return "not kept" not in self.facts("a")["explanation"]
        self.assertTrue(lab.poll(kept, 10, 0.2))
        for run in runs:
            run.signal(signal.SIGTERM)


class Status(ServiceTest):
    def test_of_a_job_that_waits(self):
        self.serve()
        runs = self.job("a", "env", "sleep", 600, nodes=self.nodes[1:2])
        runs[0].wait_for(r"waiting \d+ s for 1 of 2 nodes; here: node1")
        text = self.status("a").out
        self.assertRegex(text, r"state +forming\nwhy +waiting for 1 of 2 nodes; here: node1\n")
        self.assertRegex(text, r"(?m)^- +node1 +10\.77\.0\.11 +\d+ +1 +ready$")
        self.assertRegex(self.status().out, r"(?m)^a +forming +0 +1 of 2 +0 of 0 +waiting for 1")
        facts = self.facts("a")
        self.assertEqual((facts["state"], facts["nodes"][0]["node_rank"]), ("forming", None))
        runs[0].signal(signal.SIGTERM)

    def test_of_what_is_not_there(self):
        service = self.serve()
        self.assertEqual(self.status().out, "no jobs\n")
        self.assertEqual(json.loads(self.status("--json").out), {"total_jobs": 0, "jobs": []})
        self.assert_said(self.status("a", code=jobs.REFUSED), "there is no job 'a' here")
        self.kill(service)
        self.assert_said(self.status("a", code=jobs.BAD_ENDPOINT),
                         "no rendezvous answers at node0:29400: ")
        nobody = self.nodes[2].run(lab.HLAUNCH, "status", "--rdzv-endpoint", "nowhere.invalid")
        self.assertEqual(nobody.code, jobs.BAD_ENDPOINT, str(nobody))

    def test_needs_the_token(self):
        secret = self.nodes[0].folder / "token"
        secret.write_text(lab.TOKEN + "\n", encoding="utf-8")
        secret.chmod(0o600)
        self.serve("--token-file", secret)
        self.assert_said(self.status(code=jobs.REFUSED), "this node has no token")
        self.status("--token-file", secret)
        self.status(env={"HLAUNCH_TOKEN": lab.TOKEN})
        runs = self.job("a", "env", options=["--token-file", secret])
        for run in runs:
            self.assertEqual(run.wait(20), 0, self.told(runs))

    def test_of_a_rendezvous_within_a_node(self):
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node1", "--rdzv-id",
                           "a", jobs.WORKER, "env", "sleep", 600,
                           env={"PYTHON_EXEC": jobs.PYTHON}) for node in self.nodes[1:]]
        self.wait_for_workers(runs, 2)
        def ask():
            return self.nodes[0].run(lab.HLAUNCH, "status", "a", "--rdzv-endpoint", "node1")
        lab.poll(lambda: "running" in ask().out, 10, 0.2)  # Once node2 has reported that.
        asked = ask()
        self.assertEqual(asked.code, 0, str(asked))
        self.assertRegex(asked.out, r"why +round 1 runs with 2 nodes and 2 workers\n")
        self.assertRegex(asked.out, r"(?m)^1 +node2 +\S+ +\d+ +1 +running$")
        for run in runs:
            run.signal(signal.SIGTERM)


if __name__ == "__main__":
    lab.main()
