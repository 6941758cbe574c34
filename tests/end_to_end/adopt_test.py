#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Programs that start torch's elastic agent in Python are run by hlaunch, unchanged."""

import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

import jobs
import lab

TORCH = os.environ.get("HLAUNCH_TORCH2_PYTHON", "/root/.cache/hlaunch/torch-newest/bin/python")
RANKS, CALLS = lab.WORKERS / "adopt/ranks.py", lab.WORKERS / "adopt/calls.py"
RUN = ("-m", "torch.distributed.run")
TORCHS = ("torchelastic",)  # Its agent leaves folders behind.


class WithTorch(jobs.JobTest):
    """Runs programs of a Python with torch."""

    count = 1

    @classmethod
    def setUpClass(cls):
        cls.python = TORCH
        if not os.access(cls.python, os.X_OK):
            raise unittest.SkipTest(f"there is no {cls.python} with torch")
        super().setUpClass()

    def begin(self, *words, node=0, env=None, run=True, **options):
        """Starts a program, by `hlaunch run` if that is wanted."""
        command = [lab.HLAUNCH, "run", self.python] if run else [self.python]
        env = {"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": self.temporary(node), **(env or {})}
        return self.nodes[node].start(*command, *words, env=env, **options)

    def temporary(self, node=0):
        folder = pathlib.Path(self.nodes[node].folder, "tmp")
        folder.mkdir(exist_ok=True)
        return folder

    def assert_done(self, runs, codes, timeout, leaves=()):
        """`leaves` are the beginnings of names of what may be left in TMPDIR."""
        super().assert_done(runs, codes, timeout)
        left = [path.name for node in range(self.count) for path in self.temporary(node).iterdir()
                if path.name.startswith(("hlaunch", "torchelastic")) and not path.name.startswith(leaves)]
        self.assertEqual(left, [])

    def assert_ranks(self, runs, world, **wanted):
        """Each rank said its place once; `wanted` are further words that it said."""
        out = "\n".join(run.out for run in runs)
        for rank in range(world):
            said = re.findall(rf"rank {rank} of {world}, .*", out)
            self.assertEqual(len(said), 1, self.told(runs))
            for name, value in wanted.items():
                self.assertIn(f"{name} {value}", said[0], self.told(runs))

    def answers(self, run):
        found = re.search("^TOLD (.*)$", run.out, re.MULTILINE)
        self.assertTrue(found, str(run))
        return json.loads(found[1])


