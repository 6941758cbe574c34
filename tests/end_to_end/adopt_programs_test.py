#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Unmodified programs that start torch's agent, run by hlaunch: each on one host and on two, and each
with a killed rank. Prints a table: what ranks said of their places, and how long the start takes
beside the same program with torch's own agent.

HLAUNCH_ADOPT_PYTHON names a Python that has them; tests/run --full makes one, and so do these lines,
where STOCK and TORCH are the folders of Python's packages of the tests' other environments:

    python3.11 -m venv E; printf '%s\\n' STOCK TORCH > E/lib/python3.11/site-packages/torch.pth
    E/bin/pip install -r adopt_requirements.txt
    E/bin/pip install --no-deps -r adopt_alone_requirements.txt

HLAUNCH_SWIFT_PYTHON names one for ms-swift, which wants older releases of what others want new; it is
made alike, with TORCH alone in torch.pth and `pip install ms-swift==4.6.0` (1.2 GB).

HLAUNCH_PROGRAMS_ONLY=WORD takes only programs with that word in their name."""

import dataclasses
import itertools
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import unittest

import adopt_test
import jobs
import lab

ONLY = os.environ.get("HLAUNCH_PROGRAMS_ONLY", "")
PORT = 29500
PLACES = lab.WORKERS / "adopt"
RANKS, CALLS, NOTEBOOKS = PLACES / "ranks.py", PLACES / "calls.py", PLACES / "notebook_call.py"
MODEL = PLACES / "tiny_model.py"


@dataclasses.dataclass
class Scene:
    """One job: two ranks on each of `hosts` hosts, of which this one is `host`."""
    hosts: int
    host: int
    address: str  # Of the first one.
    kills: bool   # Rank 1 kills itself in the first round.
    folder: pathlib.Path  # Of this host, for what the program reads and writes.

    @property
    def restarts(self):
        return int(self.kills)

    def script(self):
        return [RANKS, "--fail-once"] if self.kills else [RANKS]

    def model(self):
        """A tiny model, which says its rank's place as it trains."""
        at = self.folder / f"model-{self.hosts}-{self.kills}"
        if not at.exists():
            subprocess.run([sys.executable, MODEL, at, *self.script()[1:]], check=True)
        return at


def torch_run(scene):
    meets = (["--rdzv-backend=c10d", "--rdzv-id=j", f"--rdzv-endpoint={scene.address}:{PORT}"]
             if scene.hosts > 1 else [])
    return ["python", "-m", "torch.distributed.run", f"--nnodes={scene.hosts}", "--nproc-per-node=2",
            f"--max-restarts={scene.restarts}", *meets, *scene.script()]


def torch_launch(scene):
    static = ([f"--node_rank={scene.host}", f"--master_addr={scene.address}", f"--master_port={PORT}"]
              if scene.hosts > 1 else [])
    return ["python", "-m", "torch.distributed.launch", f"--nnodes={scene.hosts}", "--nproc_per_node=2",
            f"--max_restarts={scene.restarts}", *static, *scene.script()]


def torchrun(scene):
    return ["torchrun", *torch_run(scene)[3:]]


def accelerate(*more, script=True):
    def words(scene):
        several = ([f"--num_machines={scene.hosts}", f"--machine_rank={scene.host}",
                    f"--main_process_ip={scene.address}", f"--main_process_port={PORT}"]
                   if scene.hosts > 1 else [])
        ranks = scene.script() if script else ["-m", "ranks", *map(str, scene.script()[1:])]
        return ["accelerate", "launch", *more, f"--num_processes={2 * scene.hosts}", *several,
                f"--max_restarts={scene.restarts}", *ranks]
    return words


def trl(scene):
    model = scene.model()
    launch = accelerate("--multi_gpu", "--mixed_precision=no")(scene)
    launch = launch[2:launch.index(RANKS)]
    return ["trl", "sft", *launch, "--model_name_or_path", model, "--trust_remote_code", "True",
            "--dataset_name", model / "texts", "--output_dir", scene.folder / "trl", "--max_steps", "2",
            "--use_cpu", "True", "--bf16", "False", "--gradient_checkpointing", "False", "--report_to",
            "none", "--save_strategy", "no", "--per_device_train_batch_size", "2"]


