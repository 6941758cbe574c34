#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Whatever fails, the report names the rank, the host, the cause, and what to do about it.

Each plant is a real failure. The other workers fail as a consequence, some of them earlier.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import signal
import sys

import jobs
import lab
import memory_group

PROGRAM = str(lab.WORKERS / "planted_failures.py")
TORCH_PROGRAM = str(lab.WORKERS / "planted_torch.py")
TORCH1 = "/usr/bin/python3"
TORCH2 = os.environ.get("HLAUNCH_TORCH2_PYTHON",
                        os.path.expanduser("~/.cache/hlaunch/torch-newest/bin/python"))
MOST_LINES = 12
TOGETHER = 3  # Jobs at a time.
SIGNAL = 128


@dataclasses.dataclass
class Plant:
    name: str  # The plant's name in the program.
    code: int  # The exit code of the job.
    cause: str  # A pattern in the first line of the report.
    advice: str = ""  # A pattern in the advice; empty if there must be none.
    rank: int = 1
    options: tuple = ()
    also: tuple = ()  # Patterns elsewhere in the report.
    planted: int = None  # The rank that the program gets; -1 is every rank.
    within: float = 20
    record: bool = False


# With four workers on one node; rank 1 of them fails.
PLANTS = [
    Plant("value_error", 1, r"exited with code 1: ValueError: bad batch"),
    Plant("chained", 1, r"RuntimeError: no loss in the output"),
    Plant("assertion", 1, r"AssertionError: loss is not finite", rank=0),
    Plant("exit_85", 85, r"exited with code 85"),
    Plant("exit_silently", 1, r"exited with code 1$", rank=3),
    Plant("exit_with_a_word", 1, r"exited with code 1$", also=(r"names no data set",)),
    Plant("exit_0", 1, r"rank 1 \(node0\) exited with code 0 before the others were done: rank \d ",
          "data of unequal length", rank=None),
    Plant("left_the_group", 1, r"rank 1 \(node0\) left the group before all_reduce #100: rank \d ",
          rank=None),
    Plant("long_message", 1, r"exited with code 1: ValueError: bad batch: 7, 7, "),
    Plant("two_lines", 1, r"RuntimeError: Error\(s\) in loading state_dict for Linear:$",
          also=(r"^    size mismatch for weight$",)),
    Plant("raised_by_a_loader", 1, r"exited with code 1: ValueError: bad batch: .*$"),
    Plant("exit_without_cleanup", 3, r"exited with code 3$"),
    Plant("peers_first", 1, r"ValueError: bad batch, found late", rank=2),
    Plant("in_a_thread", 1, r"ValueError: bad sample in the loader's thread"),
    Plant("in_a_subprocess", 1, r"CalledProcessError: .* returned non-zero exit status 1"),
    Plant("segmentation_fault", SIGNAL + signal.SIGSEGV, r"SIGSEGV", "FAULTHANDLER"),
    Plant("abort", SIGNAL + signal.SIGABRT, r"SIGABRT", "ended itself",
          also=(r"free\(\): invalid pointer",)),
    Plant("gpu_index_out_of_range", SIGNAL + signal.SIGABRT,
          r"SIGABRT\): RuntimeError: CUDA error: device-side assert", "CUDA_LAUNCH_BLOCKING",
          also=(r"a kernel's assertion failed: index < size && .* \(IndexKernel\.cu:111\)",
                r"planted_failures\.py\", line \d+, in gpu_index_out_of_range")),
    Plant("bus_error", SIGNAL + signal.SIGBUS, r"SIGBUS", "/dev/shm"),
    Plant("illegal_instruction", SIGNAL + signal.SIGILL, r"SIGILL", "CPU of node0"),
    Plant("killed", SIGNAL + signal.SIGKILL, r"SIGKILL\): sent from outside", "who ends processes"),
    Plant("terminated", SIGNAL + signal.SIGTERM, r"SIGTERM", "did not send it"),
    Plant("port_in_use", 1, r"Address already in use", "ss -ltnp"),
    Plant("master_port_in_use", 1, r"Address already in use", "--master-store=worker", rank=0),
    Plant("unknown_host", 1, r"gaierror: .*(not known|resolution)", "/etc/hosts"),
    Plant("unreachable", 1, r"OSError: .*unreachable", "routes"),
    Plant("refused", 1, r"ConnectionRefusedError", "nobody serves"),
    Plant("import_error", 1, r"ModuleNotFoundError: .*transformers_of", "install it there"),
    Plant("import_error", 1, r"ModuleNotFoundError: .*transformers_of", "install it there",
          planted=-1, rank=None),
    Plant("too_many_files", 1, r"Too many open files", "ulimit -n"),
    Plant("disk_full", 1, r"No space left on device", "df -h"),
    Plant("permission", 1, r"PermissionError", "owner and mode"),
    Plant("out_of_address_space", 1, r"MemoryError", "memory"),
    Plant("syntax_error", 1, r"SyntaxError", "fix it"),
    Plant("missing_file", 1, r"FileNotFoundError: .*data\.bin", "every node"),
    Plant("recursion", 1, r"RecursionError", "without end"),
    Plant("value_error", 1, r"ValueError: bad batch", options=("--max-restarts", "2"),
          also=(r"restart after round 1: worker rank 1 on node0 .*ValueError: bad batch",
                r"restart after round 2: ", r"2 of 2 restarts used")),
]