class Programs(WithTorch):
    """A script whose job torch's own commands start."""

    def test_its_launcher_as_a_module(self):
        run = self.begin(*RUN, "--standalone", "--nproc-per-node=2", "--role", "r", RANKS, "a b", "*")
        self.assert_done([run], jobs.OK, 60)
        self.assert_ranks([run], 2, by="hlaunch", wants="None", side="False", restart="0",
                          args="['a b', '*']")

    def test_the_process_is_hlaunch_and_ends_with_the_ranks_code(self):
        run = self.begin(*RUN, "--nproc-per-node=2", RANKS, "--fail")
        self.assert_done([run], 7, 60)
        self.assert_said(run, "job failed: rank 1 .* exited with code 7")

    def test_a_killed_rank_is_restarted(self):
        run = self.begin(*RUN, "--nproc-per-node=2", "--max-restarts=1", RANKS, "--fail-once")
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(len(re.findall("restart 1", run.out)), 2, str(run))

    def test_a_signal_ends_it_with_all_that_it_started(self):
        run = self.begin(*RUN, "--nproc-per-node=2", RANKS, "--wait")
        run.wait_for("rank 1 of 2", 60)
        os.kill(run.pid, signal.SIGTERM)
        self.assert_done([run], 128 + signal.SIGTERM, 30)

    def test_nothing_is_caught_where_it_is_not_wanted(self):
        run = self.begin(*RUN, "--nproc-per-node=2", RANKS, env={"HLAUNCH_TORCHRUN": "0"},
                         run=False)
        self.assert_done([run], jobs.OK, 60, leaves=TORCHS)
        self.assert_ranks([run], 2, by="torch")

    def test_what_cannot_be_kept_is_refused_or_left_to_torch(self):
        words = (*RUN, "--standalone", "--nproc-per-node=1", "--event-log-handler=console", RANKS)
        run = self.begin(*words)
        self.assert_done([run], 2, 60)
        self.assert_said(run, "event_log_handler 'console' is Python code of torch's agent.*"
                              "HLAUNCH_TORCHRUN=try")
        run = self.begin(*words, env={"HLAUNCH_TORCHRUN": "try"})
        self.assert_done([run], jobs.OK, 60, leaves=TORCHS)
        self.assert_ranks([run], 1, by="torch")

    def test_an_environment_is_adopted_and_left_again(self):
        venv = pathlib.Path(self.nodes[0].folder, "venv")
        site = subprocess.run([self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                              text=True, capture_output=True, check=True, timeout=600).stdout
        subprocess.run([self.python, "-m", "venv", "--without-pip", venv], check=True, timeout=600)
        next(venv.glob("lib/python3*/site-packages")).joinpath("torch.pth").write_text(site, encoding="utf-8")
        env = {"VIRTUAL_ENV": venv, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
        for word, way in (("--links=torchrun", "hlaunch"), ("--undo", "torch")):
            said = self.nodes[0].run(lab.HLAUNCH, "adopt", word, env=env, timeout=60)
            self.assertEqual(said.code, jobs.OK, str(said))
            run = self.nodes[0].start(venv / "bin/python", *RUN, "--nproc-per-node=1", RANKS,
                                      env={**env, "TMPDIR": self.temporary()})
            self.assert_done([run], jobs.OK, 60, leaves=() if way == "hlaunch" else TORCHS)
            self.assert_ranks([run], 1, by=way)
            self.assertEqual((venv / "bin/torchrun").is_symlink(), way == "hlaunch")

    def test_a_missing_program_is_named(self):
        run = self.nodes[0].run(lab.HLAUNCH, "run", "/gone/program", timeout=30)
        self.assertEqual(run.code, jobs.NOT_FOUND)
        self.assert_said(run, "cannot run /gone/program: No such file")


class Calling(WithTorch):
    """elastic_launch with functions, and with programs from a program that goes on."""

    def call(self, *plants, env=None):
        run = self.begin(CALLS, *plants, env=env)
        self.assert_done([run], jobs.OK, 120)
        self.assertIn("handlers as before", run.out)
        return self.answers(run)


class Functions(Calling):
    def test_values_come_back_as_the_callers_own(self):
        self.assertEqual(self.call("ok", "program"),
                         {"ok": {"0": [True, "hello 0 of 2"], "1": [True, "hello 1 of 2"]},
                          "program": {"0": None, "1": None}})

    def test_ranks_are_a_python_like_the_callers(self):
        run = self.begin("-O", "-W", "ignore::ResourceWarning", CALLS, "flags", "shared", "tensor")
        self.assert_done([run], jobs.OK, 120)
        told = self.answers(run)
        self.assertEqual(told["flags"], {
            str(rank): [True, f"False ['ignore::ResourceWarning'] spawn SpawnProcess-{rank + 1}"]
            for rank in range(2)})
        self.assertIn("argument 1 of ok is in shared memory", told["shared"]["error"])
        self.assertEqual(run.err.count("each rank has copies of the tensors"), 1, str(run))

    def test_failures_come_back_as_torchs_exception(self):
        told = self.call("raises", "killed", "program-fails")
        self.assertEqual(told["raises"], {"failed": "raises", "first": 1, "failures": {
            "1": [1, 1, "ValueError: hello was planted"]}})
        self.assertEqual(told["killed"]["failures"]["1"][:2], [-9, 1])
        self.assertRegex(told["killed"]["failures"]["1"][2], "Signal 9 .SIGKILL. received by PID")
        self.assertEqual(told["program-fails"]["failures"]["1"][:2], [3, 1])

    def test_what_cannot_be_pickled_is_named(self):
        said = self.call("lock")["lock"]["error"]
        self.assertRegex(said, "^hlaunch: ok and its arguments cannot be pickled: TypeError")

    def test_the_caller_gets_the_exception_of_a_signal(self):
        run = self.begin(CALLS, "waits")
        run.wait_for("waits", 60)
        os.kill(run.pid, signal.SIGINT)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.answers(run)["waits"]["signal"], "KeyboardInterrupt")


class Forks(Calling):
    """Functions with torch's start method `fork`, as notebook_launcher's."""

    def test_ranks_have_what_the_caller_has_set_and_opened(self):
        run = self.begin(CALLS, "fork-is_fork")
        self.assert_done([run], jobs.OK, 120)
        self.assertEqual(self.answers(run)["fork-is_fork"],
                         {str(rank): [True, f"7  {rank} of 2"] for rank in range(2)}, str(run))
        for rank in range(2):
            self.assertEqual(run.out.count(f"rank {rank} prints\n"), 1, str(run))

    def test_failures_come_back_as_torchs_exception(self):
        told = self.call("fork-raises", "fork-killed", "fork-exits")
        self.assertEqual(told["fork-raises"], {"failed": "raises", "first": 1, "failures": {
            "1": [1, 1, "ValueError: hello was planted"]}})
        self.assertEqual(told["fork-killed"]["failures"]["1"][:2], [-9, 1])
        self.assertEqual(told["fork-exits"]["failures"]["1"][:2], [7, 1])

    def test_a_rank_that_is_told_to_end_cleans_up_as_under_torch(self):
        run = self.begin(CALLS, "fork-cleans")
        self.assert_done([run], jobs.OK, 120)
        self.assertEqual(self.answers(run)["fork-cleans"]["failures"]["1"][:2], [7, 1])
        self.assertIn("cleaned\n", run.out)

    def test_a_killed_rank_is_restarted_and_nothing_is_left(self):
        told = self.call("fork-once", "fork-leaves")
        self.assertEqual(told, {plant: {"0": [True, "hello 0 of 2"], "1": [True, "hello 1 of 2"]}
                                for plant in told})

    def test_the_caller_gets_the_exception_of_a_signal(self):
        run = self.begin(CALLS, "fork-waits")
        run.wait_for(r"waits[\s\S]*waits", 60)
        os.kill(run.pid, signal.SIGINT)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.answers(run)["fork-waits"]["signal"], "KeyboardInterrupt")

    def test_nothing_outlives_a_caller_that_is_killed(self):
        run = self.begin(CALLS, "fork-waits")
        run.wait_for(r"waits[\s\S]*waits", 60)
        os.kill(run.pid, signal.SIGKILL)
        self.assert_done([run], 128 + signal.SIGKILL, 60, leaves=("hlaunch-call",))

    def test_failures_come_back_also_to_a_caller_that_ignores_its_children(self):
        told = self.call("ignores-children", "exits", "fork-exits", "fork-ok")
        for plant in ("exits", "fork-exits"):
            self.assertEqual(told[plant]["failures"]["1"][:2], [7, 1])
        self.assertEqual(told["fork-ok"], {str(rank): [True, f"hello {rank} of 2"] for rank in range(2)})

    def test_two_callers_at_once_do_not_wait_for_each_other(self):
        run = self.begin(CALLS, "fork-threads")
        self.assert_done([run], jobs.OK, 120)
        self.assertEqual(self.answers(run)["fork-threads"],
                         {str(rank): [True, f"second {rank} of 2"] for rank in range(2)}, str(run))

    def test_a_rank_ends_with_its_stand_in(self):
        run = self.begin(CALLS, "fork-waits")
        run.wait_for(r"waits[\s\S]*waits", 60)
        stand_ins = [pid for pid in lab.descendants(run.process.pid)
                     if re.search("^[^ ]*python[^ ]* -I -S .*stand_in", lab.command_line(pid))]
        self.assertEqual(len(stand_ins), 2)
        os.kill(stand_ins[0], signal.SIGKILL)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(list(self.answers(run)["fork-waits"]["failures"].values())[0][0], -9)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class FunctionsAtLength(Calling):
    def test_a_killed_rank_is_restarted(self):
        self.assertEqual(self.call("once")["once"],
                         {"0": [True, "hello 0 of 2"], "1": [True, "hello 1 of 2"]})

    def test_the_caller_gets_torchs_exception_of_sigterm(self):
        run = self.begin(CALLS, "waits")
        run.wait_for("waits", 60)
        os.kill(run.pid, signal.SIGTERM)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.answers(run)["waits"]["signal"], signal.SIGTERM)

    def test_nothing_outlives_a_caller_that_is_killed(self):
        run = self.begin(CALLS, "waits")
        run.wait_for("waits", 60)
        os.kill(run.pid, signal.SIGKILL)
        self.assert_done([run], 128 + signal.SIGKILL, 60, leaves=("hlaunch-call",))

    def test_two_callers_at_once(self):
        runs = [self.begin(CALLS, "ok") for _ in range(2)]
        self.assert_done(runs, jobs.OK, 120)
        for run in runs:
            self.assertEqual(self.answers(run)["ok"]["1"], [True, "hello 1 of 2"])


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class UnknownTorchAtLength(Calling):
    """A torch that is newer than this hlaunch: the one of the tests, with some of its text changed."""

    API = "distributed/launcher/api.py"

    def changed(self, file, pattern, new):
        """Returns an environment with that torch, of which `file` is another: the rest are links."""
        found = subprocess.run([self.python, "-c", "import importlib.util as util\n"
                                "print(util.find_spec('torch').submodule_search_locations[0])"],
                               text=True, capture_output=True, check=True, timeout=600).stdout.strip()
        torch = pathlib.Path(self.nodes[0].folder, "newer/torch")
        for folder in reversed(pathlib.Path(file).parents):
            (torch / folder).mkdir(parents=True)
            for path in pathlib.Path(found, folder).iterdir():
                if path.name not in ("__pycache__", *pathlib.Path(file).parts):
                    (torch / folder / path.name).symlink_to(path)
        text, count = re.subn(pattern, new, pathlib.Path(found, file).read_text(encoding="utf-8"))
        self.assertEqual(count, 1)
        (torch / file).write_text(text, encoding="utf-8")
        return {"PYTHONPATH": torch.parent}

    def test_a_newer_release_is_run_by_hlaunch(self):
        env = self.changed("version.py", r"(?m)^(__version__ = ).*", r"\1'9.9.0'")
        run = self.begin(*RUN, "--nproc-per-node=2", RANKS, env=env)
        self.assert_done([run], jobs.OK, 90)
        self.assert_ranks([run], 2, by="hlaunch")
        self.assertEqual(self.call("release", "fork-ok", env=env), {
            "release": {str(rank): [True, "9.9.0"] for rank in range(2)},
            "fork-ok": {str(rank): [True, f"hello {rank} of 2"] for rank in range(2)}})

    def test_what_it_gives_besides_is_refused_or_left_to_torch(self):
        env = self.changed(self.API, r"\Z", "_own = launch_agent\n\n\n"
                           "def launch_agent(config, entrypoint, args, health_check_server=None, guards=7):\n"
                           "    return _own(config, entrypoint, args)\n\n\n"
                           "def __call__(self, *args):\n"
                           "    return launch_agent(self._config, self._entrypoint, list(args), guards=8)\n\n\n"
                           "elastic_launch.__call__ = __call__\n")
        self.assert_refused("gives launch_agent guards=8, which this hlaunch does not know", env)

    def test_another_signature_is_refused_or_left_to_torch(self):
        env = self.changed(self.API, r"\Z", "_own = launch_agent\n\n\n"
                           "def launch_agent(config, program, words, health_check_server=None):\n"
                           "    return _own(config, program, words)\n")
        self.assert_refused(r"has launch_agent\(config, program, .*, which this hlaunch does not know", env)

    def assert_refused(self, why, env):
        run = self.begin(*RUN, "--nproc-per-node=1", RANKS, env=env)
        self.assert_done([run], 2, 90)
        self.assert_said(run, why)
        self.assertRegex(self.call("ok", env=env)["ok"]["error"], why)
        run = self.begin(*RUN, "--nproc-per-node=1", RANKS, env={**env, "HLAUNCH_TORCHRUN": "try"})
        self.assert_done([run], jobs.OK, 90, leaves=TORCHS)
        self.assert_ranks([run], 1, by="torch")


