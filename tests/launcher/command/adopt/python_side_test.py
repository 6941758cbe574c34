#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The Python side of `hlaunch run` and `hlaunch adopt`, without torch: its words, its door and what
it does to an environment. end_to_end/adopt_test.py has the same with torch.

Usage: python_side_test.py BUILD_FOLDER [CLASS...]
"""

import contextlib
import dataclasses
import enum
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
SIDE = BUILD / "python/hlaunch/adopt"
sys.path.insert(0, str(SIDE))
sys.dont_write_bytecode = True

from hlaunch_adopt import environment, outcome, pack, program, words  # pylint: disable=wrong-import-position


class Std(enum.IntFlag):
    """As torch has it."""
    NONE, OUT, ERR, ALL = 0, 1, 2, 3


class DefaultLogsSpecs:
    """torch's private fields, the same in its releases 2.4 to 2.15."""

    def __init__(self, log_dir=None, redirects=Std.NONE, tee=Std.NONE, local_ranks_filter=None):
        self._root_log_dir, self._redirects, self._tee = log_dir, redirects, tee
        self._local_ranks_filter = local_ranks_filter


@dataclasses.dataclass
class Oldest:
    """LaunchConfig of torch 2.4."""
    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: object = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str = None
    metrics_cfg: dict = dataclasses.field(default_factory=dict)
    local_addr: str = None

    def __post_init__(self):
        self.rdzv_configs.setdefault("timeout", 900)
        self.logs_specs = self.logs_specs or DefaultLogsSpecs()


@dataclasses.dataclass
class Newest(Oldest):
    """LaunchConfig of torch 2.15."""
    event_log_handler: str = "null"
    numa_options: object = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list = None
    duplicate_stderr_filters: list = None
    virtual_local_rank: bool = False
    shutdown_timeout: int = 30


@dataclasses.dataclass
class Unknown(Newest):
    """One of a torch that is to come."""
    warp: int = 0


def plain(config):
    """The words as {option: value}."""
    found = words.words_of(config)
    return dict(zip(found[::2], found[1::2]))


