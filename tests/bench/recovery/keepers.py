# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Where a job's record is kept, for programs that kill its keepers: the job's own agents, or
services with a file, an etcd of three members, or Kubernetes. Hosts are the lab's. With services,
node0 has the data base, and node1 and node2 a service each (with a file only node1).

tend() restarts a service, a member or an API server that has ended, if its node may have it again.
"""

import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "end_to_end"))

import jobs  # pylint: disable=wrong-import-position
import lab
import trust_test

PORT = 29400
KUBE_API = lab.ROOT / "tests/rendezvous/failover/kubernetes/kube_api.py"


class Voters:
    """The agents themselves keep the record. node0 hosts the rendezvous first."""

    first, loss_limit, margin = 0, 3, 6
    what = "--on-host-loss wait"

    def __init__(self, nodes, _env):
        self._nodes, self._read, self._leads = nodes, {}, nodes[0].name

    def options(self):
        return ["--rdzv-endpoint", f"node0:{PORT}", "--on-host-loss", "wait", "--verbose"]

    def tend(self):
        pass

    def led_by_another(self):
        return True  # A node that comes back is one of many.

    def host(self, runs):
        """The leading node, as far as a console has reported it; `runs` is {node: its run}."""
        for run in runs.values():
            text = run.err
            for name in re.findall(r"; (node\d+) leads it since", text[self._read.get(run, 0):]):
                self._leads = name
            self._read[run] = text.rfind("\n") + 1
        return next(node for node in self._nodes if node.name == self._leads)


class Service:
    """One file on one node."""

    first, loss_limit, margin = 3, 2, 6
    servers, what = slice(1, 2), "--state file://"

    def __init__(self, nodes, env):
        self.control, self.nodes, self.env = nodes[0], nodes[self.servers], env
        self.down = set()  # Nodes, members and others that must not come back yet.
        self.running = {}  # {key: its run}; the key of a service is its node.

    def options(self):
        where = ",".join(f"{node.name}:{PORT}" for node in self.nodes)
        return ["--rdzv-endpoint", where, "--rdzv-id", "job"]

    def state(self):
        return [f"file://{self.control.folder / 'state'}"]

    def below(self):
        """{name: (node, command)} of the programs that keep the state for the services."""
        return {}

    def tend(self):
        for name, (node, command) in self.below().items():
            self._hold(name, node, command)
        for node in self.nodes:
            self._hold(node, node, [lab.BIN / "hlaunch-rendezvous", "--listen", PORT, "--state",
                                    *self.state()])

    def _hold(self, key, node, command):
        run = self.running.get(key)
        if key not in self.down and (run is None or run.process.poll() is not None):
            self.running[key] = node.start(*command, env=self.env)

    def host(self, _runs=None):
        """The node whose service leads by its own last message; any other if there is none."""
        return next(filter(self.leads, self.nodes), self.nodes[0])

    def leads(self, node):
        run = self.running[node]
        said = re.findall("this service (leads|stands by|has lost)", run.err)
        return said[-1:] == ["leads"] and node not in self.down and run.process.poll() is None

    def led_by_another(self):
        """Whether an allowed service leads; always true if there is only one."""
        return len(self.nodes) == 1 or any(map(self.leads, self.nodes))

    def pids(self, key):
        return lab.children(self.running[key].process.pid)


class Etcd(Service):
    """Three members, all on node0; each can be killed alone."""

    loss_limit, margin = 8, 8
    servers, what = slice(1, 3), "--state etcd:// with three members"
    members = ("e0", "e1", "e2")

    def _url(self, i, port):
        return f"http://{self.control.ip}:{port + i}"

    def below(self):
        return {name: (self.control, self._member(i)) for i, name in enumerate(self.members)}

    def _member(self, i):
        cluster = ",".join(f"{name}={self._url(k, 23890)}" for k, name in enumerate(self.members))
        return ["/usr/bin/etcd", "--name", self.members[i], "--data-dir",
                self.control.folder / self.members[i], "--listen-client-urls", self._url(i, 23790),
                "--advertise-client-urls", self._url(i, 23790), "--listen-peer-urls",
                self._url(i, 23890), "--initial-advertise-peer-urls", self._url(i, 23890),
                "--initial-cluster", cluster, "--unsafe-no-fsync", "--logger", "zap",
                "--log-level", "error"]

    def state(self):
        members = ",".join(self._url(i, 23790).removeprefix("http://") for i in range(3))
        return [f"etcd://{members}/lab"]


class Kubernetes(Service):
    """A real kube-apiserver of HLAUNCH_KUBE_BIN with an etcd of one member, or else the project's
    own small API server."""

    loss_limit, margin = 16, 10
    servers = slice(1, 3)

    def __init__(self, nodes, env):
        super().__init__(nodes, env)
        self._binary = pathlib.Path(os.environ.get("HLAUNCH_KUBE_BIN", "/nowhere"), "kube-apiserver")
        self.what = "--state k8s:// with " + ("a real API server" if self._binary.exists()
                                              else "the project's own small API server")
        site = trust_test.Site(self.control.folder / "site")
        site.files("kube")
        self._site = site.folder
        (self._site / "token").write_text("secret\n", encoding="utf-8")
        (self._site / "tokens").write_text("secret,hlaunch,hlaunch,system:masters\n",
                                           encoding="utf-8")
        for node in nodes:
            node.know("kube", self.control.ip)

    @property
    def members(self):
        return ("api",)

    def below(self):
        if not self._binary.exists():
            return {"api": (self.control, [
                jobs.PYTHON, KUBE_API, "--listen", "0.0.0.0", "--port", 6443, "--cert",
                self._site / "kube.crt", "--key", self._site / "kube.key", "--tokens",
                self._site / "token"])}
        etcd = ["/usr/bin/etcd", "--data-dir", self.control.folder / "etcd", "--unsafe-no-fsync",
                "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls",
                "http://127.0.0.1:2379", "--logger", "zap", "--log-level", "error"]
        return {"etcd": (self.control, etcd), "api": (self.control, self._api())}

    def _api(self):
        key, certificate = self._site / "kube.key", self._site / "kube.crt"
        return [self._binary, "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0",
                f"--advertise-address={self.control.ip}", "--secure-port=6443", "--insecure-port=0",
                f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
                "--service-cluster-ip-range=10.96.0.0/24",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-signing-key-file={key}",
                f"--service-account-key-file={certificate}",
                f"--token-auth-file={self._site / 'tokens'}", "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none"]

    def state(self):
        return ["k8s://default", "--state-api", "https://kube:6443", "--state-ca",
                self._site / "ca.crt", "--state-token-file", self._site / "token"]


KINDS = {"voters": Voters, "file": Service, "etcd": Etcd, "k8s": Kubernetes}
