#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Compares what a worker gets from hlaunch and from torchrun for the same command line, argument by
argument and variable by variable. Every difference has a row in DIFFERENCES, with its reason.
Any other difference fails, and so does a row that no case shows."""

import dataclasses
import json
import os
import re
import typing

import jobs
import lab
import torch_test

DUMP = str(lab.WORKERS / "dump_start.py")
MASTER_PORT = 29812

# The whole environment of both launchers.
BASE_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
            "PYTHON_EXEC": jobs.PYTHON}

# Variables that an outer launcher left: srun, mpirun, an operator, another torchrun.
OUTER_ENV = {"SLURM_PROCID": "5", "SLURM_NTASKS": "9", "SLURM_STEP_NODELIST": "a,b",
             "SLURM_JOB_ID": "4711", "OMPI_COMM_WORLD_RANK": "3", "OMPI_UNIVERSE_SIZE": "9",
             "PMI_RANK": "3", "PMIX_RANK": "3", "HLS_MODULE_ID": "2", "HOROVOD_RANK": "3",
             "NODE_RANK": "3", "NCCL_DEBUG": "WARN", "OMPI_MCA_btl_tcp_if_include": "eth0",
             "TF_CONFIG": "{}", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[${rank}] ",
             "RANK": "77", "WORLD_SIZE": "99", "TORCHELASTIC_RUN_ID": "outer",
             "MASTER_ADDR": "outer", "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGWINCH"}


@dataclasses.dataclass
class Case:
    """One command line. Both launchers get `words`; a node's own words follow them."""
    name: str
    words: list = dataclasses.field(default_factory=list)
    script: list = dataclasses.field(default_factory=lambda: [DUMP])
    env: dict = dataclasses.field(default_factory=dict)
    nodes: tuple = ((),)
    workers: int = 1
    restarts: int = 0  # The number of restarts that happen.
    only_hlaunch: list = dataclasses.field(default_factory=list)
    torchrun: str = "torch.distributed.run"


