#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The image of deploy/container, built with podman, and the Indexed Job of deploy/kubernetes as
pods on nodes of the lab: any user, a read-only root, no init, limits, a real SIGTERM.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import jobs
import lab
import podman

IMAGE, BASE, CARRIER = "localhost/hlaunch:test", "localhost/base", "localhost/hlaunch:carrier"
CONTAINERFILE = lab.ROOT / "deploy/container/Containerfile"
JOB = lab.ROOT / "deploy/kubernetes/indexed-job.yaml"
ANY_IMAGE = lab.ROOT / "deploy/kubernetes/any-image.yaml"
AS_JSON = "import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)"
SCRIPT = 'trap "sleep 1; echo drained; exit 0" TERM; echo "rank $RANK of $WORLD_SIZE as $(id -u)' \
         ' threads $OMP_NUM_THREADS at $MASTER_ADDR"; '
FOR_EVER = SCRIPT + "while :; do sleep 0.1; done"
HOG = "x = bytearray(1)\nwhile True: x += bytes(1 << 20)"


def documents(path):
    done = subprocess.run(["/usr/bin/python3", "-c", AS_JSON], text=True, check=True,
                          input=path.read_text(encoding="utf-8"), capture_output=True)
    return json.loads(done.stdout)


class ImageCase(lab.LabTest):
    """Provides podman with the image in its store."""

    @classmethod
    def setUpClass(cls):
        base = pathlib.Path(os.environ.get("HLAUNCH_IMAGE_BASE", "/nowhere"))
        if os.geteuid() != 0 or not shutil.which("podman") or not shutil.which("runc"):
            raise unittest.SkipTest("needs root, podman and runc")
        if not base.is_file():
            raise unittest.SkipTest(f"no base for an image at {base} (tests/run makes it)")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="hlaunch-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.podman = podman.Podman(cls.folder)
        cls.addClassCleanup(cls.podman.run, "system", "reset", "-f", check=False)
        imported = cls.podman.run("import", "-q", base, BASE, check=False)
        if imported.returncode != 0:
            raise unittest.SkipTest(f"podman cannot run here: {imported.stdout[-300:]}")
        cls.build()

    @classmethod
    def build(cls):
        """Builds the image; this build's programs replace the stage that compiles."""
        built = cls.folder / "built/built"
        for name, place in (("hlaunch", "bin"), ("hlaunch-rendezvous", "bin"),
                            ("hlaunch-agent", "libexec/hlaunch")):
            target = built / "usr/local" / place
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(lab.BIN / name, target)
            subprocess.run(["strip", target / name], check=True)
        cls.podman.run("build", "-q", "--network=none", "--pull=never", "-t", IMAGE,
                       "--build-arg", f"BASE={BASE}", "--build-context",
                       f"build={cls.folder / 'built'}", "-f", CONTAINERFILE, lab.ROOT, timeout=120)