# With two workers on each of two nodes; rank 3 is on node1.
PLANTS_ON_TWO_NODES = [
    Plant("value_error", 1, r"ValueError: bad batch", rank=3),
    Plant("peers_first", 1, r"ValueError: bad batch, found late", rank=2),
    Plant("peers_first", 1, r"ValueError: bad batch, found late", rank=1),
    Plant("exit_85", 85, r"exited with code 85", rank=3),
    Plant("segmentation_fault", SIGNAL + signal.SIGSEGV, r"SIGSEGV", "FAULTHANDLER", rank=3),
    Plant("exit_0", 1, r"rank 3 \(node1\) exited with code 0 before the others were done: rank \d ",
          "data of unequal length", rank=None, planted=3),
    Plant("left_the_group", 1, r"rank 3 \(node1\) left the group before all_reduce #100: rank \d ",
          rank=None, planted=3),
    Plant("missing_file", 1, r"FileNotFoundError: .*data\.bin", "missing on node1", rank=3),
    Plant("others_linger", 1, r"^job failed: rank 1 \(node0\) did not come: rank 0 .*Timed out",
          r"rank 1 on node0 stands", rank=None),
]

TORCH_PLANTS = [
    Plant("raises", 1, r"ValueError: bad batch", rank=2),
    Plant("sleeps", 1, r"rank 1 \(node0\) did not come: .*Timed out waiting 10000ms",
          r"rank 1 on node0 stands", rank=None),
    Plant("raises", 1, r"ValueError: bad batch", rank=2, record=True),
    Plant("exits_85", 85, r"exited with code 85", rank=2),
    Plant("wrong_shape", 1, r"RuntimeError: (addmm: )?mat1 and mat2 shapes cannot be multiplied", rank=0),
    Plant("leaves_early", 1, r"losed by peer|reset by peer|refused|likely closed",
          "data of unequal length", rank=None,
          also=(r"^job failed: rank 1 \(node0\) exited with code 0 before the others were done: ",)),
    Plant("loader_killed", 1, r"RuntimeError: DataLoader worker .*(killed|exited)", "loader"),
]


def report_of(run):
    """The lines of the final report, without hlaunch's prefix."""
    lines = [re.sub(r"^hlaunch(\[[^]]*\])?: (error: )?", "", line) for line in jobs.own_lines(run)]
    first = [i for i, line in enumerate(lines) if line.startswith("job failed: ")]
    return lines[first[0]:] if first else []


def complaints(plant, host, code, report):
    """What is wrong with the report of a plant; empty if it names everything."""
    head, text = (report or [""])[0], "\n".join(report)
    who = rf"rank {plant.rank} \({host}, " if plant.rank is not None else r"rank \d"
    advice = [line for line in report if line.strip().startswith("advice: ")]
    wrong = []
    if code != plant.code:
        wrong.append(f"exit code {code}, not {plant.code}")
    if not re.match(rf"job failed: .*{who}", head):
        wrong.append(f"the first line does not name /{who}/")
    if not re.search(plant.cause, head):
        wrong.append(f"the first line does not name the cause /{plant.cause}/")
    if bool(advice) != bool(plant.advice) or not re.search(plant.advice, "".join(advice)):
        wrong.append(f"the advice is not /{plant.advice}/")
    wrong += [f"nothing says /{also}/" for also in plant.also if not re.search(also, text, re.MULTILINE)]
    if len(report) > MOST_LINES:
        wrong.append(f"{len(report)} lines")
    return wrong