class OnTwoNodes(WithTorch):
    """Both forms in which torch's nodes meet."""

    count = 2

    def test_nodes_meet_at_an_endpoint(self):
        runs = [self.begin(*RUN, "--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=j",
                           "--rdzv-endpoint=node0:29400", RANKS, node=node) for node in range(2)]
        self.assert_done(runs, jobs.OK, 90)
        self.assert_ranks(runs, 4, by="hlaunch")

    def test_functions_in_the_static_form(self):
        runs = [self.begin(CALLS, "ok", "--nodes", 2, node, f"{self.nodes[0].ip}:29500", node=node)
                for node in range(2)]
        self.assert_done(runs, jobs.OK, 120)
        self.assertEqual([self.answers(run)["ok"] for run in runs],
                         [{str(rank): [True, f"hello {rank} of 4"] for rank in ranks}
                          for ranks in ((0, 1), (2, 3))])

    def test_each_node_learns_its_ranks_and_what_failed_elsewhere(self):
        runs = [self.begin(CALLS, "program", "raises", "--nodes", 2, "any", f"{self.nodes[0].ip}:29500",
                           node=node) for node in range(2)]
        self.assert_done(runs, jobs.OK, 120)
        told = [self.answers(run) for run in runs]
        self.assertEqual(sorted(sorted(each["program"]) for each in told), [["0", "1"], ["2", "3"]])
        for each in told:
            self.assertEqual(each["raises"], {"failed": "raises", "first": 1, "failures": {
                "1": [1, 1, "ValueError: hello was planted"]}}, self.told(runs))


