#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Workers get their devices on a machine that a folder of files describes."""

import json
import os

import jobs
import lab

MODULES = [5, 4, 7, 6, 1, 0, 3, 2]  # By the kernel's device index.
DUMP = "import json, os; print('ENV', json.dumps(dict(os.environ)), flush=True)"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, path)


def describe_gaudi2_server(root):
    for index, module in enumerate(MODULES):
        address = f"0000:{0x19 + index:02x}:00.0"
        function = root / "sys/bus/pci/devices" / address
        for name, text in {"vendor": "0x1da3", "device": "0x1020", "numa_node": "-1",
                           "module_id": str(module), "status": "Operational"}.items():
            put(function / name, text)
        link(function / "driver", "../../drivers/habanalabs")
        link(root / f"sys/class/accel/accel{index}/device", f"../../../bus/pci/devices/{address}")
        put(root / f"dev/accel/accel{index}", "")


class Devices(jobs.JobTest):
    count = 1

    def setUp(self):
        super().setUp()
        self.root = self.nodes[0].folder / "machine"
        describe_gaudi2_server(self.root)

    def hlaunch(self, *words, env=None):
        return self.nodes[0].start(lab.HLAUNCH, "--sysroot", self.root, *words,
                                   env={"PYTHON_EXEC": jobs.PYTHON, **(env or {})})

    def seen(self, *words, env=None):
        """The environments that the workers saw, by rank."""
        run = self.hlaunch(*words, "--no-python", jobs.PYTHON, "-c", DUMP, env=env)
        self.assert_done([run], 0, 20)
        lines = [line.split("ENV ", 1)[1] for line in run.out.splitlines() if "ENV " in line]
        return sorted((json.loads(line) for line in lines), key=lambda e: int(e["RANK"]))

    def test_one_worker_for_each_card_and_all_know_the_list(self):
        workers = self.seen("--nproc-per-node", "hpu")
        self.assertEqual([w["HLS_MODULE_ID"] for w in workers], [str(i) for i in range(8)])
        self.assertEqual({w["HABANA_VISIBLE_MODULES"] for w in workers}, {"0,1,2,3,4,5,6,7"})

    def test_an_outer_launchers_module_is_not_inherited(self):
        workers = self.seen("--nproc-per-node", "2", env={"HLS_MODULE_ID": "7"})
        self.assertEqual([w["HLS_MODULE_ID"] for w in workers], ["0", "1"])

    def test_a_card_that_is_held_is_refused_or_warned_of(self):
        put(self.root / "proc/77/comm", "python3")
        link(self.root / "proc/77/fd/5", "/dev/accel/accel5")
        run = self.hlaunch("--nproc-per-node", "8", "--no-python", "true")
        self.assert_done([run], jobs.NO_RESOURCES, 10)
        self.assert_said(run, r"hpu 0 \(/dev/accel/accel5\) is held by python3 \(pid 77\)")
        self.assertEqual(len(run.err.splitlines()), 1, str(run))
        run = self.hlaunch("--nproc-per-node", "8", "--oversubscribe", "--no-python", "true")
        self.assert_done([run], 0, 10)
        self.assert_said(run, r"is held by python3 \(pid 77\)")
        workers = self.seen("--nproc-per-node", "2")
        self.assertEqual([w["HLS_MODULE_ID"] for w in workers], ["2", "3"])

    def test_no_devices_where_none_are_wanted(self):
        for words in (["--devices", "none", "--nproc-per-node", "3"], ["--nproc-per-node", "cpu"]):
            for worker in self.seen(*words):
                self.assertNotIn("HLS_MODULE_ID", worker)

    def test_the_table(self):
        run = self.nodes[0].start(lab.HLAUNCH, "devices", "--sysroot", self.root, "--json")
        self.assert_done([run], 0, 10)
        cards = json.loads(run.out)["devices"]
        self.assertEqual([card["module_id"] for card in cards], list(range(8)))
        self.assertEqual([card["index"] for card in cards], [5, 4, 7, 6, 1, 0, 3, 2])
        self.assertEqual({card["numa_node"] for card in cards}, {None})
        run = self.nodes[0].start(lab.HLAUNCH, "devices", "--sysroot", "/nowhere")
        self.assert_done([run], jobs.USAGE, 10)
        self.assert_said(run, "/nowhere")


if __name__ == "__main__":
    lab.main()