class Planted(jobs.JobTest):
    """Runs plants, several at a time, and lists all that were misreported."""

    program, python = PROGRAM, jobs.PYTHON
    nproc, env = 4, {}

    def plant(self, number, plant):
        planted = plant.planted if plant.planted is not None else \
            1 if plant.rank is None else plant.rank
        host = f"node{(plant.rank or 0) // self.nproc}"
        folder = self.lab.folder / f"plant{number}"
        folder.mkdir()
        if len(self.nodes) > 1:
            (self.nodes[0].folder / "data.bin").write_bytes(b"data")
        env = {"PYTHON_EXEC": self.python, "PLANT_FOLDER": folder,
               "PLANT_ADDRESS": self.nodes[planted // self.nproc if planted > 0 else 0].ip, **self.env}
        options = ["--nproc-per-node", self.nproc, "--rdzv-id", f"plant{number}", *plant.options]
        if len(self.nodes) > 1:
            self.endpoint = f"node0:{29400 + number}"
        runs = self.start(self.program, plant.name, planted,
                          f"node{max(planted, 0) // self.nproc}", *(["--record"] if plant.record else []),
                          options=options, env=env)
        codes = [run.wait(plant.within) for run in runs]
        if jobs.TORCH_ENDS_BADLY in self.told(runs):
            codes = [plant.code if code == 128 + signal.SIGABRT else code for code in codes]
        wrong = complaints(plant, host, codes[0], report_of(runs[0]))
        if len(set(codes)) > 1:
            wrong.append(f"exit codes {codes}")
        return [f"{plant.name} of rank {plant.rank}: {'; '.join(wrong)}\n"
                + "\n".join(report_of(runs[0])) + f"\n{self.told(runs)}"] if wrong else []

    def assert_reported(self, plants, together=TOGETHER):
        with concurrent.futures.ThreadPoolExecutor(together) as pool:
            found = sum(pool.map(self.plant, range(len(plants)), plants), [])
        print(f"{len(plants) - len(found)} of {len(plants)} reports name rank, host and cause",
              file=sys.stderr)
        self.assert_nothing_left()
        if found:
            self.fail("\n\n".join(found))


class PlantedOnOneNode(Planted):
    count = 1

    def test_every_report_names_rank_host_and_cause(self):
        self.assert_reported(PLANTS)


class PlantedGoodbye(Planted):
    """The failing rank first leaves hlaunch's group, so the report may come from its victims."""

    count, program = 1, str(lab.WORKERS / "goodbye.py")
    env = {"PYTHONPATH": str(lab.BIN.parent / "python")}
    by_victims = r"^job failed: rank 2 \(node0\) left the group before all_reduce #2, after " \
                 r"ValueError: bad batch: rank \d "
    # If hlaunch hears of the rank's end in time, the report has the rank's own words.
    by_itself = r"^job failed: rank 2 \(node0, .* exited with code 1: ValueError: bad batch$"
    plants = [Plant(name, 1, cause, rank=None, planted=2) for name, cause in (
        ("finally", f"{by_itself}|{by_victims}"), ("finally_stays", by_victims),
        ("atexit", f"{by_itself}|{by_victims}"), ("atexit_stays", by_victims))]

    def test_every_report_names_who_raised(self):
        self.assert_reported(self.plants)


class PlantedOutOfMemory(Planted):
    """hlaunch in a cgroup whose limit one of its workers exceeds."""

    count, nproc = 1, 2

    def setUp(self):
        try:
            self.group = memory_group.MemoryGroup(64 << 20)
        except OSError as error:
            self.skipTest(f"no memory cgroup can be made here: {error}")
        self.addCleanup(self.group.close)
        super().setUp()

    def start(self, *command, **options):
        words = self.group.within(lab.HLAUNCH, *options["options"], *command)
        return [self.nodes[0].start(*words, env=options["env"])]

    def test_the_report_says_that_it_was_the_kernel(self):
        self.assert_reported([Plant("out_of_memory", SIGNAL + signal.SIGKILL,
                                    r"SIGKILL\): the kernel killed it for lack of memory \(the "
                                    r"cgroup's limit is 0\.1 GiB\)", "a higher limit"),
                              Plant("killed", SIGNAL + signal.SIGKILL,
                                    r"SIGKILL\): sent from outside, neither by hlaunch nor by the "
                                    r"kernel", "who ends processes")], together=1)


class PlantedOnTwoNodes(Planted):
    nproc = 2

    def test_every_report_names_rank_host_and_cause(self):
        # One at a time: plants have ports of their own, but they share the nodes.
        self.assert_reported(PLANTS_ON_TWO_NODES, together=1)


def kill_everything(node, run):
    """Kills a node's processes as the kernel would: their sockets close at once."""
    for pid in [*run.descendants(), run.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class PlantedNodeLoss(jobs.JobTest):
    """A node dies and workers on healthy nodes fail with it: the report names the node."""

    def assert_names(self, strike, head, within, patience=None):
        folder = self.lab.folder / "plant"
        folder.mkdir()
        env = {"PLANT_FOLDER": folder, "PLANT_ADDRESS": self.nodes[1].ip}
        if patience:
            env |= {"PLANT_PATIENCE": patience, "PLANT_PATIENT_UNTIL": folder / "cut"}
        runs = self.start(PROGRAM, "stands", 3, env=env,
                          options=["--nproc-per-node", 2, "--loss-limit", 6])
        runs[1].wait_for("stands", 20)
        strike(self.nodes[1], runs[1])
        (folder / "cut").touch()
        self.assertEqual(runs[0].wait(within), jobs.NODE_LOST, self.told(runs))
        report = report_of(runs[0])
        self.assertRegex((report or [""])[0], head, self.told(runs))
        self.assertLessEqual(len(report), MOST_LINES, self.told(runs))

    def test_all_processes_of_a_node_die(self):
        # If the kernel closes the agent's connection first, the ranks of node0 have not failed yet.
        self.assert_names(kill_everything, r"job failed: node1 \(10\.77\.0\.11\) was lost: its .*"
                          r"it ran ranks 2-3(; rank [01] on node0 failed of it: ConnectionResetError: "
                          r".*)?$", 60)

    def test_a_node_falls_silent(self):
        self.assert_names(lambda node, _: node.cut(),
                          r"job failed: node1 \(10\.77\.0\.11\) was lost: it was not heard of for "
                          r"\d+ s; it ran ranks 2-3; rank [01] on node0 failed of it: Conn", 60,
                          patience=1)


class PlantedMtuHole(jobs.JobTest):
    """Large packets vanish between two nodes, as in a tunnel that also swallows ICMP."""

    def test_the_report_recalls_what_the_preflight_said(self):
        for node in self.nodes:
            node.run("iptables", "-A", "INPUT", "-i", "eth0", "-m", "length", "--length", "1300:65535",
                     "-j", "DROP")
        folder = self.lab.folder / "plant"
        folder.mkdir()
        runs = self.start(PROGRAM, "stands", 3, options=["--nproc-per-node", 2],
                          env={"PLANT_FOLDER": folder, "PLANT_ADDRESS": self.nodes[1].ip,
                               "PLANT_PATIENCE": 1})
        runs[0].wait(60)
        report = report_of(runs[0])
        self.assertRegex((report or [""])[0], r"before the round: .*small messages pass, 64 KiB do not"
                         r".*MTU", self.told(runs))
        self.assertIn("compare the MTU", "\n".join(report))


class PlantedInTorch1(Planted):
    count, nproc, program, python, version = 1, 3, TORCH_PROGRAM, TORCH1, "1.13"
    plants = TORCH_PLANTS[:2] + TORCH_PLANTS[5:]
    env = {"PLANT_PATIENCE": 10}  # Of "sleeps": it must not end while the group forms.

    def setUp(self):
        if not os.access(self.python, os.X_OK) or \
                os.system(f"{self.python} -c 'import torch' 2>/dev/null") != 0:
            self.skipTest(f"no torch {self.version} at {self.python}; tests/run brings it")
        super().setUp()

    def test_every_report_names_rank_host_and_cause(self):
        plants = [dataclasses.replace(plant, within=60) for plant in self.plants]
        self.assert_reported(plants, together=2)


class PlantedInTorch2(PlantedInTorch1):
    python, version = TORCH2, "2"
    plants = TORCH_PLANTS[:5]


if __name__ == "__main__":
    lab.main()
