#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Two services share an etcd of three members on node0, or a namespace of Kubernetes whose API
server is there. One leads; the other takes over when it is killed, stands still or is cut off. A
job on two more nodes goes on: its workers notice nothing, and a worker that fails later starts the
next round, once.
"""

import json
import os
import pathlib
import re
import signal
import time
import unittest

import jobs
import lab
import trust_test

SERVICE = str(lab.BIN / "hlaunch-rendezvous")
ETCD = "/usr/bin/etcd"
MEMBERS = ("e0", "e1", "e2")
KUBE_API = lab.ROOT / "tests/rendezvous/failover/kubernetes/kube_api.py"


class StandbyTest(jobs.JobTest):
    count = 4
    place = ""  # The services' name for the place where they keep jobs.

    def state(self):
        """The options that tell the services where they keep jobs."""
        raise NotImplementedError

    def serve(self, node):
        run = self.nodes[node].start(SERVICE, "--listen", 29400, *self.state(),
                                     "--metrics-port", "127.0.0.1:29401")
        run.wait_for(r"listening on \[::\]:")
        return run

    def begin(self, first=0, second=1):
        """Starts a service that leads, one that stands by, and a job of two workers."""
        leader = self.serve(first)
        leader.wait_for(f"this service leads; 0 jobs restored from {self.place}", 60)
        standby = self.serve(second)
        standby.wait_for(f"this service stands by; node{first}:29400 leads")
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node1,node0",
                           "--rdzv-id", "a", "--max-restarts", 9, "--shutdown-timeout", 2,
                           jobs.WORKER, "env", "sleep", 600, env={"PYTHON_EXEC": jobs.PYTHON})
                for node in self.nodes[2:]]
        self.wait_for_workers(runs, 2, 60)
        return leader, standby, runs

    def status(self, *words, at="node1,node0"):
        return self.nodes[2].run(lab.HLAUNCH, "status", *words, "--rdzv-endpoint", at)

    def ready(self, node):
        """The answer of that node's service at /readyz."""
        run = self.nodes[node].run(
            jobs.PYTHON, "-c", "import urllib.request as u, urllib.error as e\n"
            "try: answer = u.urlopen('http://127.0.0.1:29401/readyz', timeout=5)\n"
            "except e.HTTPError as error: answer = error\n"
            "print(answer.status, answer.read().decode().strip())")
        return run.out.strip()

    def seen(self, runs):
        return len(jobs.environments(runs[0])) + len(jobs.environments(runs[1]))

    def assert_goes_on(self, runs, workers):
        """No worker was disturbed; then a failure starts one more round, with both workers."""
        def running():
            told = self.status("a", "--json")
            return told.code == 0 and [n["state"] for n in json.loads(told.out)["nodes"]] == [
                "running", "running"]
        self.assertTrue(lab.poll(running, 30), f"{self.status('a')}\n{self.told(runs)}")
        self.assertEqual(self.seen(runs), workers, self.told(runs))
        os.kill(self.worker(runs[1]), signal.SIGKILL)
        facts = self.wait_for_workers(runs, workers + 2, 60)
        counts = [fact["TORCHELASTIC_RESTART_COUNT"] for fact in facts]
        self.assertEqual({count: counts.count(count) for count in counts},
                         {str(i): 2 for i in range(len(facts) // 2)}, self.told(runs))
        return len(facts)

    def worker(self, run):
        return next(pid for pid in run.descendants()
                    if lab.command_line(pid).startswith(f"{jobs.PYTHON} "))

    def end(self, runs):
        for run in runs:
            run.signal(signal.SIGTERM)
        for run in runs:
            self.assertIn(run.wait(30), (143, jobs.NODE_STOPPED), self.told(runs))

    def kill(self, run):
        os.kill(run.pid, signal.SIGKILL)
        run.wait(5)

    def wake(self, run):
        os.kill(run.pid, signal.SIGCONT)
        run.process.send_signal(signal.SIGCONT)  # nsenter stops with its child.

    @property
    def leads(self):
        return f"this service leads; 1 job restored from {self.place}"

    def await_take_over(self, standby, what):
        began = time.monotonic()
        standby.wait_for(self.leads, 60)
        print(f"taken over {time.monotonic() - began:.1f} s after {what}", flush=True)


@unittest.skipUnless(pathlib.Path(ETCD).exists(), "etcd is not installed")
class EtcdTest(StandbyTest):
    place = "etcd at "
    scheme = "http"
    options = ()  # For the members of etcd.
    ctl_options = state_options = ()  # For etcdctl, and for the services.

    def setUp(self):
        super().setUp()
        self.prepare()
        for node in self.nodes[:2]:  # etcd listens only at the second address.
            node.know("etcd", self.nodes[0].ip6)
            node.know("etcd", self.nodes[0].ip)
        self.etcd = [self.start_member(i) for i in range(len(MEMBERS))]

    def prepare(self):
        pass

    def url(self, i, kind=0):
        return f"{self.scheme if kind == 0 else 'http'}://{self.nodes[0].ip}:{23790 + 100 * kind + i}"

    def start_member(self, i):
        folder = self.nodes[0].folder / MEMBERS[i]
        cluster = ",".join(f"{name}={self.url(k, 1)}" for k, name in enumerate(MEMBERS))
        return self.nodes[0].start(
            ETCD, "--name", MEMBERS[i], "--data-dir", folder, "--listen-client-urls", self.url(i),
            "--advertise-client-urls", self.url(i), "--listen-peer-urls", self.url(i, 1),
            "--initial-advertise-peer-urls", self.url(i, 1), "--initial-cluster", cluster,
            "--unsafe-no-fsync", "--logger", "zap", "--log-level", "error", *self.options)

    def etcdctl(self, *words):
        urls = ",".join(self.url(i) for i in range(len(MEMBERS)))
        run = self.nodes[0].run("etcdctl", "--endpoints", urls, *self.ctl_options, *words,
                                env={"ETCDCTL_API": "3"})
        self.assertEqual(run.code, 0, str(run))
        return run.out

    def etcd_leader(self):
        """The index of the member that leads; waits while they elect one."""
        def leaders():
            told = json.loads(self.etcdctl("endpoint", "status", "-w", "json"))
            return [i for i, status in enumerate(told)
                    if status["Status"]["leader"] == status["Status"]["header"]["member_id"]]
        found = lab.poll(leaders, 10, 0.2)
        self.assertTrue(found, "etcd has no leader")
        return found[0]

    def state(self):
        members = ",".join(f"etcd:{23790 + i}" for i in range(len(MEMBERS)))
        return ["--state", f"etcd://{members}/lab", *self.state_options]


class TakenOver(EtcdTest):
    def test_a_job_outlives_a_service_that_is_killed_one_that_stands_still_and_a_member_of_etcd(self):
        unread = self.nodes[1].run(SERVICE, "--state", "etcd://a", "--state-user-file", "/nowhere")
        self.assertEqual(unread.code, jobs.USAGE, str(unread))
        self.assertIn("--state-user-file '/nowhere': cannot read it: No such file", unread.err)
        first, second, runs = self.begin()
        self.assertRegex(self.ready(1), "^503 this service stands by; node0:29400 leads")
        self.assertEqual(self.ready(0)[:3], "200")
        alone = self.status(at="node1")
        self.assertEqual(alone.code, jobs.BAD_ENDPOINT, str(alone))
        self.assertIn("this service stands by; node0:29400 leads", alone.err)
        self.assertEqual(json.loads(self.status("--json").out)["leader"], "node0:29400")
        self.kill(first)
        self.await_take_over(second, "a SIGKILL")
        workers = self.assert_goes_on(runs, 2)
        third = self.serve(0)
        third.wait_for("this service stands by; node1:29400 leads")
        os.kill(second.pid, signal.SIGSTOP)
        self.await_take_over(third, "a SIGSTOP")
        self.wake(second)
        second.wait_for("this service has lost its lease in etcd at .*: it decides nothing more", 30)
        second.wait_for("this service stands by; node0:29400 leads", 30)
        workers = self.assert_goes_on(runs, workers)
        self.kill(self.etcd[self.etcd_leader()])
        self.assert_goes_on(runs, workers)
        self.end(runs)


@unittest.skipUnless(os.environ.get("HLAUNCH_AT_LENGTH"), "needs a minute (tests/run --full)")
class TakenOverAtLength(EtcdTest):
    def test_most_of_etcd_is_away_for_less_than_the_lease(self):
        leader, _, runs = self.begin()
        away = self.etcd[:2]
        for run in away:
            os.kill(run.pid, signal.SIGSTOP)
        os.kill(self.worker(runs[1]), signal.SIGKILL)
        time.sleep(1.5)
        for run in away:
            self.wake(run)
        self.wait_for_workers(runs, 4, 60)
        self.assert_goes_on(runs, 4)
        self.end(runs)

    def test_most_of_etcd_is_away_for_longer(self):
        leader, standby, runs = self.begin()
        away = self.etcd[:2]
        for run in away:
            os.kill(run.pid, signal.SIGSTOP)
        leader.wait_for("this service has lost its lease in etcd at", 30)
        leader.wait_for("this service stands by: etcd at .*", 30)
        runs[0].wait_for("rendezvous at ", 30)
        self.assertEqual(self.seen(runs), 2, self.told(runs))  # They run on.
        for run in away:
            self.wake(run)
        lab.poll(lambda: re.search(self.leads, leader.err + standby.err), 60)
        self.assert_goes_on(runs, 2)
        self.end(runs)

    def test_the_leader_is_cut_off(self):
        leader, standby, runs = self.begin(first=1, second=0)
        self.nodes[1].drop()
        self.await_take_over(standby, "a cut")
        workers = self.assert_goes_on(runs, 2)
        self.nodes[1].heal()
        leader.wait_for("this service stands by; node0:29400 leads", 30)
        self.assert_goes_on(runs, workers)
        self.end(runs)

    def test_old_revisions_are_compacted(self):
        leader, standby, runs = self.begin()
        workers = self.assert_goes_on(runs, 2)
        revision = json.loads(self.etcdctl("endpoint", "status", "-w", "json"))[0]["Status"][
            "header"]["revision"]
        self.etcdctl("compact", revision)
        workers = self.assert_goes_on(runs, workers)
        self.kill(leader)
        self.await_take_over(standby, "a SIGKILL, compacted")
        self.assert_goes_on(runs, workers)
        self.end(runs)


@unittest.skipUnless(os.environ.get("HLAUNCH_AT_LENGTH"), "needs a minute (tests/run --full)")
class GuardedAtLength(EtcdTest):
    """etcd has a certificate, and demands one and a password."""

    scheme = "https"

    def prepare(self):
        site = trust_test.Site(self.nodes[0].folder / "site")
        site.files("etcd")
        file = site.folder
        self.options = ("--cert-file", file / "etcd.crt", "--key-file", file / "etcd.key",
                        "--trusted-ca-file", file / "ca.crt", "--client-cert-auth")
        self.ctl_options = ("--cacert", file / "ca.crt", "--cert", file / "etcd.crt",
                            "--key", file / "etcd.key", "--insecure-skip-tls-verify")
        user = self.nodes[0].folder / "user"
        user.write_text("hlaunch:pass:word\n", encoding="utf-8")
        self.state_options = ("--state-ca", file / "ca.crt", "--state-cert", file / "etcd.crt",
                              "--state-key", file / "etcd.key", "--state-user-file", user)

    def test_a_service_takes_over_with_certificates_and_a_password(self):
        self.assertTrue(lab.poll(lambda: self.nodes[0].run(
            "etcdctl", "--endpoints", self.url(0), *self.ctl_options, "endpoint", "health",
            env={"ETCDCTL_API": "3"}).code == 0, 30))
        self.etcdctl("user", "add", "root:top")
        self.etcdctl("user", "add", "hlaunch:pass:word")
        self.etcdctl("role", "add", "hlaunch")
        self.etcdctl("role", "grant-permission", "--prefix", "hlaunch", "readwrite", "/lab/")
        self.etcdctl("user", "grant-role", "hlaunch", "hlaunch")
        self.etcdctl("auth", "enable")
        leader, standby, runs = self.begin()
        self.kill(leader)
        self.await_take_over(standby, "a SIGKILL, with TLS")
        self.assert_goes_on(runs, 2)
        self.end(runs)


@unittest.skipUnless(os.environ.get("HLAUNCH_AT_LENGTH"), "needs a minute (tests/run --full)")
class FullAtLength(EtcdTest):
    options = ("--quota-backend-bytes", 16 << 20)

    def test_etcd_is_full_and_has_room_again(self):
        leader, _, runs = self.begin()
        blob = self.nodes[0].folder / "blob"
        blob.write_bytes(os.urandom(1 << 20))
        fill = self.nodes[0].run("sh", "-c", "for i in $(seq 40); do etcdctl --endpoints "
                                 f"{self.url(0)} put /blob/$i < {blob} || exit 0; done; exit 1",
                                 env={"ETCDCTL_API": "3"}, timeout=60)
        self.assertEqual(fill.code, 0, str(fill))
        os.kill(self.worker(runs[1]), signal.SIGKILL)
        leader.wait_for("job a runs on, and what follows for it waits: etcd at .*NOSPACE", 30)
        self.assertIn("not kept in etcd at", self.status("a").out)
        self.etcdctl("del", "--prefix", "/blob/")
        revision = json.loads(self.etcdctl("endpoint", "status", "-w", "json"))[0]["Status"][
            "header"]["revision"]
        self.etcdctl("compact", revision)
        self.etcdctl("defrag")
        self.etcdctl("alarm", "disarm")
        leader.wait_for("job a is kept in etcd at .* again", 30)
        self.wait_for_workers(runs, 4, 60)
        self.assert_goes_on(runs, 4)
        self.end(runs)


class KubernetesTest(StandbyTest):
    """With the project's own API server; tests/rendezvous/failover/kubernetes can also use a real one."""

    place = "Kubernetes at kube:6443, namespace train"

    def setUp(self):
        super().setUp()
        authority = trust_test.Site(self.nodes[0].folder / "site")
        authority.files("kube")
        self.site = authority.folder
        (self.site / "token").write_text("secret\n", encoding="utf-8")
        for node in self.nodes[:2]:
            node.know("kube", self.nodes[0].ip)
        api = self.nodes[0].start(
            jobs.PYTHON, KUBE_API, "--listen", "0.0.0.0", "--port", 6443, "--control", 18001,
            "--cert", self.site / "kube.crt", "--key", self.site / "kube.key",
            "--tokens", self.site / "token")
        self.assertTrue(lab.poll(lambda: api.out.strip(), 30))

    def state(self):
        return ["--state", "k8s://train", "--state-api", "https://kube:6443",
                "--state-ca", self.site / "ca.crt", "--state-token-file", self.site / "token"]

    def tell(self, words):
        run = self.nodes[0].run(
            jobs.PYTHON, "-c", "import sys, urllib.request as u\n"
            "u.urlopen('http://127.0.0.1:18001/', data=sys.argv[1].encode(), timeout=10)",
            json.dumps(words))
        self.assertEqual(run.code, 0, str(run))


class TakenOverInKubernetes(KubernetesTest):
    def test_a_job_outlives_a_service_that_is_killed(self):
        nowhere = self.nodes[1].run(SERVICE, "--state", "k8s://")
        self.assertEqual(nowhere.code, jobs.USAGE, str(nowhere))
        self.assertIn("this is no pod (KUBERNETES_SERVICE_HOST", nowhere.err)
        first, second, runs = self.begin()
        self.assertRegex(self.ready(1), "^503 this service stands by; node0:29400 leads")
        self.kill(first)
        self.await_take_over(second, "a SIGKILL")
        self.assert_goes_on(runs, 2)
        self.assertNotIn("secret", first.err + second.err)
        self.end(runs)


@unittest.skipUnless(os.environ.get("HLAUNCH_AT_LENGTH"), "needs minutes (tests/run --full)")
class InKubernetesAtLength(KubernetesTest):
    def test_a_leader_that_stands_still_is_followed_and_stands_by(self):
        first, second, runs = self.begin()
        os.kill(first.pid, signal.SIGSTOP)
        self.await_take_over(second, "a SIGSTOP")
        self.wake(first)
        first.wait_for("this service has lost its lease in Kubernetes at .*: it decides nothing more", 30)
        first.wait_for("this service stands by; node1:29400 leads", 30)
        self.assert_goes_on(runs, 2)
        self.end(runs)

    def test_a_leader_that_is_stopped_is_followed_at_once(self):
        first, second, runs = self.begin()
        first.signal(signal.SIGTERM)
        self.await_take_over(second, "a SIGTERM")
        self.assert_goes_on(runs, 2)
        self.end(runs)

    def test_the_api_server_is_away_for_less_than_the_lease(self):
        leader, _, runs = self.begin()
        self.tell({"away": True})
        os.kill(self.worker(runs[1]), signal.SIGKILL)
        time.sleep(3)
        self.tell({"away": False})
        self.wait_for_workers(runs, 4, 60)
        self.assertNotIn("has lost its lease", leader.err)
        self.assert_goes_on(runs, 4)
        self.end(runs)

    def test_the_api_server_is_away_for_longer(self):
        leader, standby, runs = self.begin()
        self.tell({"away": True})
        leader.wait_for("this service has lost its lease in Kubernetes at", 30)
        leader.wait_for("this service stands by: Kubernetes at .*", 30)
        self.assertEqual(self.seen(runs), 2, self.told(runs))  # They run on.
        self.tell({"away": False})
        self.assertTrue(lab.poll(lambda: re.search(self.leads, leader.err + standby.err), 60))
        self.assert_goes_on(runs, 2)
        self.end(runs)

    def test_the_leader_is_cut_off(self):
        leader, standby, runs = self.begin(first=1, second=0)
        self.nodes[1].drop()
        self.await_take_over(standby, "a cut")
        workers = self.assert_goes_on(runs, 2)
        self.nodes[1].heal()
        leader.wait_for("this service stands by; node0:29400 leads", 60)
        self.assert_goes_on(runs, workers)
        self.end(runs)

    def test_the_role_is_taken_away_and_given_back(self):
        leader, standby, runs = self.begin()
        self.tell({"forbid": ["update leases", "update configmaps"]})
        leader.wait_for("this service stands by: Kubernetes at .*lacks the rule", 60)
        self.tell({"forbid": []})
        self.assertTrue(lab.poll(lambda: re.search(self.leads, leader.err + standby.err), 60))
        self.assert_goes_on(runs, 2)
        self.end(runs)


if __name__ == "__main__":
    lab.main()
