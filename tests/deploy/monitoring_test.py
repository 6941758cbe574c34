#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""deploy/monitoring names only metrics and labels that the programs serve, and manual pages and
options that exist.

Usage: monitoring_test.py BUILD_FOLDER
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve() / "bin"
FOLDER = ROOT / "deploy/monitoring"
LIMIT = 120  # Seconds, for a busy machine.
# Labels that Prometheus itself adds to each series.
OF_PROMETHEUS = {"instance", "job"}
WORKER = "echo loss=0.5; exec sleep 600"


# Metrics that a head serves about devices, which its hosts do not have here.
OF_DEVICES = {"hlaunch_head_devices": {"kind": set()}, "hlaunch_head_devices_free": {"kind": set()}}


def parsed(text):
    """{metric: {label: values}}"""
    metrics = {}
    for name, labels in re.findall(r"^(hlaunch_\w+)(?:\{(.*)\})? ", text, re.M):
        of_metric = metrics.setdefault(name, {})
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            of_metric.setdefault(label, set()).add(value)
    return metrics


def served_by_a_head():
    """{metric: {label: values}} of the head of a one-host cluster, which only root can make."""
    sys.path.insert(0, str(ROOT / "tests/end_to_end"))
    os.environ["HLAUNCH_BIN"] = str(BIN)
    import lab  # pylint: disable=import-outside-toplevel
    import own_cluster_lab  # pylint: disable=import-outside-toplevel
    with contextlib.ExitStack() as stack:
        of = lab.Lab(1)
        try:
            cluster = own_cluster_lab.OwnCluster(of)
            stack.callback(cluster.close)
            cluster.init()
            cluster.kill("head")
            head = of.nodes[0].start(
                "setpriv", f"--reuid={own_cluster_lab.HEAD_UID}", f"--regid={own_cluster_lab.HEAD_UID}",
                "--clear-groups", own_cluster_lab.HLAUNCHD, "head", "--folder", "/var/lib/hlaunch-head",
                "--listen", own_cluster_lab.PORT, "--metrics-port", 0)
            cluster.head = head
            cluster.await_all_here()
            url = head.wait_for(r"metrics are at (http://\S+)").group(1)
            text = of.nodes[0].run("/usr/bin/python3", "-c", "import sys, urllib.request as u;"
                                   "print(u.urlopen(sys.argv[1]).read().decode())", url).out
        finally:
            of.close()
    missing = [name for name in OF_DEVICES if f"# TYPE {name} gauge" not in text]
    assert not missing, text
    return {**parsed(text), **OF_DEVICES}


def served_by(*words):
    """{metric: {label: values}} of a program that prints where it serves them."""
    process = subprocess.Popen([str(word) for word in words], text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wanted = "hlaunch_log_value" if "--watch-log" in words else "hlaunch_"
        address = said = ""
        for line in process.stdout:
            said += line
            if found := re.search(r"metrics are at (http://\S+)", line):
                address = found[1]
                break
        assert address, said
        text = ""
        while wanted not in text and process.poll() is None:
            with urllib.request.urlopen(address, timeout=LIMIT) as answer:
                text = answer.read().decode()
            time.sleep(0.05)
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)
    return parsed(text)


def expressions(value):
    """Yields all queries of a dashboard to Prometheus."""
    if isinstance(value, dict):
        yield from (value["expr"],) if "expr" in value else ()
        if isinstance(value.get("query"), str):
            yield value["query"]
        for inner in value.values():
            yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.served = {
            **served_by(BIN / "hlaunch", "--metrics-port", 0, "--watch-log", r"metric:loss=(?P<loss>\S+)",
                        "--no-python", "sh", "-c", WORKER),
            **served_by(BIN / "hlaunch-rendezvous", "--listen", "127.0.0.1:0", "--metrics-port", 0)}
        cls.has_head = os.geteuid() == 0
        if cls.has_head:
            cls.served.update(served_by_a_head())
        cls.dashboard = (FOLDER / "dashboard.json").read_text(encoding="utf-8")
        cls.alerts = (FOLDER / "alerts.yaml").read_text(encoding="utf-8")

    def is_known_here(self, name):
        return self.has_head or not name.startswith("hlaunch_head_")

    def assert_served(self, text):
        for name in set(re.findall(r"\bhlaunch_[a-z_]+", text)):
            if self.is_known_here(name):
                self.assertIn(name, self.served)
        for name, inside in re.findall(r"\b(hlaunch_[a-z_]+)\{([^}]*)\}", text):
            if not self.is_known_here(name):
                continue
            for label, how, value in re.findall(r'(\w+)(=~?)\\?"([^"\\]*)', inside):
                self.assertIn(label, self.served[name])
                if how == "=":
                    self.assertIn(value, self.served[name][label], f"{name}: {label}")

    def test_the_programs_serve_something(self):
        for name in ("hlaunch_up", "hlaunch_log_value", "hlaunch_rendezvous_jobs"):
            self.assertIn(name, self.served)

    def test_the_dashboard_asks_for_what_is_served(self):
        asked = list(expressions(json.loads(self.dashboard)))
        self.assertGreater(len(asked), 10)
        self.assert_served("\n".join(asked))

    def test_alerts_ask_for_what_is_served(self):
        self.assertGreater(self.alerts.count("- alert:"), 5)
        self.assert_served(re.sub(r"#.*", "", self.alerts))

    def test_labels_that_are_grouped_by_or_shown_are_there(self):
        known = {label for labels in self.served.values() for label in labels} | OF_PROMETHEUS
        if not self.has_head:
            known |= {"state", "kind", "whose"}
        for text in (self.dashboard, self.alerts):
            for words in re.findall(r"(?:\bby|group_left|\bon) \(([^)]*)\)", text):
                self.assertEqual(set(words.replace(" ", "").split(",")) - known, set())
            self.assertEqual(set(re.findall(r"\{\{ *(?:\$labels\.)?([a-z]\w*) *\}\}", text)) - known, set())

    def test_what_is_served_is_shown(self):
        """Metrics that are always 1 need not be shown."""
        shown = set(re.findall(r"\bhlaunch_[a-z_]+", self.dashboard))
        self.assertEqual({name for name in self.served if not name.endswith("_up")} - shown, set())

    def test_panels_lie_beside_each_other(self):
        taken = set()
        for panel in json.loads(self.dashboard)["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertEqual(taken & cells, set(), panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells

    def test_alerts_are_rules(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("no yaml (Debian: python3-yaml)")
        rules = yaml.safe_load(self.alerts)["groups"][0]["rules"]
        self.assertEqual(len({rule["alert"] for rule in rules}), len(rules))
        for rule in rules:
            self.assertEqual(set(rule) - {"alert", "expr", "for", "labels", "annotations"}, set())
            self.assertIn(rule["labels"]["severity"], ("info", "warning", "critical"))
            self.assertEqual(set(rule["annotations"]) - {"summary", "description"}, set())
            self.assertEqual(rule["expr"].count("("), rule["expr"].count(")"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
