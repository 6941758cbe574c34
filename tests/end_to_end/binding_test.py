#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Workers run where --report-bindings says; described servers are bound as torchrun binds them."""

import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import jobs
import lab

SEEN = ("import json, os, threading\n"
        "thread = []\n"
        "t = threading.Thread(target=lambda: thread.extend(os.sched_getaffinity(0)))\n"
        "t.start(); t.join()\n"
        "print('CPUS', json.dumps([int(os.environ['LOCAL_RANK']), sorted(os.sched_getaffinity(0)),\n"
        "                          sorted(thread), os.environ['OMP_NUM_THREADS']]), flush=True)")
GPUS_OF_DGX_A100 = [3, 3, 1, 1, 7, 7, 5, 5]
TORCH2 = os.environ.get("HLAUNCH_TORCH2_PYTHON",
                        os.path.expanduser("~/.cache/hlaunch/torch-newest/bin/python"))
CPUSET = pathlib.Path("/sys/fs/cgroup/cpuset")


def put(path, text):
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n", encoding="utf-8")


def ranges(numbers):
    """Formats [0, 1, 2, 8] as 0-2,8."""
    numbers, parts = sorted(numbers), []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}-{b}" if b > a else str(a) for a, b in parts)


def numbers_of(text):
    found = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def mask(numbers):
    """Formats a set as the kernel does: words of 32 bits, the highest first."""
    value, words = sum(1 << n for n in numbers), []
    while value or not words:
        words.append(f"{value & 0xffffffff:08x}")
        value >>= 32
    return ",".join(reversed(words))