class Words(unittest.TestCase):
    """Each field of LaunchConfig becomes words, or is refused by its name."""

    def refused(self, config, pattern):
        with self.assertRaisesRegex(words.Refused, pattern):
            words.words_of(config)

    def test_one_node_needs_no_meeting_whatever_the_backend(self):
        self.assertEqual(plain(Oldest(1, 1, 2)),
                         {"--nnodes": "1", "--nproc-per-node": "2", "--role": "default_role",
                          "--max-restarts": "3"})
        self.assertNotIn("--rdzv-conf", plain(Newest(1, 1, 2, rdzv_backend="zeus",
                                                     rdzv_configs={"is_host": 1})))

    def test_a_port_that_scripts_may_know_stays(self):
        self.assertEqual(plain(Newest(1, 1, 1, rdzv_backend="static",
                                      rdzv_endpoint="127.0.0.1:29500"))["--master-port"], "29500")
        self.assertNotIn("--master-port", plain(Newest(1, 1, 1, rdzv_backend="c10d",
                                                       rdzv_endpoint="localhost:29400")))

    def test_nodes_meet_as_with_torch(self):
        static = plain(Newest(2, 2, 4, rdzv_backend="static", rdzv_endpoint="[fd00::1]:29501",
                              rdzv_configs={"rank": 1}))
        self.assertEqual([static[name] for name in ("--node-rank", "--master-addr", "--master-port")],
                         ["1", "[fd00::1]", "29501"])
        c10d = plain(Newest(1, 4, 4, run_id="7", rdzv_backend="c10d", rdzv_endpoint="n0:1",
                            rdzv_configs={"join_timeout": 60, "is_host": True}))
        self.assertEqual({name: c10d[name] for name in c10d if "rdzv" in name or name == "--nnodes"},
                         {"--nnodes": "1:4", "--rdzv-id": "7", "--rdzv-backend": "c10d",
                          "--rdzv-endpoint": "n0:1", "--rdzv-conf": "join_timeout=60,is_host=True"})
        self.refused(Newest(2, 2, 1, rdzv_backend="etcd-v2", rdzv_endpoint="n0:2379"),
                     "rdzv_backend 'etcd-v2'.*c10d or static")
        self.refused(Newest(2, 2, 1, rdzv_backend="static", rdzv_endpoint="n0:1"), "rank")

    def test_the_callers_configuration_stays_as_it_is(self):
        config = Newest(2, 2, 1, rdzv_backend="static", rdzv_endpoint="n0:1", rdzv_configs={"rank": 0})
        words.words_of(config)
        self.assertEqual(config.rdzv_configs, {"rank": 0, "timeout": 900})

    def test_logs_go_where_torch_would_put_them(self):
        specs = DefaultLogsSpecs("/tmp/x/logs", Std.ALL, {0: Std.OUT, 1: Std.ERR}, {1, 0})
        found = plain(Newest(1, 1, 2, logs_specs=specs))
        self.assertEqual([found[name] for name in ("--log-dir", "--redirects", "--tee",
                                                   "--local-ranks-filter")],
                         ["/tmp/x/logs", "3", "0:1,1:2", "0,1"])
        made = tempfile.mkdtemp(prefix="torchelastic_")  # As torch does where none was named.
        self.addCleanup(os.rmdir, made)
        config = Newest(1, 1, 2, logs_specs=DefaultLogsSpecs(made))
        self.assertNotIn("--log-dir", plain(config))
        self.assertEqual(words.made_folder(config), made)

        for wanted in {"redirects": Std.ALL}, {"tee": {0: Std.OUT}}:  # Files that somebody reads.
            config = Newest(1, 1, 2, logs_specs=DefaultLogsSpecs(made, **wanted))
            self.assertEqual((plain(config)["--log-dir"], words.made_folder(config)), (made, None))

        class Mine(DefaultLogsSpecs):
            """A plugin."""
        self.refused(Newest(1, 1, 2, logs_specs=Mine()), "logs_specs Mine .*DefaultLogsSpecs")

    def test_what_newer_releases_have(self):
        numa = types.SimpleNamespace(affinity_mode=types.SimpleNamespace(value="node"))
        config = Newest(1, 1, 2, numa_options=numa, virtual_local_rank=True, shutdown_timeout=0,
                        duplicate_stdout_filters=["a,b", "c"], duplicate_stderr_filters=[],
                        log_line_prefix_template="${rank}: ", local_addr="n0")
        found = words.words_of(config)
        self.assertIn("--virtual-local-rank", found)
        for option, value in (("--numa-binding", "node"), ("--shutdown-timeout", "0"),
                              ("--duplicate-stdout-filters", "a,,b,c"), ("--local-addr", "n0"),
                              ("--log-line-prefix-template", "${rank}: "),
                              ("--signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT")):
            self.assertEqual(found[found.index(option) + 1], value)
        self.assertNotIn("--duplicate-stderr-filters", found)

    def test_what_cannot_be_kept_is_named(self):
        self.refused(Newest(1, 1, 1, event_log_handler="console"), "event_log_handler 'console'")
        self.refused(Newest(1, 1, 1, metrics_cfg={"a": "b"}), "metrics_cfg")
        words.words_of(Unknown(1, 1, 1))
        self.refused(Unknown(1, 1, 1, warp=9), "LaunchConfig.warp")

    def test_every_field_that_torch_has_is_known(self):
        named = {field.name for field in dataclasses.fields(Newest)}
        self.assertEqual(set(words.FIELDS), named)


API = '''
def launch_agent(config, entrypoint, args, health_check_server=None):
    """torch's own."""
    return "torch's agent"
'''
PACKAGE = "from torch.distributed.launcher.api import launch_agent\n"


