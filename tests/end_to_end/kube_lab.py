# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A Kubernetes cluster on the lab's nodes: the control plane on node0, kubelet and containerd on
the others. It is release 1.20, the last that Debian has as source (tests/kubernetes_binaries builds
it). It has no Indexed Job, and there is no cluster DNS.

Nothing of it changes this machine: kubelet writes machine-wide settings into files that are mounted
over /proc/sys on its node alone.
"""

import json
import pathlib
import secrets
import subprocess

import lab

SYSCTLS = {"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10",
           "kernel/panic_on_oops": "1", "kernel/keys/root_maxkeys": "1000000",
           "kernel/keys/root_maxbytes": "25000000"}
CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""
KUBELET = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
           "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [],
           "failSwapOn": False, "oomScoreAdj": 0, "maxOpenFiles": 20000,
           "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
           "authorization": {"mode": "AlwaysAllow"}, "nodeStatusUpdateFrequency": "2s",
           "evictionHard": {}, "imageGCHighThresholdPercent": 100}


def remove_groups():
    """Removes what containerd leaves in this machine's hierarchies of control groups."""
    for group in pathlib.Path("/sys/fs/cgroup").glob("*/k8s.io"):
        lab.poll(lambda group=group: lab.remove_group(group), 5)


class Cluster:
    def __init__(self, nodes, binaries, images):
        """`images`: an archive that contains localhost/pause:1."""
        self.control, self.workers = nodes[0], nodes[1:]
        self.binaries, self.folder = pathlib.Path(binaries), nodes[0].folder / "kube"
        self.folder.mkdir()
        self.config = self.folder / "kubeconfig"
        self._control_plane()
        for node in self.workers:
            self._worker(node, images)
        self._controllers()
        ready = lab.poll(lambda: self.ready_nodes() == len(self.workers), 90, 0.5)
        account = lab.poll(lambda: self.kubectl("get", "sa", "default", check=False)[0] == 0, 30, 0.5)
        if not (ready and account):
            raise AssertionError("no cluster:\n" + "\n".join(
                f"{run.argv[0]}: {run.err[-400:]}" for run in nodes[0].lab.runs))

    def program(self, node, name, *words):
        return node.start(self.binaries / name, *words, cwd=self.folder)

    def kubectl(self, *words, check=True, stdin=None):
        """Returns the exit code and the output."""
        done = subprocess.run(
            [*self.control.enter(), "kubectl", f"--kubeconfig={self.config}", *map(str, words)],
            text=True, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
            check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {words}: {done.stdout}")
        return done.returncode, done.stdout

    def get(self, *words):
        return json.loads(self.kubectl("get", "-o", "json", *words)[1])

    def ready_nodes(self):
        code, out = self.kubectl("get", "nodes", "--no-headers", check=False)
        return sum(line.split()[1] == "Ready" for line in out.splitlines()) if code == 0 else 0

    def _control_plane(self):
        folder, ip = self.folder, self.control.ip
        subprocess.run(["openssl", "genrsa", "-out", folder / "sa.key", "2048"], check=True,
                       capture_output=True)
        token = secrets.token_hex(16)
        (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
        self.config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": f"https://{ip}:6443",
                                                     "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}]}))
        self.control.start("etcd", "--data-dir", folder / "etcd", "--unsafe-no-fsync",
                           "--listen-client-urls", "http://127.0.0.1:2379",
                           "--advertise-client-urls", "http://127.0.0.1:2379")
        self.program(self.control, "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
                     "--bind-address=0.0.0.0", f"--advertise-address={ip}", "--secure-port=6443",
                     f"--cert-dir={folder}/api", "--service-cluster-ip-range=10.96.0.0/24",
                     "--service-account-issuer=https://kubernetes.default.svc",
                     "--service-account-signing-key-file=sa.key",
                     "--service-account-key-file=sa.key", "--token-auth-file=tokens.csv",
                     "--authorization-mode=RBAC", "--allow-privileged", "--insecure-port=0",
                     "--kubelet-preferred-address-types=InternalIP")
        lab.poll(lambda: self.kubectl("get", "--raw", "/readyz", check=False)[0] == 0, 90, 0.3)

    def _controllers(self):
        common = [f"--kubeconfig={self.config}", "--leader-elect=false", "--port=0"]
        self.program(self.control, "kube-controller-manager", *common,
                     "--service-account-private-key-file=sa.key",
                     "--use-service-account-credentials", f"--cert-dir={self.folder}/manager")
        self.program(self.control, "kube-scheduler", *common,
                     f"--cert-dir={self.folder}/scheduler")

    def _worker(self, node, images):
        folder = node.folder / "kube"
        (folder / "cni").mkdir(parents=True)
        subnet = f"10.244.{node.index}.0/24"
        for other in [self.control, *self.workers]:
            if other is not node:
                other.run("ip", "route", "add", subnet, "via", node.ip)
        (folder / "cni/10.conflist").write_text(json.dumps(
            {"cniVersion": "0.4.0", "name": "lab", "plugins": [
                {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False,
                 "ipam": {"type": "host-local", "dataDir": f"{folder}/ipam",
                          "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}))
        (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder))
        (folder / "resolv.conf").write_text("")
        (folder / "kubelet.json").write_text(json.dumps(
            {**KUBELET, "resolvConf": f"{folder}/resolv.conf"}))
        for name, value in SYSCTLS.items():
            file = folder / name.replace("/", "_")
            file.write_text(value + "\n")
            node.run("mount", "--bind", file, f"/proc/sys/{name}")
        node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        node.start("containerd", "-c", folder / "containerd.toml")
        ctr = ["ctr", "-a", folder / "containerd.sock"]
        lab.poll(lambda: node.run(*ctr, "version").code == 0, 30, 0.2)
        loaded = node.run(*ctr, "-n", "k8s.io", "images", "import", images, timeout=120)
        if loaded.code != 0:
            raise AssertionError(str(loaded))
        self.program(node, "kubelet", f"--kubeconfig={self.config}",
                     f"--config={folder}/kubelet.json", "--container-runtime=remote",
                     f"--container-runtime-endpoint=unix://{folder}/containerd.sock",
                     f"--root-dir={folder}/kubelet", f"--cert-dir={folder}/pki",
                     f"--node-ip={node.ip}", f"--hostname-override={node.name}",
                     "--network-plugin=cni")
