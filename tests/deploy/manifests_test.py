#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Checks deploy/kubernetes against the schemas of Kubernetes, JobSet and Kubeflow: types, enums,
required fields, and no field that is not in the schema.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
SKIP = 77

try:
    import kubernetes.client
    import kubernetes_validate
    import yaml
    from kubeflow.training import models as training
    from kubeflow_trainer_api import models as trainer
    from kubernetes.client import ApiClient
except ImportError as missing:
    chosen = os.environ.get("HLAUNCH_SCHEMAS_PYTHON", "")
    if os.access(chosen, os.X_OK) and not os.environ.get("HLAUNCH_SCHEMAS_TRIED"):
        os.environ["HLAUNCH_SCHEMAS_TRIED"] = "yes"
        os.execv(chosen, [chosen, *sys.argv])
    print(f"skipped: {missing} (see tests/deploy/schema_requirements.txt)")
    sys.exit(SKIP)


def documents(path):
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def pod_templates(value):
    """Yields all pod templates in a value."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield value
        for inner in value.values():
            yield from pod_templates(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_templates(inner)


def serves(container):
    return container.get("command") == ["hlaunch-rendezvous"]


def services(path):
    """Yields the containers that are a rendezvous service, with the account of their pods."""
    for document in documents(path):
        for template in pod_templates(document):
            spec = template["spec"]
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                if serves(container):
                    yield container, spec.get("serviceAccountName")


def check_kubernetes(document):
    kubernetes_validate.validate(document, "1.37", strict=True)


def check_model(document, model):
    check_kept(document, model.from_dict(copy.deepcopy(document)).to_dict())


def check_pytorchjob(document):
    """PyTorchJob's models come from an older generator, so that generator's client reads them."""
    client = ApiClient()
    for name in dir(training):
        setattr(kubernetes.client.models, name, getattr(training, name))
    response = types.SimpleNamespace(data=json.dumps(document))
    model = client.deserialize(response, "KubeflowOrgV1PyTorchJob")
    check_kept(document, client.sanitize_for_serialization(model))


def check_kept(document, kept):
    """Models drop unknown fields, so nothing may be lost."""
    if unknown := lost(document, kept):
        raise ValueError(f"not in the schema: {unknown}")


def lost(had, kept, path=""):
    if isinstance(had, dict) and isinstance(kept, dict):
        return [found for key in had
                for found in (lost(had[key], kept[key], f"{path}.{key}") if key in kept
                              else [f"{path}.{key}"])]
    if isinstance(had, list) and isinstance(kept, list) and len(had) == len(kept):
        return [found for i, (one, other) in enumerate(zip(had, kept))
                for found in lost(one, other, f"{path}[{i}]")]
    return [] if had == kept else [path]


def check(document):
    kind = document["kind"]
    if kind == "JobSet":
        check_model(document, trainer.JobsetV1alpha2JobSet)
    elif kind == "TrainJob":
        check_model(document, trainer.TrainerV1alpha1TrainJob)
    elif kind == "PyTorchJob":
        check_pytorchjob(document)
    else:
        check_kubernetes(document)
    for template in pod_templates(document):
        spec = {"restartPolicy": "Always", **template["spec"]}
        check_kubernetes({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"},
                          "spec": spec})


class Schemas(unittest.TestCase):
    def test_every_manifest(self):
        self.assertGreaterEqual(len(MANIFESTS), 5)
        for path in MANIFESTS:
            for document in documents(path):
                with self.subTest(f"{path.name} {document['kind']}"):
                    check(document)

    def test_a_mistake_is_found(self):
        """Tries, in each manifest, a field that does not exist and a word in place of a number."""
        for path in MANIFESTS:
            for document in documents(path):
                for wrong in self.mistakes(document):
                    with self.subTest(f"{path.name} {document['kind']}"):
                        with self.assertRaises(Exception):
                            check(wrong)

    def mistakes(self, document):
        unknown = copy.deepcopy(document)
        unknown.get("spec", unknown)["nosuchfield"] = 1
        yield unknown
        if any(pod_templates(document)):
            unknown = copy.deepcopy(document)
            next(pod_templates(unknown))["spec"]["containers"][0]["imagee"] = "x"
            yield unknown
            word = copy.deepcopy(document)
            next(pod_templates(word))["spec"]["terminationGracePeriodSeconds"] = "soon"
            yield word


class Token(unittest.TestCase):
    def test_every_container_has_it_of_the_secret(self):
        for path in MANIFESTS:
            for document in documents(path):
                if document["kind"] == "TrainJob":
                    self.assertEqual(document["spec"]["trainer"]["env"], [
                        {"name": "HLAUNCH_TOKEN",
                         "valueFrom": {"secretKeyRef": {"name": "hlaunch", "key": "token"}}}])
                for template in pod_templates(document):
                    with self.subTest(f"{path.name} {document['kind']}"):
                        self.check_volume(template["spec"])

    def check_volume(self, spec):
        secrets = {volume["name"]: volume["secret"]["secretName"]
                   for volume in spec["volumes"] if "secret" in volume}
        for container in spec["containers"]:
            places = [mount["mountPath"] for mount in container["volumeMounts"]
                      if secrets.get(mount["name"]) == "hlaunch"]
            self.assertIn(f"--token-file={places[0]}/token", container["args"])


class Pods(unittest.TestCase):
    """What pods need besides their command."""

    def test_every_pod_has_shared_memory(self):
        for path in MANIFESTS:
            for document in documents(path):
                for template in pod_templates(document):
                    if serves(template["spec"]["containers"][0]):
                        continue  # It has no workers.
                    with self.subTest(f"{path.name} {document['kind']}"):
                        memory = [volume["name"] for volume in template["spec"]["volumes"]
                                  if volume.get("emptyDir", {}).get("medium") == "Memory"]
                        mounts = template["spec"]["containers"][0]["volumeMounts"]
                        self.assertIn({"name": memory[0], "mountPath": "/dev/shm"}, mounts)

    def test_every_job_gives_up_where_trying_again_changes_nothing(self):
        final = [int(code) for code in re.search(
            r"values: \[(.*)\]", (ROOT / "launcher/manual/exit-codes.md").read_text("utf-8"))[1]
            .split(",")]
        for path in MANIFESTS:
            for job in (document for document in documents(path) if document["kind"] == "Job"):
                with self.subTest(path.name):
                    rule = job["spec"]["podFailurePolicy"]["rules"][0]
                    containers = job["spec"]["template"]["spec"]["containers"]
                    self.assertEqual((rule["action"], rule["onExitCodes"]["values"]),
                                     ("FailJob", final))
                    self.assertEqual(rule["onExitCodes"]["containerName"], containers[0]["name"])
                    # All pods fail together, and each failure counts.
                    self.assertEqual(job["spec"]["backoffLimit"] % job["spec"]["completions"], 0)


class Records(unittest.TestCase):
    """Services that keep their jobs in Kubernetes may do that, and nothing else."""

    def test_the_account_of_a_service_has_a_role_for_what_it_asks(self):
        found = 0
        for path in MANIFESTS:
            for container, account in services(path):
                found += 1
                self.assertIn("--state=k8s://", container["args"])
                kinds = {(document["kind"], document["metadata"]["name"]): document
                         for document in documents(path)}
                self.assertIn(("ServiceAccount", account), kinds)
                binding = kinds["RoleBinding", account]
                self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": account}])
                rules = {(rule["apiGroups"][0], rule["resources"][0]): set(rule["verbs"])
                         for rule in kinds["Role", binding["roleRef"]["name"]]["rules"]}
                self.assertEqual(rules, {
                    ("coordination.k8s.io", "leases"): {"get", "create", "update"},
                    ("", "configmaps"): {"get", "list", "create", "update", "delete"}})
        self.assertEqual(found, 2)


class Commands(unittest.TestCase):
    """hlaunch accepts what containers run."""

    def setUp(self):
        self.hlaunch = pathlib.Path(os.environ["HLAUNCH_BIN"]) / "hlaunch"
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.token = pathlib.Path(folder.name) / "token"
        subprocess.run([self.hlaunch, "token", "--file", self.token], check=True, timeout=300,
                       capture_output=True)

    def test_hlaunch_takes_every_command_line(self):
        values = {"JOB_COMPLETION_INDEX": "0", "RANK": "0", "MASTER_ADDR": "127.0.0.1",
                  "MASTER_PORT": "23456"}
        pet = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "0",
               "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": "29500"}
        for path in MANIFESTS:
            for document in documents(path):
                trainjob = document["kind"] == "TrainJob"
                containers = [document["spec"]["trainer"]] if trainjob else [
                    template["spec"]["containers"][0] for template in pod_templates(document)]
                for container in containers:
                    if serves(container):
                        continue
                    words = [re.sub(r"\$\((\w+)\)", lambda m: values[m[1]], word)
                             for word in container["args"]]
                    words = [re.sub("^--token-file=.*", f"--token-file={self.token}", word)
                             for word in words]
                    script = next(i for i, word in enumerate(words) if not word.startswith("-"))
                    words[script] = str(ROOT / "deploy/examples" / pathlib.Path(words[script]).name)
                    done = subprocess.run(
                        [self.hlaunch, "--dry-run", *words], text=True, capture_output=True, timeout=300,
                        check=False, env={**os.environ, **(pet if trainjob else {})})
                    self.assertEqual(done.returncode, 0, f"{path.name}: {done.stderr}")
                    self.assertRegex(done.stdout, "2( to 4)? nodes", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