TWO = ["--nproc-per-node", "2"]
CASES = [
    Case("one worker"),
    Case("four workers", ["--nproc_per_node=4", "--role", "trainer"], [DUMP, "--lr", "", "a b"],
         workers=4),
    Case("standalone", ["--standalone", *TWO], workers=2,
         env={"CUDA_VISIBLE_DEVICES": "6,7", "OMP_NUM_THREADS": "3"}),
    Case("restart", [*TWO, "--max-restarts", "3", "--signals-to-handle", "SIGTERM,SIGUSR1"],
         env={"DUMP_FAILS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"}, workers=2, restarts=1),
    Case("two nodes", ["--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port",
                       str(MASTER_PORT)],
         nodes=(("--node-rank", "0"), ("--node-rank", "1")), workers=2),
    Case("virtual local rank of a list", ["--virtual-local-rank", *TWO],
         env={"CUDA_VISIBLE_DEVICES": "4, 5"}, workers=2),
    Case("virtual local rank of all", ["--virtual-local-rank", *TWO], workers=2),
    Case("virtual local rank of none", ["--virtual-local-rank"], env={"CUDA_VISIBLE_DEVICES": ""}),
    Case("no python", ["--no-python", *TWO], env={"PET_NPROC_PER_NODE": "2"}, workers=2),
    Case("module", ["-m"], ["dump_start", "x"],
         env={"PYTHONPATH": str(lab.WORKERS), "TORCHELASTIC_ENABLE_FILE_TIMER": "1"}),
    Case("macro", [*TWO, "--log-dir", "/dev/null"],
         [DUMP, "--out=/d/${local_rank}", "$local_rank", "$local_ranks", "${rank}", "${local_rank",
          "x$$y"], workers=2),
    Case("id", ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--rdzv-id", "job7"]),
    Case("id alone", ["--rdzv-id", "job7"]),
    Case("outer launcher", env=OUTER_ENV),
    Case("outer launcher kept", env=OUTER_ENV, only_hlaunch=["--keep-env"]),
    Case("local rank passed", TWO, [DUMP, "x"], workers=2, only_hlaunch=["--pass-local-rank"],
         torchrun="torch.distributed.launch"),
]


@dataclasses.dataclass
class Difference:
    """`name` matches whole variable names. `allows` gets both values; None means unset."""
    name: str
    reason: str
    allows: typing.Callable
    cases: str = ".*"


def added(value=".+"):
    return lambda ours, theirs: theirs is None and ours is not None and re.fullmatch(value, ours)


def dropped(ours, theirs):
    return ours is None and theirs is not None


def both(value):
    return lambda ours, theirs: all(v is not None and re.fullmatch(value, v)
                                    for v in (ours, theirs))


# launcher/manual/torchrun.md describes the same differences.
DIFFERENCES = [
    Difference("NODE_RANK", "Lightning, accelerate, Composer and Ray's scripts read it", added()),
    Difference("NODE_RANK", "an outer launcher's would be of another job",
               lambda ours, theirs: (ours, theirs) == ("0", "3"), "outer launcher.*"),
    Difference("LOCAL_SIZE|CROSS_RANK|CROSS_SIZE", "DeepSpeed's launcher sets them", added()),
    Difference("NCCL_ASYNC_ERROR_HANDLING", "its name before torch 2.2", added("1")),
    Difference("PYTHONUNBUFFERED", "lines are shown when they are printed, also of what a worker "
               "starts", added("1")),
    Difference("JAX_(COORDINATOR_ADDRESS|NUM_PROCESSES|PROCESS_ID)", "jax.distributed", added()),
    Difference("GLOO_SOCKET_IFNAME", "gloo would take the interface of the host's own name, which "
               "Debian maps to loopback", added(), "two nodes"),
    Difference("PMI_PORT|PMI_ID|MPIR_CVAR_PMI_VERSION|OMPI_MCA_(schizo|pmix)|PMIX_NAMESPACE",
               "an MPI program among what a worker starts finds who serves it", added()),
    Difference("HLAUNCH_[A-Z_]+", "hlaunch's own words", added()),
    Difference("PYTHONPATH", "what a rank does is asked of torch itself, see HLAUNCH_TAP",
               lambda ours, theirs: re.fullmatch((f"{re.escape(theirs)}:" if theirs else "") +
                                                 r"/\S+/hlaunch-agent\.\w{6}", ours)),
    Difference("OMP_NUM_THREADS", "real cores per worker, where torchrun says 1, or nothing to a "
               "lone worker", lambda ours, theirs: int(ours) >= 1 and theirs in ("1", None)),
    Difference("MASTER_ADDR", "an address, where torchrun gives a name that may not resolve",
               lambda ours, theirs: ours == "127.0.0.1" and theirs != ours),
    Difference("MASTER_PORT", "each a free port, unless it was named", both(r"\d+"),
               "(?!two nodes).*"),
    Difference("TORCHELASTIC_USE_AGENT_STORE", "a lone worker may start the ranks itself, and then "
               "serves their store", lambda ours, theirs: (ours, theirs) == ("False", "True")),
    Difference("_", "the program's own path, as in a shell", added("/.*")),
    Difference("TORCHELASTIC_RUN_ID", "each a new one", both("[0-9a-f-]{16,36}")),
    Difference("TORCHELASTIC_RUN_ID", "the id that was given counts on one node as well",
               lambda ours, theirs: ours == "job7" and re.fullmatch("[0-9a-f-]{36}", theirs),
               "id alone"),
    Difference("TORCHELASTIC_ERROR_FILE", "each in its own directory", both(r"/.+\.json")),
    Difference("TORCHELASTIC_ERROR_FILE", "unset where torchrun sets an empty one",
               lambda ours, theirs: (ours, theirs) == (None, ""), "macro"),
    Difference("TORCHELASTIC_TIMER_FILE", "each a new pipe", both("/tmp/.*watchdog_timer_.+")),
    Difference("PET_.*", "a torchrun in the worker would take them for its own", dropped, "no python"),
    Difference("SLURM_(PROCID|NTASKS|STEP_.*)|OMPI_(COMM|UNIVERSE).*|PMIX?_.*|HLS_.*|HOROVOD_.*",
               "an outer launcher's word on another process", dropped, "outer launcher"),
]
# Differences in argv, word by word.
WORD_DIFFERENCES = [
    ("x$$y", "x$y", "`sh -c 'kill $$'` means it; torchrun halves it, as Python's Template does"),
]


class TorchrunEnv(torch_test.WithTorch):
    wanted, count = "2.", 1

    @staticmethod
    def python():
        return torch_test.Torch2.python()

    def folder(self, case, launcher):
        folder = self.nodes[0].folder / f"{launcher} {case.name}"
        folder.mkdir(exist_ok=True)
        return folder

    def start(self, case_env, *words):
        env = {**BASE_ENV, **case_env}
        return self.nodes[0].start("env", "-i", *(f"{name}={value}" for name, value in env.items()),
                                   *words)

    def start_torchrun(self, cases):
        """Runs the first case with torchrun itself, the others in one process with one import."""
        plans = [{"module": case.torchrun, "env": {**case.env, "DUMP": str(folder)},
                  "words": [*case.words, *node, *case.script], "log": f"{folder} {index}.log"}
                 for case in cases[1:] for folder in [self.folder(case, "torchrun")]
                 for index, node in enumerate(case.nodes)]
        plan = self.nodes[0].folder / "plan.json"
        plan.write_text(json.dumps(plans), encoding="utf-8")
        program = os.path.join(os.path.dirname(self.python()), "torchrun")
        return [self.start({**cases[0].env, "DUMP": self.folder(cases[0], "torchrun")}, program,
                           *cases[0].words, *cases[0].script),
                self.start({}, self.python(), lab.WORKERS / "torchrun_many.py", plan)]

    def start_hlaunch(self, case):
        return [self.start({**case.env, "DUMP": self.folder(case, "hlaunch")}, lab.HLAUNCH,
                           *case.only_hlaunch, *case.words, *node, *case.script)
                for node in case.nodes]

    def starts(self, case, launcher, runs):
        """What each worker was given, by rank and restart count."""
        for run in runs:
            self.assertEqual(run.wait(150), 0, str(run))
        found = {path.stem: json.loads(path.read_text(encoding="utf-8"))
                 for path in self.folder(case, launcher).iterdir()}
        self.assertEqual(sorted(found), sorted(f"{rank}_{restart}" for rank in range(case.workers)
                                               for restart in range(case.restarts + 1)),
                         self.told(runs))
        return found

    def compare_words(self, case, worker, ours, theirs):
        self.assertEqual(len(ours), len(theirs), f"{case.name}, {worker}: {ours} {theirs}")
        for pair in zip(ours, theirs):
            if pair[0] == pair[1]:
                continue
            row = [row for row in WORD_DIFFERENCES if row[:2] == pair]
            self.assertTrue(row, f"{case.name}, worker {worker}: {pair[0]!r}, torchrun {pair[1]!r}")
            self.used.add(row[0][2])

    def compare_env(self, case, worker, ours, theirs):
        wrong = []
        for name in sorted((ours.keys() | theirs.keys()) - {"DUMP"}):
            pair = ours.get(name), theirs.get(name)
            if pair[0] == pair[1]:
                continue
            rows = [row for row in DIFFERENCES
                    if re.fullmatch(row.name, name) and re.fullmatch(row.cases, case.name)
                    and row.allows(*pair)]
            self.used.update(row.reason for row in rows[:1])
            if not rows:
                wrong.append(f"{name}: {pair[0]!r}, torchrun {pair[1]!r}")
        self.assertFalse(wrong, f"{case.name}, worker {worker}")

    def test_workers_start_alike(self):
        cases = CASES
        if not os.access(lab.BIN / "hlaunch-agent", os.X_OK):
            cases = [case for case in CASES if len(case.nodes) == 1]
        self.used = set()
        theirs = self.start_torchrun(cases)
        for case in cases:
            with self.subTest(case.name):
                ours = self.starts(case, "hlaunch", self.start_hlaunch(case))
                for worker, start in self.starts(case, "torchrun", theirs).items():
                    self.compare_words(case, worker, ours[worker]["argv"], start["argv"])
                    self.compare_env(case, worker, ours[worker]["env"], start["env"])
                    self.assertEqual(ours[worker]["cwd"], start["cwd"])
        reasons = {row.reason for row in DIFFERENCES
                   if any(re.fullmatch(row.cases, case.name) for case in cases)}
        reasons |= {row[2] for row in WORD_DIFFERENCES}
        self.assertEqual(sorted(reasons - self.used), [], "differences that are none any more")
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
