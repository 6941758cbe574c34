#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The StatefulSet of deploy/kubernetes on a real cluster, with the image of deploy/container: the
kubelet's probes, its SIGTERM, and the termination message that it reads. Opt-in, see kube_lab.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import image_test
import kube_lab
import lab

MANIFEST = lab.ROOT / "deploy/kubernetes/statefulset.yaml"
PAUSE = "#include <signal.h>\n#include <unistd.h>\nstatic void end(int s) { _exit(s != SIGTERM); }\n" \
        "int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }\n"
NEEDED = ("etcd", "containerd", "ctr", "kubectl", "openssl", "gcc")


class Kube(image_test.ImageCase):
    count = 3

    @classmethod
    def setUpClass(cls):
        cls.binaries = pathlib.Path(os.environ.get("HLAUNCH_KUBE_BIN", "/nowhere"))
        if not (cls.binaries / "kubelet").exists():
            raise unittest.SkipTest("opt-in: HLAUNCH_KUBE_BIN names no folder with kubelet in it "
                                    "(tests/run --full makes one)")
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise unittest.SkipTest(f"needs {', '.join(missing)} in PATH")
        super().setUpClass()
        pause = cls.folder / "pause"
        pause.mkdir()
        (pause / "pause.c").write_text(PAUSE)
        subprocess.run(["gcc", "-static", "-O2", "-o", pause / "pause", pause / "pause.c"],
                       check=True)
        (pause / "Containerfile").write_text("FROM scratch\nCOPY pause /pause\nCMD [\"/pause\"]\n")
        cls.podman.run("build", "-q", "--network=none", "-t", "localhost/pause:1", pause)
        cls.images = cls.folder / "images.tar"
        cls.podman.run("save", "-q", "--format", "docker-archive", "-m", "-o", cls.images,
                       image_test.IMAGE, "localhost/pause:1", timeout=120)

    def setUp(self):
        self.addCleanup(kube_lab.remove_groups)  # After the nodes, whose containers were in them.
        super().setUp()
        self.cluster = kube_lab.Cluster(self.nodes, self.binaries, self.images)
        token = self.folder / f"token-{self.id()}"
        subprocess.run([lab.BIN / "hlaunch", "token", "--file", token], check=True)
        self.cluster.kubectl("create", "secret", "generic", "hlaunch", f"--from-file=token={token}")
        self.service = self.nodes[0].start(lab.BIN / "hlaunch-rendezvous", "--token-file", token)
        self.service.wait_for("listening on")

    def manifest(self, command):
        documents = image_test.documents(MANIFEST)
        spec = documents[1]["spec"]["template"]["spec"]
        main = spec["containers"][0]
        main.update(image=image_test.IMAGE, imagePullPolicy="Never")
        main["resources"] = {"limits": {"memory": "256Mi"}}
        words = [f"--rdzv-endpoint={self.nodes[0].ip}" if word.startswith("--rdzv-endpoint=") else
                 word for word in main["args"]]
        script = next(i for i, word in enumerate(words) if word[0] != "-")
        main["args"] = [*words[:script], "--no-python", "sh", "-c", command]
        return documents

    def apply(self, documents):
        for document in documents:
            self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps(document))

    def await_log(self, pod, pattern, timeout=60):
        def said():
            return re.search(pattern, self.cluster.kubectl("logs", pod, check=False)[1])
        found = lab.poll(said, timeout, 0.5)
        if not found:
            self.fail(f"{pod} never said {pattern}: " + self.cluster.kubectl(
                "logs", pod, check=False)[1] + self.cluster.kubectl("describe", "pods")[1][-3000:])

    def test_a_stateful_set_lives_fails_and_goes(self):
        self.apply(self.manifest(image_test.FOR_EVER))
        for index in (0, 1):
            for rank in (2 * index, 2 * index + 1):
                self.await_log(f"train-{index}", f"rank {rank} of 4 as 65532")
        # The kubelet's own probe of /readyz makes the pods ready.
        self.cluster.kubectl("wait", "--for=condition=Ready", "pod/train-0", "pod/train-1",
                             "--timeout=60s")
        # A pod is deleted: it gets SIGTERM, its node leaves the job, and a new pod joins as that
        # node.
        self.cluster.kubectl("delete", "pod", "train-1", "--wait=true")
        self.await_log("train-1", "rank 3 of 4 as 65532")
        self.await_log("train-0", r"(?s)drained.*rank 0 of 4")
        self.cluster.kubectl("delete", "statefulset", "train", "--wait=true")

        pod = self.manifest("exit $((7 * RANK))")[1]["spec"]["template"]
        words = pod["spec"]["containers"][0]["args"]
        pod["spec"]["containers"][0]["args"] = [
            word for word in words if not word.startswith(("--nnodes", "--max-restarts"))]
        self.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fails"},
                     "spec": {**pod["spec"], "restartPolicy": "Never"}}])

        def ended():
            state = self.cluster.get("pod", "fails")["status"].get("containerStatuses", [{}])[0]
            return state.get("state", {}).get("terminated")
        told = lab.poll(ended, 60, 0.5)
        self.assertEqual(told["exitCode"], 7, told)
        self.assertRegex(told["message"], "^job failed: rank 1 .* exited with code 7")


if __name__ == "__main__":
    lab.main()