class Door(unittest.TestCase):
    """install() replaces torch's function where it is wanted, and nowhere else. A package with
    torch's names is enough here."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("torch", "torch/distributed", "torch/distributed/launcher"):
            (self.root / name).mkdir()
            (self.root / name / "__init__.py").write_text("", encoding="utf-8")
        (self.root / "torch/distributed/launcher/__init__.py").write_text(PACKAGE, encoding="utf-8")
        self.api = self.root / "torch/distributed/launcher/api.py"
        self.api.write_text(API, encoding="utf-8")

    def python(self, text, **env):
        done = subprocess.run(
            [sys.executable, "-Bc", textwrap.dedent(text)], text=True, capture_output=True, check=False,
            timeout=600, env={"PATH": os.environ["PATH"], **env,
                              "PYTHONPATH": f"{self.root}{os.pathsep}{SIDE}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip() + done.stderr.strip()

    LOOK = """
        import sys, hlaunch_adopt
        {before}
        hlaunch_adopt.install()
        hlaunch_adopt.install()
        import torch.distributed.launcher as launcher, torch.distributed.launcher.api as api
        print(hasattr(api.launch_agent, "torchs_own"), api.launch_agent is launcher.launch_agent,
              hasattr(getattr(api.launch_agent, "torchs_own", None), "torchs_own"),
              [type(finder).__name__ for finder in sys.meta_path].count("_Finder"))
        """

    def test_it_replaces_one_function_once(self):
        for before in "", "import torch.distributed.launcher":
            self.assertEqual(self.python(self.LOOK.format(before=before), HLAUNCH_TORCHRUN="1"),
                             "True True False 0")

    def test_it_does_nothing_where_it_is_not_wanted(self):
        for env in ({}, {"HLAUNCH_TORCHRUN": "0"}, {"HLAUNCH_TORCHRUN": "Off"}, {"HLAUNCH_TORCHRUN": "false"},
                    {"HLAUNCH_TORCHRUN": "1", "HLAUNCH_JOB_ID": "7"},
                    {"HLAUNCH_TORCHRUN": "1", "TORCHELASTIC_RUN_ID": "7"}):
            self.assertEqual(self.python(self.LOOK.format(before=""), **env), "False True False 0")

    def test_only_one_small_file_is_read_before_a_job_starts(self):
        text = """
            import sys, hlaunch_adopt
            known = set(sys.modules)
            hlaunch_adopt.install()
            print([name for name in sys.modules if name.startswith("hlaunch_adopt.")],
                  sorted(set(sys.modules) - known))
            """
        self.assertEqual(self.python(text, HLAUNCH_TORCHRUN="1"), "[] []")

    def test_a_torch_without_the_function_is_told_in_one_line(self):
        self.api.write_text("launch_agents = None\n", encoding="utf-8")
        (self.root / "torch/distributed/launcher/__init__.py").write_text("", encoding="utf-8")
        text = "import hlaunch_adopt\nhlaunch_adopt.install()\nimport torch.distributed.launcher.api"
        self.assertEqual(self.python(text, HLAUNCH_TORCHRUN="1"),
                         "hlaunch: this release of torch has no launch_agent, so torch's own agent "
                         "starts its jobs")

    CALL = """
        import hlaunch_adopt
        hlaunch_adopt.install()
        from torch.distributed.launcher.api import launch_agent
        try:
            print(launch_agent({config}, print, []))
        except RuntimeError as error:
            print(error)
        """

    def test_an_unknown_signature_is_refused_or_left_to_torch(self):
        self.api.write_text(API.replace("config,", "conf,"), encoding="utf-8")
        text = self.CALL.format(config="None")
        self.assertRegex(self.python(text, HLAUNCH_TORCHRUN="1"),
                         r"^hlaunch: this release of torch has launch_agent\(conf, .*does not know.*"
                         r"HLAUNCH_TORCHRUN=try lets torch's own agent run such jobs, =0 all jobs$")
        said = self.python(text, HLAUNCH_TORCHRUN="try")
        self.assertRegex(said, r"^torch's agenthlaunch: this release .*; torch's own agent runs this job$")

    def test_what_a_newer_torch_gives_besides_is_refused_unless_it_is_the_default(self):
        self.api.write_text(API.replace("=None", "=None, guards=None"), encoding="utf-8")
        for value, wanted in (("guards=7", "this release of torch gives launch_agent guards=7, which"),
                              ("guards=None", "HLAUNCH_PROGRAM is /gone/hlaunch")):  # All else is known.
            text = self.CALL.replace("[])", f"[], {value})").format(config="None")
            self.assertRegex(self.python(text, HLAUNCH_TORCHRUN="1", HLAUNCH_PROGRAM="/gone/hlaunch"),
                             f"^hlaunch: {wanted}")

    def test_a_program_that_is_missing_is_named(self):
        said = self.python(self.CALL.format(config="None"), HLAUNCH_TORCHRUN="1",
                           HLAUNCH_PROGRAM="/gone/hlaunch")
        self.assertRegex(said, "^hlaunch: HLAUNCH_PROGRAM is /gone/hlaunch, which is no program")


class Pack(unittest.TestCase):
    """A function as bytes."""

    def test_a_function_of_a_module_is_pickled_by_its_name(self):
        _, pickled = pickle.loads(pack.pack(os.path.join, ["a"]))
        self.assertEqual(pickle.loads(pickled), (os.path.join, ("a",)))

    def test_what_cannot_be_pickled_is_named(self):
        hidden = sys.modules.get("cloudpickle")
        sys.modules["cloudpickle"] = None  # As where it is not installed.
        self.addCleanup(lambda: sys.modules.pop("cloudpickle") if hidden is None
                        else sys.modules.update(cloudpickle=hidden))
        with self.assertRaisesRegex(words.Refused, "<lambda> and its arguments cannot be pickled.*"
                                                   "install cloudpickle"):
            pack.pack(lambda: 1, [])

    def test_values_of_the_last_round_count(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, value in (("value_1_0", "old"), ("value_1_1", "old"), ("value_2_0", "new")):
                pathlib.Path(folder, name).write_bytes(pickle.dumps(value))
            self.assertEqual(outcome.values(folder), {0: "new"})

    def test_a_workers_end_is_told_as_pythons(self):
        self.assertEqual(outcome.exit_code({"signal": "SIGKILL", "exit_code": None}), -9)
        self.assertEqual(outcome.exit_code({"signal": None, "exit_code": 7}), 7)

    def test_the_program_is_found_beside_the_package(self):
        with contextlib.suppress(KeyError):
            del os.environ["HLAUNCH_PROGRAM"]
        self.assertTrue(os.path.samefile(program.find_program(), BUILD / "bin/hlaunch"))


class Adopted(unittest.TestCase):
    """A Python environment is changed, and changed back. The folder of an environment is enough."""

    TORCHS = "#!/bin/python\nfrom torch.distributed.run import main\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()
        (self.root / "site").mkdir()
        self.program = self.root / "hlaunch"
        self.program.write_text("", encoding="utf-8")
        self.torchrun = self.root / "bin/torchrun"
        self.torchrun.write_text(self.TORCHS, encoding="utf-8")
        self.place = environment.Environment(str(self.root), str(self.root / "site"),
                                             str(self.root / "bin"))

    def adopt(self, *links):
        return environment.adopt(self.place, str(self.program), links or ["torchrun"])

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*")
                      if not path.is_dir())

    def test_undo_leaves_everything_as_it_was(self):
        before = self.files()
        for _ in range(2):
            self.adopt("torchrun", "mpirun")
        self.assertTrue(self.torchrun.samefile(self.program))
        self.assertTrue((self.root / "bin/mpirun").samefile(self.program))
        environment.undo(self.place)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.torchrun.read_text(encoding="utf-8"), self.TORCHS)
        self.assertEqual(environment.undo(self.place), [f"{self.root}: nothing to undo"])

    def test_a_torchrun_that_is_not_torchs_stays(self):
        self.torchrun.write_text("#!/bin/sh\n", encoding="utf-8")
        with self.assertRaisesRegex(environment.Cannot, "is not the script that its package installs"):
            self.adopt()
        self.assertFalse(os.path.exists(self.place.door))

    def test_an_upgrade_of_torch_is_noticed_and_undone_well(self):
        self.adopt()
        self.torchrun.unlink()  # pip does so, since it does not write through a link.
        self.torchrun.write_text(self.TORCHS + "# newer\n", encoding="utf-8")
        said = environment.show(str(self.root), self.place, str(self.program), {"PATH": str(self.root / "bin")})
        self.assertRegex(said[-1], "torchrun was a link to hlaunch, and something has replaced it")
        environment.undo(self.place)
        self.assertEqual(self.files(), ["bin/torchrun", "hlaunch"])
        self.assertIn("newer", self.torchrun.read_text(encoding="utf-8"))

    def test_one_that_fails_leaves_nothing(self):
        (self.root / "bin/mpirun").write_text("#!/bin/sh\n", encoding="utf-8")
        (self.root / "bin/mpirun.before-hlaunch/x").mkdir(parents=True)
        before = self.files()
        with self.assertRaisesRegex(environment.Cannot, "cannot change .*: Is a directory"):
            self.adopt("torchrun", "mpirun")
        self.assertEqual(self.files(), before)
        self.assertEqual(self.torchrun.read_text(encoding="utf-8"), self.TORCHS)
        pathlib.Path(self.place.door).mkdir()  # The last file that is written.
        before = self.files()
        with self.assertRaisesRegex(environment.Cannot, "cannot change .*: Is a directory"):
            self.adopt()
        pathlib.Path(self.place.door).rmdir()
        self.assertEqual(self.files(), before)

    def test_it_says_who_runs_a_job(self):
        path = {"PATH": str(self.root / "bin")}
        self.torchrun.chmod(0o755)
        self.program.chmod(0o755)
        def said(**env):
            return "\n".join(environment.show(str(self.root), self.place, str(self.program),
                                              {**path, **env}))
        self.assertRegex(said(), "torchrun: .*/bin/torchrun, which is not hlaunch\n"
                                 "Python programs that start torch's agent: torch; hlaunch run")
        self.adopt()
        self.assertRegex(said(), "which is hlaunch\nPython programs .*: hlaunch, since .* is adopted")
        self.program.rename(self.root / "gone")
        self.assertIn("is adopted by a hlaunch that is gone", said())
        (self.root / "gone").rename(self.program)
        self.assertIn("torch, since HLAUNCH_TORCHRUN=0", said(HLAUNCH_TORCHRUN="0"))
        self.assertIn("torch, since HLAUNCH_TORCHRUN=off", said(HLAUNCH_TORCHRUN="off"))
        self.assertRegex(said(HLAUNCH_TORCHRUN=""), "(?m)torch, since HLAUNCH_TORCHRUN=$")
        self.assertIn("torch, since TORCH_DEVICE_BACKEND_AUTOLOAD=0",
                      said(HLAUNCH_TORCHRUN="1", TORCH_DEVICE_BACKEND_AUTOLOAD="0"))

    def test_programs_are_told_once_hlaunch_is_gone(self):
        self.adopt()
        door = pathlib.Path(self.place.door)
        door.write_text(door.read_text(encoding="utf-8").replace(str(SIDE), "/gone/adopt"), encoding="utf-8")
        pathlib.Path(self.place.lost).write_text(
            environment.lost_text(self.place).replace(str(SIDE), "/gone/adopt"), encoding="utf-8")
        package = self.root / "torch/distributed/launcher"
        package.mkdir(parents=True)
        (package / "api.py").write_text("", encoding="utf-8")
        start = f"import os, site; site.addsitedir({self.place.packages!r}); "
        def said(code, **env):
            done = subprocess.run([sys.executable, "-Bc", start + code], text=True, check=True, timeout=600,
                                  capture_output=True, cwd=self.root,
                                  env={"PATH": os.environ["PATH"], "PYTHONPATH": str(self.root), **env})
            return done.stdout + done.stderr
        self.assertEqual(said("print(os.environ.get('HLAUNCH_TORCHRUN'))"), "None\n")
        self.assertRegex(said("import torch.distributed.launcher.api"),
                         "^hlaunch: it is not at /gone/adopt any more, so torch's own agent runs this job; .*\n$")
        self.assertEqual(said("import torch.distributed.launcher.api", TORCHELASTIC_RUN_ID="7"), "")
        self.assertEqual(said("import torch.distributed.launcher.api", HLAUNCH_JOB_ID="7"), "")

    def test_the_door_of_a_real_environment_sets_two_variables(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.root / "venv"], check=True,
                       timeout=600)
        python = self.root / "venv/bin/python"
        done = subprocess.run([python, "-B", SIDE / "hlaunch_adopt/environment.py", "--program",
                               self.program, "--links", "torchrun"], text=True, check=False,
                              capture_output=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        look = ("import os, hlaunch_adopt; print(os.environ.get('HLAUNCH_TORCHRUN'), "
                "os.environ.get('HLAUNCH_PROGRAM'))")
        def seen(**env):
            return subprocess.run([python, "-Bc", look], text=True, capture_output=True, check=True,
                                  timeout=600, env={"PATH": os.environ["PATH"], **env}).stdout.split()
        self.assertEqual(seen(), ["1", str(self.program)])
        self.assertEqual(seen(HLAUNCH_TORCHRUN="try"), ["try", str(self.program)])
        self.assertEqual(seen(HLAUNCH_JOB_ID="7"), ["None", "None"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