class PodsCase(ImageCase):
    """Runs the pods of a manifest, one on each node."""

    def pods(self, command, manifest=JOB, image=IMAGE, **container):
        """Starts the Job's pods as its controller would, one on each node; returns their names."""
        secret = self.folder / "secret"
        secret.mkdir()
        subprocess.run([lab.BIN / "hlaunch", "token", "--file", secret / "token"], check=True)
        os.chown(secret / "token", 0, 65532)
        (secret / "token").chmod(0o440)
        service, job = documents(manifest)
        name = service["metadata"]["name"]
        self.assertEqual(job["spec"]["template"]["spec"]["subdomain"], name)
        files = []
        for index, node in enumerate(self.nodes):
            spec = json.loads(json.dumps(job["spec"]["template"]["spec"]).replace(
                "$(JOB_COMPLETION_INDEX)", str(index)))
            main = spec["containers"][0]
            main.update(image=image, imagePullPolicy="Never", **container)
            for init in spec.get("initContainers", ()):
                init.update(image=CARRIER, imagePullPolicy="Never")
            script = next(i for i, word in enumerate(main["args"]) if word[0] != "-")
            main["args"][script:] = ["--no-python", "sh", "-c", command]
            for probe in ("livenessProbe", "readinessProbe"):  # podman needs systemd for probes.
                del main[probe]
            main.pop("ports")  # Only for networks that podman makes.
            main["resources"] = {"limits": {"memory": "256Mi"}}
            # It replaces the cluster's name server.
            hosts = self.folder / f"hosts-{index}"
            hosts.write_text("127.0.0.1 localhost\n", encoding="utf-8")
            # podman has no Secrets as volumes; this folder looks as the kubelet would make it.
            token = next(volume for volume in spec["volumes"] if volume["name"] == "token")
            token["hostPath"] = {"path": str(secret), "type": "Directory"}
            self.assertEqual(token.pop("secret"), {"secretName": "hlaunch", "defaultMode": 0o440})
            spec["volumes"].append({"name": "hosts", "hostPath": {"path": str(hosts),
                                                                  "type": "File"}})
            main["volumeMounts"].append({"name": "hosts", "mountPath": "/etc/hosts"})
            spec["hostNetwork"] = True
            pod = {"apiVersion": "v1", "kind": "Pod",
                   "metadata": {"name": f"{name}-{index}"}, "spec": spec}
            file = self.folder / f"pod-{index}.json"
            file.write_text(json.dumps(pod), encoding="utf-8")
            # podman can put a pod only into the network namespace in which podman itself runs.
            self.podman.run("play", "kube", file, inside=["nsenter", "-t", str(node.init), "-n"])
            self.addCleanup(self.podman.run, "play", "kube", "--down", file, check=False)
            files.append(f"{name}-{index}-{main['name']}")
        return files

    def know_the_names(self):
        """Makes the pods' names known, as the headless service does."""
        names = "".join(f"{node.ip} train-{node.index}.train\n" for node in self.nodes)
        for node in self.nodes:
            with (self.folder / f"hosts-{node.index}").open("a", encoding="utf-8") as hosts:
                hosts.write(names)

    def logs(self, pod):
        return self.podman.run("logs", pod).stdout

    def await_logs(self, pods, pattern):
        def said():
            return all(re.search(pattern, self.logs(pod)) for pod in pods)
        self.assertTrue(lab.poll(said, 30, 0.2), "\n".join(map(self.logs, pods)))

    def get(self, node, path):
        """Asks from another node, as the kubelet does; returns the HTTP status."""
        client = ("import sys, urllib.request as u, urllib.error as e\n"
                  "try: print(u.urlopen(sys.argv[1], timeout=10).status)\n"
                  "except e.HTTPError as error: print(error.code, error.read().decode())")
        asker = self.nodes[1 - node.index]
        return asker.run("/usr/bin/python3", "-c", client, f"http://{node.ip}:9400{path}").out.strip()


class Image(PodsCase):
    def hlaunch(self, *words, options=()):
        """Runs one container with as few rights as possible and hlaunch as its entry point."""
        return self.podman.run(
            "run", "--rm", "--network=none", "--user", "12345:0", "--read-only",
            "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges",
            *options, IMAGE, *words, check=False)

    def test_the_image_is_small_has_the_example_and_no_rights(self):
        facts = json.loads(self.podman.run("inspect", IMAGE).stdout)[0]
        self.assertEqual(facts["Config"]["User"], "65532:65532")
        self.assertEqual(facts["Config"]["Entrypoint"], ["hlaunch"])
        print(f"the image has {facts['Size'] >> 20} MiB")
        self.assertLess(facts["Size"], 250 << 20)
        done = self.hlaunch("--dry-run", "/usr/local/share/hlaunch/examples/train_ddp.py")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("python3 -u /usr/local/share/hlaunch/examples/train_ddp.py", done.stdout)

    def test_any_user_and_nothing_to_write(self):
        done = self.hlaunch("--nproc-per-node", 2, "--no-python", "sh", "-c",
                            SCRIPT + "touch /tmp/x 2>&1 | tail -1; exit $((RANK * 7))")
        self.assertEqual(done.returncode, 7, done.stdout)
        for line in (r"^\[1\] rank 1 of 2 as 12345", "Read-only file system",
                     "no directory for error files", r"rank 1 .* exited with code 7"):
            self.assertRegex(done.stdout, re.compile(line, re.MULTILINE))

    def test_the_limit_of_cpus_is_that_of_threads(self):
        for limit, nproc, threads in (("1", 1, "1"), ("2", 1, str(min(2, os.cpu_count())))):
            done = self.hlaunch("--nproc-per-node", nproc, "--no-python", "sh", "-c", SCRIPT,
                                options=["--cpus", limit])
            self.assertIn(f"threads {threads} ", done.stdout)

    def test_a_worker_that_is_killed_for_its_limit_of_memory_is_reported_so(self):
        end = self.folder / "end"
        end.write_text("before")
        end.chmod(0o666)  # The kubelet makes it so.
        done = self.hlaunch("--nproc-per-node", 2, "--no-python", "sh", "-c",
                            f'[ $RANK = 0 ] && exec sleep 100; exec python3 -c "{HOG}"',
                            options=["--memory", "96m", "-v", f"{end}:/dev/termination-log"])
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stdout)
        why = r"rank 1 .*SIGKILL.*the kernel killed it for lack of memory"
        self.assertRegex(done.stdout, why)
        self.assertRegex(end.read_text(encoding="utf-8"), "^job failed: " + why)

    def test_the_indexed_job_as_pods(self):
        pods = self.pods(FOR_EVER)
        self.await_logs(pods[1:], r"waiting \d+ s for .* cannot resolve 'train-0\.train'")
        self.assertRegex(self.get(self.nodes[1], "/readyz"), "503 waiting .*'train-0.train'")
        self.know_the_names()
        for pod in pods:
            self.await_logs([pod], r"(?s)(rank \d of 4 as 65532 [^\n]* at 10\.77\.0\.10\n.*){2}")
        for index, pod in enumerate(pods):
            ranks = sorted(re.findall(r"rank (\d) of 4", self.logs(pod)))
            self.assertEqual(ranks, [str(2 * index), str(2 * index + 1)])
        for node in self.nodes:
            self.assertEqual([self.get(node, "/healthz"), self.get(node, "/readyz")], ["200", "200"])
        # The kubelet ends a pod this way: SIGTERM to pid 1, and a grace period.
        self.podman.run("stop", "-t", "30", pods[0])
        codes = [self.podman.run("wait", pod).stdout.strip() for pod in pods]
        self.assertEqual(codes, ["143", str(jobs.NODE_STOPPED)], "\n".join(map(self.logs, pods)))
        for pod in pods:
            self.assertEqual(self.logs(pod).count("drained"), 2, self.logs(pod))
            self.assertNotIn("token", self.logs(pod))