# Lines as torch's own tests of its launcher have them, and whether they succeed.
LINES = (
    ("--nnodes=1 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv-id=t "
     "--monitor-interval=1 --start-method=spawn SCRIPT --touch", True),
    ("--nnodes=1 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 "
     "--rdzv-conf='join_timeout=5,timeout=5' --max-restarts=0 SCRIPT --fail", False),
    ("--nnodes=1:2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:29433 "
     "--rdzv-conf=last_call_timeout=1,join_timeout=60 SCRIPT", True),
    ("--standalone --nnodes=1 --nproc-per-node=2 SCRIPT", True),
    ("--nnodes=1 --nproc-per-node=2 --node-rank=0 --master-addr=127.0.0.1 --master-port=29477 "
     "--rdzv-conf=rank=0 SCRIPT", True),
    ("--nproc-per-node=2 --logs-specs=default --log-dir=logs --redirects=0 --tee=0:1,1:0 SCRIPT", True),
    ("--nproc-per-node=2 --role=trainer --no-python PYTHON SCRIPT a b", True),
    ("--nproc-per-node=1 --run-path SCRIPT", True),
    ("--nproc-per-node=2 --local-ranks-filter=0,1 --rdzv-conf=mine=1 SCRIPT x", True),
    ("--nproc-per-node=1 --module ranks y", True),
    ("--nproc-per-node=2 --log-line-prefix-template=[${role_name}]: --tee=3 SCRIPT", True),
    ("--nproc-per-node=none SCRIPT", False),
)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class LinesAtLength(WithTorch):
    """Each line does the same in three ways: torch's own, adopted, and under torchrun's name; each
    way on a node of its own, since lines name ports."""

    count = 3

    def facts(self, run):
        """The places that ranks said, without who ran them. Two ranks may have written into one line,
        since Python does not buffer there."""
        return sorted(re.findall(
            r"rank \d+ of \d+, local \d+, node \d+, restart \d+, args \[.*?\](?=, by)", run.out + run.err))

    def three_ways(self, line):
        words = [str(RANKS) if word == "SCRIPT" else self.python if word == "PYTHON" else word
                 for word in line.split()]
        def options(node):
            return {"cwd": self.temporary(node), "env": {"PYTHONPATH": RANKS.parent}}
        runs = [self.begin(*RUN, *words, run=node == 1, node=node, **options(node)) for node in range(2)]
        env = {"PYTHON_EXEC": self.python, "PYTHONPATH": RANKS.parent, "TMPDIR": self.temporary(2)}
        return [*runs, self.nodes[2].start(lab.BIN / "torchrun", *words, cwd=self.temporary(2), env=env)]

    def test_lines_of_torchs_own_tests(self):
        for line, succeeds in LINES:
            with self.subTest(line):
                runs = self.three_ways(line)
                for run in runs:
                    run.wait(90)
                if "error: unrecognized arguments" in runs[0].err:  # An older torch lacks it.
                    self.assertIn("error: unrecognized arguments", runs[1].err)
                    continue
                for run in runs:
                    self.assertEqual(run.wait(90) == 0, succeeds, self.told(runs))
                told = [self.facts(run) for run in runs]
                if succeeds:  # A rank that fails may end others before they say anything.
                    self.assertTrue(told[0], self.told(runs))
                    self.assertEqual(told, [told[0]] * 3, self.told(runs))