def describe_cpus(root, sockets, nodes, caches, cores, threads):
    """Writes the kernel's files of a server: nodes per socket, caches per node, cores per cache."""
    per_node, total = caches * cores, sockets * nodes * caches * cores

    def cpus(first, count):
        return [first + i + t * total for t in range(threads) for i in range(count)]
    everything = cpus(0, total)
    system = root / "sys/devices/system"
    for name in ("online", "possible", "present"):
        put(system / "cpu" / name, ranges(everything))
        put(system / "node" / name, ranges(range(sockets * nodes)))
    for cpu in everything:
        core, folder = cpu % total, system / f"cpu/cpu{cpu}"
        socket = core // (nodes * per_node)
        put(folder / "topology/physical_package_id", socket)
        put(folder / "topology/core_id", core % (nodes * per_node))
        put(folder / "topology/thread_siblings", mask(cpus(core, 1)))
        put(folder / "topology/thread_siblings_list", ranges(cpus(core, 1)))
        put(folder / "topology/core_siblings",
            mask(cpus(socket * nodes * per_node, nodes * per_node)))
        for level, members in ((2, cpus(core, 1)), (3, cpus(core // cores * cores, cores))):
            for name, text in {"type": "Unified", "level": level, "shared_cpu_map": mask(members),
                               "shared_cpu_list": ranges(members)}.items():
                put(folder / f"cache/index{level}" / name, text)
    for node in range(sockets * nodes):
        folder, members = system / f"node/node{node}", cpus(node * per_node, per_node)
        put(folder / "cpumap", mask(members))
        put(folder / "cpulist", ranges(members))
        put(folder / "meminfo", f"Node {node} MemTotal: 1000000 kB")


def describe_gpus(root, nodes):
    """Writes the files of NVIDIA GPUs, one for each NUMA node in `nodes`."""
    for minor, node in enumerate(nodes):
        address = f"0000:{0x10 + minor:02x}:00.0"
        function = root / "sys/bus/pci/devices" / address
        for name, text in {"vendor": "0x10de", "device": "0x2330", "class": "0x030200",
                           "numa_node": node}.items():
            put(function / name, text)
        os.symlink("../../drivers/nvidia", function / "driver")
        put(root / f"proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t NVIDIA H100\nGPU UUID: \t GPU-{minor:08x}\nBus Location: \t {address}\n"
            f"Device Minor: \t {minor}")
        put(root / f"dev/nvidia{minor}", "")


# By name: sockets, nodes, caches, cores and threads, and the NUMA node of each GPU.
SERVERS = {
    "DGX A100": ((2, 4, 4, 4, 2), GPUS_OF_DGX_A100),
    "DGX H100": ((2, 1, 1, 56, 2), [0, 0, 0, 0, 1, 1, 1, 1]),
    "EPYC 9654": ((2, 1, 12, 8, 2), [0, 0, 0, 0, 1, 1, 1, 1]),
    "uneven": ((2, 1, 2, 5, 2), [0, 0, 0, 1]),
    "virtual": ((1, 1, 4, 2, 1), [-1, -1, -1]),
}

# Runs torch's own functions on the files of other machines, each given as [root, GPUs, CPUs].
TORCH = r"""
import builtins, inspect, json, os, sys, types
import torch
from torch.numa import binding
opened, listed = builtins.open, os.listdir
def inside(path):
    return root + path if str(path).startswith("/sys/") else path
builtins.open = lambda path, *a, **k: opened(inside(path), *a, **k)
os.listdir = lambda path=".": listed(inside(path))
torch.cuda.get_device_properties = lambda i: types.SimpleNamespace(
    pci_domain_id=0, pci_bus_id=0x10 + i, pci_device_id=0)
torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda: torch.device("cuda")
index, = set(inspect.signature(binding._get_logical_cpus_to_bind_to).parameters) - {"numa_options"}
found = []
for root, gpus, cpus in json.loads(sys.argv[1]):
    os.sched_getaffinity = lambda pid: set(range(cpus))
    torch.cuda.device_count = torch.accelerator.device_count = lambda: gpus
    found.append({mode.value: [sorted(binding._get_logical_cpus_to_bind_to(
        numa_options=binding.NumaOptions(affinity_mode=mode), **{index: i})) for i in range(gpus)]
        for mode in binding.AffinityMode})
print(json.dumps(found))
"""


class Binding(jobs.JobTest):
    count = 1

    def seen(self, *words, env=None, prefix=()):
        """The CPUs on which each worker could run, and its OMP_NUM_THREADS, by local rank."""
        run = self.nodes[0].start("env", "-u", "OMP_NUM_THREADS", *prefix, lab.HLAUNCH, *words,
                                  "--no-python", jobs.PYTHON, "-c", SEEN, env=env or {})
        self.assert_done([run], 0, 20)
        found = sorted(json.loads(text) for text in re.findall(r"CPUS (\[.*\])", run.out))
        for _, cpus, thread, _ in found:
            self.assertEqual(cpus, thread, "a thread that the worker starts is bound as well")
        return run, [(cpus, threads) for _, cpus, _, threads in found]

    def test_workers_run_where_the_report_says(self):
        allowed = sorted(os.sched_getaffinity(0))
        for mode in ("core", "numa", "socket", "l3"):
            run, workers = self.seen("--nproc-per-node", "2", "--bind", mode, "--report-bindings")
            if len(allowed) < 2:
                self.assert_said(run, "workers are not bound: 2 workers have 1 core")
                continue
            said = re.findall(r"local rank \d \[.*?\] CPUs ([\d,-]+), (\d+) core", run.err)
            self.assertEqual([(numbers_of(cpus), cores) for cpus, cores in said], workers, str(run))
            if mode == "core":
                self.assertFalse(set(workers[0][0]) & set(workers[1][0]))

    def test_nobody_is_bound_unless_somebody_asked(self):
        allowed = sorted(os.sched_getaffinity(0))
        for words in ([], ["--bind", "none"], ["--bind", "auto"]):
            _, workers = self.seen("--nproc-per-node", "2", *words)
            self.assertEqual([cpus for cpus, _ in workers], [allowed, allowed])

    def test_what_hlaunch_itself_may_use_is_the_limit(self):
        last = max(os.sched_getaffinity(0))
        run, workers = self.seen("--bind", "numa", "--report-bindings",
                                 prefix=["taskset", "-c", last])
        self.assertEqual([cpus for cpus, _ in workers], [[last]])
        self.assert_said(run, rf"local rank 0 \[[-#|\]\[]+\] CPUs {last}, 1 core")
        run, workers = self.seen("--nproc-per-node", "2", "--bind", "core",
                                 prefix=["taskset", "-c", last])
        self.assert_said(run, "workers are not bound: 2 workers have 1 core")
        self.assertEqual([cpus for cpus, _ in workers], [[last], [last]])

    def test_a_control_group_is_the_limit(self):
        group = CPUSET / f"hlaunch-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as error:
            raise unittest.SkipTest(f"no control group for CPUs: {error}")
        last = max(os.sched_getaffinity(0))
        try:
            for name, text in (("cpuset.cpus", last), ("cpuset.mems", 0)):
                (group / name).write_text(str(text), encoding="utf-8")
            enter = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
            run, workers = self.seen("--bind", "core", "--report-bindings", prefix=enter)
            self.assertEqual([cpus for cpus, _ in workers], [[last]])
            self.assert_said(run, rf"CPUs {last}, 1 core")
        finally:
            lab.poll(lambda: not (group / "cgroup.procs").read_text(encoding="utf-8"), 5)
            group.rmdir()

    def test_a_described_machine_is_not_bound_to(self):
        run, workers = self.seen("--bind", "core", env={"HWLOC_SYNTHETIC": "pack:2 core:64 pu:2"})
        self.assert_said(run, "workers are not bound: the CPUs that are described are not this")
        self.assertEqual([cpus for cpus, _ in workers], [sorted(os.sched_getaffinity(0))])


class Described(jobs.JobTest):
    count = 1

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hlaunch-servers-")
        cls.addClassCleanup(folder.cleanup)
        cls.roots = {}
        for name, (shape, gpus) in SERVERS.items():
            cls.roots[name] = pathlib.Path(folder.name) / name.replace(" ", "-")
            describe_cpus(cls.roots[name], *shape)
            describe_gpus(cls.roots[name], gpus)

    def plan(self, name, *words):
        run = self.nodes[0].start(lab.HLAUNCH, "--sysroot", self.roots[name], "--dry-run", "--json",
                                  *words, "--no-python", "true")
        self.assert_done([run], 0, 20)
        return json.loads(run.out)

    def bound(self, name, *words):
        return [numbers_of(worker["cpus"])
                for worker in self.plan(name, *words)["binding"]["workers"]]

    def test_torchruns_words_bind_as_torchrun_does(self):
        if not pathlib.Path(TORCH2).exists():
            raise unittest.SkipTest("no PyTorch 2")
        machines = [[str(self.roots[name]), len(gpus), math.prod(shape)]
                    for name, (shape, gpus) in SERVERS.items()]
        done = subprocess.run([TORCH2, "-c", TORCH, json.dumps(machines)], text=True,
                              capture_output=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, theirs in zip(SERVERS, json.loads(done.stdout)):
            self.assertEqual(len(theirs), 4)
            for mode, cpus in theirs.items():
                for workers in (len(cpus), 2):  # GPUs without a worker keep their share.
                    with self.subTest(server=name, mode=mode, workers=workers):
                        self.assertEqual(self.bound(name, "--numa-binding", mode,
                                                    "--nproc-per-node", workers), cpus[:workers])

    def test_the_default_binds_where_nobody_loses_by_it(self):
        h100 = self.plan("DGX H100", "--nproc-per-node", "8")["binding"]
        self.assertEqual([worker["cpus"] for worker in h100["workers"]],
                         ["0-55,112-167"] * 4 + ["56-111,168-223"] * 4)
        self.assertEqual({worker["cores"] for worker in h100["workers"]}, {14})
        a100 = self.plan("DGX A100", "--nproc-per-node", "gpu")["binding"]
        self.assertEqual([worker["cpus"] for worker in a100["workers"]],
                         ["0-63,128-191"] * 4 + ["64-127,192-255"] * 4)
        for name, words in (("DGX H100", ["--nproc-per-node", "4"]), ("DGX H100", []),
                            ("virtual", ["--nproc-per-node", "3"]),
                            ("DGX H100", ["--nproc-per-node", "8", "--bind", "none"]),
                            ("DGX H100", ["--nproc-per-node", "8", "--devices", "none"])):
            binding = self.plan(name, *words).get("binding", {"workers": []})
            self.assertEqual(binding["workers"], [], (name, words))


if __name__ == "__main__":
    lab.main()