class Carrier(PodsCase):
    """The image of deploy/package/make_image, which holds only the programs."""

    @classmethod
    def build(cls):
        needs = subprocess.run(["readelf", "-Wd", lab.BIN / "hlaunch-agent"], text=True, check=True,
                               stdout=subprocess.PIPE).stdout
        if "(NEEDED)" in needs:
            raise unittest.SkipTest("the programs are not static, so no image can hold them alone")
        tree = cls.folder / "tree"
        for name, place in (("hlaunch", "bin"), ("hlaunch-agent", "libexec/hlaunch"),
                            ("hlaunch-pmix", "libexec/hlaunch")):
            if not (lab.BIN / name).exists():
                continue  # hlaunch-pmix, without libpmix-dev.
            (tree / place).mkdir(parents=True, exist_ok=True)
            subprocess.run(["strip", lab.BIN / name, "-o", tree / place / name], check=True)
        (tree / "bin/hlaunch-rendezvous").symlink_to("../libexec/hlaunch/hlaunch-agent")
        subprocess.run([lab.ROOT / "deploy/package/make_image", tree, cls.folder / "out"], check=True)
        (archive,) = (cls.folder / "out").iterdir()
        loaded = cls.podman.run("load", "-i", archive).stdout
        cls.podman.run("tag", loaded.split()[-1], CARRIER)

    def test_it_holds_the_programs_and_nothing_else(self):
        for words in (["--version"], ["--nproc-per-node", 2, "--no-python", "hlaunch", "--version"]):
            done = self.podman.run("run", "--rm", "--network=none", "--read-only", "--cap-drop=all",
                                   CARRIER, *words)
            self.assertIn("hlaunch 0.", done.stdout)
        done = self.podman.run("run", "--rm", "--network=none", CARRIER, "--no-python", "sh", check=False)
        self.assertEqual(done.returncode, jobs.NOT_FOUND, done.stdout)

    def test_its_copies_have_all_programs(self):
        folder = self.folder / "copies"
        folder.mkdir()
        folder.chmod(0o777)
        self.podman.run("run", "--rm", "--network=none", "-v", f"{folder}:/copies", CARRIER,
                        "--install-copies", "/copies")
        self.assertEqual({path.name for path in folder.iterdir()},
                         {name for name in ("hlaunch", "hlaunch-agent", "hlaunch-pmix")
                          if (lab.BIN / name).exists()})

    def test_any_image_as_pods(self):
        pods = self.pods(FOR_EVER, ANY_IMAGE, BASE)
        self.know_the_names()
        for index, pod in enumerate(pods):
            self.await_logs([pod], r"(?s)rank \d of 4 as 65532 .*rank \d of 4 as 65532")
            ranks = sorted(re.findall(r"rank (\d) of 4", self.logs(pod)))
            self.assertEqual(ranks, [str(2 * index), str(2 * index + 1)])
        self.podman.run("stop", "-t", "30", pods[0])
        codes = [self.podman.run("wait", pod).stdout.strip() for pod in pods]
        self.assertEqual(codes, ["143", str(jobs.NODE_STOPPED)], "\n".join(map(self.logs, pods)))


if __name__ == "__main__":
    lab.main()