class Stock(WithTorch):
    """Programs of frameworks start a script without torch, so that little but they is loaded."""

    count, package = 2, "accelerate"
    launch = ("-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu", "--num_processes")

    @classmethod
    def setUpClass(cls):
        cls.stock = os.environ.get("HLAUNCH_STOCK_PYTHON", "/root/.cache/hlaunch/stock-3/bin/python")
        if not os.access(cls.stock, os.X_OK):
            raise unittest.SkipTest(f"there is no {cls.stock} with accelerate and others")
        super().setUpClass()
        cls.python = cls.stock

    def script(self, node, *words):
        """The command `words[0]` of the packages, which has a script beside their Python."""
        return self.nodes[node].start(
            lab.HLAUNCH, "run", pathlib.Path(self.stock).parent / words[0], *words[1:],
            env={"PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": self.temporary(node), "HF_HUB_OFFLINE": "1",
                 "HOME": self.temporary(node)})

    def test_accelerate_on_one_host(self):
        run = self.begin(*self.launch, 2, RANKS, "--lr", "0.1")
        self.assert_done([run], jobs.OK, 90)
        self.assert_ranks([run], 2, by="hlaunch", args="['--lr', '0.1']", wants="None")

    def test_accelerate_on_two_hosts(self):
        runs = [self.script(node, "accelerate", "launch", "--multi_gpu", "--num_machines=2",
                            "--num_processes=4", f"--machine_rank={node}", "--main_process_ip",
                            self.nodes[0].ip, "--main_process_port=29500", "--max_restarts=1",
                            RANKS, "--fail-once") for node in range(2)]
        self.assert_done(runs, jobs.OK, 120)
        out = "\n".join(run.out for run in runs)
        self.assertEqual(len(re.findall("of 4.*restart 1.*by hlaunch", out)), 4, self.told(runs))


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class StockAtLength(Stock):
    def adopted_python(self):
        python = os.environ.get("HLAUNCH_ADOPT_PYTHON", "")
        if not os.access(python, os.X_OK):
            self.skipTest("HLAUNCH_ADOPT_PYTHON names no Python with adopt_requirements.txt")
        return python

    def notebook(self, *words):
        python = self.adopted_python()
        return self.nodes[0].start(lab.HLAUNCH, "run", python, lab.WORKERS / "adopt/notebook.py", *words,
                                   env={"TMPDIR": self.temporary(), "HOME": self.temporary(),
                                        "PATH": f"{pathlib.Path(python).parent}:{os.environ['PATH']}"})

    def test_a_notebook(self):
        run = self.notebook()
        self.assert_done([run], jobs.OK, 120)
        for rank in range(2):
            self.assertRegex(run.out, rf"CELL .*rank {rank} of 2, train, sum 3.0, by hlaunch")
        self.assertIn("CELL the cell goes on", run.out)

    def test_a_notebook_that_is_interrupted(self):
        run = self.notebook("--interrupt")
        self.assert_done([run], jobs.OK, 120)
        self.assertIn("CELL KeyboardInterrupt", run.out)

    def test_two_notebooks_at_once_of_which_one_is_interrupted(self):
        gate = pathlib.Path(self.nodes[0].folder, "gate")
        runs = [self.notebook("--interrupt"), self.notebook("--until", gate, "--port", 29501)]
        runs[0].wait_for("CELL KeyboardInterrupt", 240)
        runs[1].wait_for(r"rank 0 of 2[\s\S]*rank 1 of 2|rank 1 of 2[\s\S]*rank 0 of 2", 240)
        self.assertIsNone(runs[1].process.poll(), self.told(runs))
        gate.touch()
        self.assert_done(runs, jobs.OK, 240)
        for run, word in zip(runs, ("wait", gate)):
            for rank in range(2):
                self.assertEqual(len(re.findall(rf"CELL .*rank {rank} of 2, {word}, sum 3.0, by hlaunch",
                                                run.out)), 1, self.told(runs))
        self.assertIn("CELL the cell goes on", runs[1].out)

    def test_accelerate_with_a_module(self):
        run = self.nodes[0].start(
            lab.HLAUNCH, "run", self.python, *self.launch, 2, "-m", "ranks", "x", cwd=RANKS.parent,
            env={"TMPDIR": self.temporary(), "PYTHONDONTWRITEBYTECODE": "1"})
        self.assert_done([run], jobs.OK, 90)
        self.assert_ranks([run], 2, by="hlaunch", args="['x']")

    def test_accelerate_with_its_deepspeed_plugin_and_a_killed_rank(self):
        run = self.nodes[0].start(
            lab.HLAUNCH, "run", self.adopted_python(), "-m", "accelerate.commands.launch", "--use_deepspeed",
            "--num_processes=2", "--max_restarts=1", RANKS, "--fail-once",
            env={"TMPDIR": self.temporary(), "HOME": self.temporary(), "DS_ACCELERATOR": "cpu",
                 "PYTHONDONTWRITEBYTECODE": "1"})
        self.assert_done([run], jobs.OK, 90)
        self.assertEqual(len(re.findall("of 2.*restart 1.*by hlaunch", run.out)), 2, str(run))

    def test_fabric(self):
        run = self.script(0, "fabric", "run", "--devices=2", "--accelerator=cpu", "--strategy=ddp", RANKS)
        self.assert_done([run], jobs.OK, 90)
        self.assert_ranks([run], 2, by="hlaunch")


if __name__ == "__main__":
    lab.main()