def swift(scene):
    """torch's own variables say what ms-swift has no words for."""
    model = scene.model()
    several = ([f"NNODES={scene.hosts}", f"NODE_RANK={scene.host}", f"MASTER_ADDR={scene.address}",
                f"MASTER_PORT={PORT}"] if scene.hosts > 1 else [])
    return ["NPROC_PER_NODE=2", f"PET_MAX_RESTARTS={scene.restarts}", *several, "swift", "sft", "--model",
            model, "--model_type", "llama", "--template", "dummy", "--dataset",
            model / "chats/train.jsonl", "--output_dir", scene.folder / "swift", "--max_steps", "2",
            "--torch_dtype", "float32", "--use_cpu", "true", "--tuner_type", "full", "--use_hf", "true",
            "--gradient_checkpointing", "false", "--save_strategy", "no", "--report_to", "none"]


def torchtune(scene):
    return ["tune", "run", *torch_run(scene)[3:-len(scene.script())], "ranks", "--config", "none",
            *scene.script()[1:]]


def fabric(scene):
    several = ([f"--num-nodes={scene.hosts}", f"--node-rank={scene.host}",
                f"--main-address={scene.address}", f"--main-port={PORT}"] if scene.hosts > 1 else [])
    return ["fabric", "run", "--devices=2", "--accelerator=cpu", "--strategy=ddp", *several, *scene.script()]


def calls(plant, killed):
    def words(scene):
        nodes = (["--nodes", scene.hosts, scene.host, f"{scene.address}:{PORT}"]
                 if scene.hosts > 1 else [])
        return ["python", CALLS, killed if scene.kills else plant, *nodes]
    return words


def notebook_call(scene):
    return ["python", NOTEBOOKS, scene.hosts, scene.host, f"{scene.address}", PORT, scene.restarts]


def notebook(_):
    return ["python", PLACES / "notebook.py"]


def torchx(scene):
    words = [str(word) for word in scene.script()]
    return ["torchx", "run", "--scheduler=local_cwd", "dist.ddp", f"-j={scene.hosts}x2",
            f"--script={words[0]}", *(["--", *words[1:]] if words[1:] else [])]


def optimum_habana(scene):
    return ["python", PLACES / "habana_runner.py", *scene.script()]


@dataclasses.dataclass
class Program:
    words: object             # A function of the scene; variables NAME=VALUE come first.
    package: str = "torch"    # The module without which it is skipped.
    hosts: tuple = (1, 2)
    restarts: bool = True     # Whether it has an option for that; else a killed rank ends the job.
    kills: bool = True        # Whether its ranks can be made to kill themselves.
    one_command: bool = False  # One command starts the ranks of all hosts.
    python: str = "HLAUNCH_ADOPT_PYTHON"  # The variable that names its Python.

    @property
    def at(self):
        return os.environ.get(self.python, "")


PROGRAMS = {
    "torch.distributed.run": Program(torch_run),
    "torch.distributed.launch": Program(torch_launch),
    "an environment's torchrun": Program(torchrun),
    "accelerate launch": Program(accelerate("--multi_gpu"), "accelerate"),
    "accelerate launch -m": Program(accelerate("--multi_gpu", script=False), "accelerate"),
    "accelerate launch --use_fsdp": Program(accelerate("--use_fsdp"), "accelerate"),
    "accelerate launch --use_deepspeed": Program(
        accelerate("--use_deepspeed", "--deepspeed_multinode_launcher=standard"), "deepspeed"),
    "accelerate's notebook_launcher": Program(notebook_call, "accelerate"),
    "a notebook, by nbclient": Program(notebook, "nbclient", hosts=(1,), kills=False),
    "elastic_launch of a function": Program(calls("ok", "once")),
    "elastic_launch of a program": Program(calls("script", "script-once")),
    "trl sft": Program(trl, "trl"),
    "ms-swift's swift sft": Program(swift, "swift", python="HLAUNCH_SWIFT_PYTHON"),
    "tune run": Program(torchtune, "torchtune"),
    "fabric run": Program(fabric, "lightning", restarts=False),
    "TorchX, local scheduler": Program(torchx, "torchx", restarts=False, one_command=True),
    "optimum-habana's runner": Program(optimum_habana, "optimum.habana", hosts=(1,), restarts=False),
}


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class ProgramsAtLength(adopt_test.WithTorch):
    count = 2

    def setUp(self):
        super().setUp()
        self.python = os.environ.get("HLAUNCH_ADOPT_PYTHON", "")
        if not os.access(self.python, os.X_OK):
            self.skipTest("HLAUNCH_ADOPT_PYTHON names no Python with adopt_requirements.txt")

    def has(self, package, python):
        found = os.access(python, os.X_OK) and self.nodes[0].run(python, "-c", "import sys\n"
                                  "from importlib.util import find_spec\n"
                                  "sys.exit(find_spec(sys.argv[1]) is None)", package, timeout=120)
        return found and found.code == 0

    def begin_on(self, node, words, way, python):
        """Starts a program on a node: hlaunch runs its job, or torch does."""
        binaries = [pathlib.Path(python).parent, pathlib.Path(os.environ.get(
            "HLAUNCH_STOCK_PYTHON", "/root/.cache/hlaunch/stock-3/bin/python")).parent,
            pathlib.Path(adopt_test.TORCH).parent]
        named = list(itertools.takewhile(lambda word: re.match("[A-Z_]+=", word), words))
        words = words[len(named):]
        program = next((at / words[0] for at in binaries if (at / words[0]).exists()), words[0])
        if words[0] != "python" and program != words[0]:  # Its first line names another Python.
            words = [python, program, *words[1:]]
        else:
            words = [python, *words[1:]]
        env = {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": self.temporary(node), "HOME": self.temporary(node),
               "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu", "PYTHONPATH": PLACES,
               "PATH": ":".join(map(str, [*binaries, os.environ["PATH"]])),
               **dict(variable.split("=", 1) for variable in named)}
        line = [lab.HLAUNCH, "run", *words] if way == "hlaunch" else words
        if way != "hlaunch":
            env["HLAUNCH_TORCHRUN"] = "0"
        return self.nodes[node].start(*line, env=env, cwd=PLACES)

    def job(self, program, hosts, kills, way="hlaunch"):
        """Runs one job; returns its runs, and the seconds until its last rank had said its place."""
        began = time.monotonic()
        runs = [self.begin_on(host, list(map(str, program.words(
            Scene(hosts, host, self.nodes[0].ip, kills, self.temporary(host))))), way,
            program.at)
            for host in range(1 if program.one_command else hosts)]
        lab.poll(lambda: len(self.places(runs, 2 * hosts)) >= 2 * hosts
                 or all(run.process.poll() is not None for run in runs), 240, 0.02)
        said = time.monotonic() - began
        return runs, [run.wait(240) for run in runs], said

    def places(self, runs, world):
        """Rank and round of each rank that has said its place in this world, and who started it."""
        out = "\n".join(line for run in runs for line in (run.out + run.err).splitlines()
                        if "CELL" not in line)  # What a cell shows, the kernel has written, too.
        return sorted(re.findall(rf"rank (\d+) of {world}\b(?:.*?restart (\d+))?.*?by (\w+)", out))

    def row(self, name, program):
        cells = []
        for hosts in program.hosts:
            runs, codes, _ = self.job(program, hosts, False)
            world = 2 * hosts
            self.assertEqual(set(codes), {0}, self.told(runs))
            places = self.places(runs, world)
            self.assertEqual([int(rank) for rank, *_ in places], list(range(world)), self.told(runs))
            self.assertEqual({by for *_, by in places}, {"hlaunch"}, self.told(runs))
            cells.append(f"ranks 0-{world - 1} of {world}")
            if not program.kills:
                cells.append("-")
                continue
            runs, codes, _ = self.job(program, hosts, True)
            if program.restarts:
                self.assertEqual(set(codes), {0}, self.told(runs))
                again = [int(rank) for rank, number, _ in self.places(runs, world) if number == "1"]
                self.assertEqual(again, list(range(world)), self.told(runs))
                cells.append("restarted, all again")
            else:
                self.assertNotIn(0, codes, self.told(runs))
                self.assertRegex("\n".join(run.err for run in runs), "rank 1 .*SIGKILL", self.told(runs))
                cells.append("ended, rank 1 named")
        while len(cells) < 4:
            cells.append("-")
        times = {way: [] for way in ("hlaunch", "torch")}
        for _ in range(3):
            for way, found in times.items():
                found.append(self.job(program, 1, False, way)[2])
        ours, theirs = (statistics.median(times[way]) for way in ("hlaunch", "torch"))
        return f"| {name} | {' | '.join(cells)} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f} |"

    def test_programs(self):
        lines = ["| program | one host | one host, rank 1 killed | two hosts | two hosts, rank 1 killed "
                 "| start, s | with torch's agent | ratio |", "|---|---|---|---|---|---|---|---|"]
        for name, program in PROGRAMS.items():
            if ONLY not in name:
                continue
            with self.subTest(name):
                if not self.has(program.package, program.at):
                    lines.append(f"| {name} | not here: no {program.package} |")
                    continue
                lines.append(self.row(name, program))
                self.assert_nothing_left()
                print(lines[-1], file=sys.stderr, flush=True)
        print("\n".join(lines))


if __name__ == "__main__":
    lab.main()
