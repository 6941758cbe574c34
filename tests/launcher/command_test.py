#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The built `hlaunch` with the programs that it works with: shells, man and torchrun.

Usage: command_test.py BUILD_FOLDER SOURCE_FOLDER [CLASS...]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
HLAUNCH, TORCHRUN = BUILD / "bin/hlaunch", BUILD / "bin/torchrun"
SHARE = BUILD / "share"
CACHED = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
REAL_TORCHRUN = CACHED / "hlaunch/torch-newest/bin/torchrun"

# The options of torchrun 2.14, for machines without it.
TORCHRUN_OPTIONS = """--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf
    --standalone --max-restarts --monitor-interval --start-method --event-log-handler --role --module
    --no-python --run-path --log-dir --redirects --tee --local-ranks-filter
    --duplicate-stdout-filters --duplicate-stderr-filters --log-line-prefix-template --node-rank
    --master-addr --master-port --local-addr --logs-specs --numa-binding --signals-to-handle
    --shutdown-timeout --virtual-local-rank --print-completion --help""".split()


# Commands with options; `help` and `version` have none. The first five are hlaunch-agent's.
AGENTS = ("status", "why", "stacks", "drain", "undrain")
COMMANDS = [word for word in (*AGENTS, "attach", "logs", "stop", "kill", "ps", "nodes", "top", "devices", "check",
                              "doctor", "token", "cluster", "run", "adopt")
            if word not in AGENTS or (BUILD / "bin/hlaunch-agent").exists()]


def run(*words, env=None, **options):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PET_")}
    clean["XDG_CONFIG_HOME"] = "/nonexistent"  # This user may have a token.
    return subprocess.run([str(word) for word in words], encoding="utf-8", capture_output=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=600,
                          env={**clean, **(env or {})}, **options)


def options_of(help_text):
    help_text = help_text.split("\nExamples:")[0]  # The examples have options of scripts, too.
    return {name.replace("_", "-") for name in re.findall(r"(?<![\w-])--[a-z][\w-]+", help_text)}


def options_with_help(help_text):
    """Yields (names, help) of each row in the tables of --help, with the help as one line."""
    table = help_text.split("\nExamples:")[0]
    for row in re.findall(r"^  (?:-|    --).*(?:\n {10,}\S.*)*", table, re.MULTILINE):
        names, text = re.split(r"  +|\n +", row.strip(), maxsplit=1)
        yield names, " ".join(text.split())


def rendered(page):
    """A page as man shows it: one line with single spaces and no hyphenation."""
    source = pathlib.Path(page).read_text(encoding="utf-8")
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-cbou", "-rHY=0"], input=source,
                          encoding="ascii", capture_output=True, check=True, timeout=60)
    return " ".join(done.stdout.split())


class Bash(unittest.TestCase):
    """The real shell completes as it would for a user at a terminal."""

    def complete(self, *words, program="hlaunch", env=None):
        """What bash offers for the last word, in an empty folder; `=` is a word of its own, as the
        shell splits it."""
        script = (f"cd {self.folder.name} && source {SHARE}/bash/{program}\n"
                  f"complete -p {program} > /dev/null || exit 9\n"
                  f'COMP_WORDS=({program} "$@"); COMP_CWORD=$#\n'
                  f'_{program} && printf "%s\\n" "${{COMPREPLY[@]}}"\n')
        done = run("bash", "--norc", "-euc", script, "bash", *words, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return done.stdout.split()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_options(self):
        self.assertEqual(self.complete("--nproc"), ["--nproc-per-node"])
        self.assertEqual(self.complete("--rdzv_e"), ["--rdzv_endpoint"])
        self.assertEqual(set(self.complete("--")), options_of(run(HLAUNCH, "--help").stdout))

    def test_values(self):
        self.assertEqual(self.complete("--preflight", ""), ["off", "quick", "full"])
        self.assertEqual(self.complete("--preflight", "=", "q"), ["quick"])
        self.assertEqual(self.complete("--preflight", "="), ["off", "quick", "full"])
        self.assertEqual(self.complete("--master_store", "w"), ["worker"])
        self.assertEqual(self.complete("--nnodes", ""), [])

    def test_options_after_values(self):
        self.assertEqual(self.complete("--nnodes", "2", "-v", "--rdzv-id", "=", "7", "--standal"),
                         ["--standalone"])
        self.assertEqual(self.complete("--pass-local-rank", "=", "x", "--standal"), ["--standalone"])

    def test_nothing_of_the_scripts(self):
        self.assertEqual(self.complete("train.py", "--nn"), [])
        self.assertEqual(self.complete("--nnodes", "2", "train.py", "--nn"), [])

    def test_files_and_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "log-file").touch()
            (pathlib.Path(folder) / "log-dir").mkdir()
            at = f"{folder}/log-"
            self.assertEqual(self.complete("--log-dir", at), [f"{at}dir"])
            self.assertEqual(sorted(self.complete("--token-file", at)), [f"{at}dir", f"{at}file"])

    def test_torchrun(self):
        self.assertEqual(self.complete("--nproc", program="torchrun"), ["--nproc-per-node"])
        self.assertEqual(self.complete("devi", program="torchrun"), [])

    def test_commands(self):
        self.assertEqual(self.complete("stat"), ["status"])
        self.assertEqual(set(self.complete("")) & {"help", "version", *COMMANDS},
                         {"help", "version", *COMMANDS})
        self.assertEqual(self.complete("help", "de"), ["devices"])
        self.assertEqual(self.complete("cluster", "jo"), ["join"])
        self.assertEqual(self.complete("cluster", "join", ""), [])
        self.assertEqual(self.complete("--nnodes", "2", "stat"), [])

    def test_options_of_commands(self):
        with_programs = {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
        for command in COMMANDS:
            said = options_of(run(HLAUNCH, command, "--help").stdout.split("\n\n", 2)[2])
            self.assertEqual(set(self.complete(command, "--", env=with_programs)), said, command)


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
class Zsh(unittest.TestCase):
    """zsh loads the script as its own, and completes with it."""

    # Types a line into a terminal and presses TAB; then the line is printed instead of run.
    SCRIPT = r"""
        zmodload zsh/zpty
        zpty z zsh -f -i
        zpty -w z "PS1=; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D"
        zpty -w z "print REA''DY"
        zpty -r -m z all '*READY*' || exit 8
        zpty -w -n z "$2"$'\t'
        zpty -w -n z $'\C-a'"print -r -- GOT' '"$'\C-e\n'
        zpty -r -m z all '*GOT *'$'\n' || exit 9
        print -r -- "$all"
    """

    def complete(self, line):
        done = run("zsh", "-fc", self.SCRIPT, "zsh", SHARE / "zsh", line,
                   env={"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def test_syntax(self):
        for script in (SHARE / "zsh").iterdir():
            done = run("zsh", "-n", script)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_options(self):
        self.assertIn("\nGOT hlaunch --nproc-per-node\n", self.complete("hlaunch --nproc-p"))

    def test_commands_and_their_options(self):
        self.assertIn("\nGOT hlaunch devices\n", self.complete("hlaunch devi"))
        self.assertIn("\nGOT hlaunch help doctor\n", self.complete("hlaunch help doc"))
        self.assertIn("\nGOT hlaunch cluster throw-out\n", self.complete("hlaunch cluster thr"))
        self.assertIn("\nGOT hlaunch check --master\n", self.complete("hlaunch check --mas"))

    def test_values(self):
        self.assertIn("\nGOT hlaunch --preflight quick\n", self.complete("hlaunch --preflight q"))
        self.assertIn("\nGOT hlaunch --preflight=quick\n", self.complete("hlaunch --preflight=q"))


@unittest.skipUnless(shutil.which("groff"), "there is no groff")
class Man(unittest.TestCase):
    def test_pages_have_no_fault(self):
        pages = sorted((SHARE / "man").glob("*.1"))
        self.assertGreaterEqual(len(pages), 2)
        for page in pages:
            done = run("groff", "-man", "-Tutf8", "-ww", "-z", page)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)

    def test_every_option_is_in_the_page(self):
        text = (SHARE / "man/hlaunch.1").read_text(encoding="utf-8").replace("\\-", "-")
        self.assertLessEqual(options_of(run(HLAUNCH, "--help").stdout), options_of(text))
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS"):
            self.assertIn(f"\n.SH {section}\n", text)
        self.assertIn("\n.I share/doc/hlaunch/manual\n", text.split(".SH SEE ALSO")[1])

    def test_a_reader_finds_each_options_help_below_it(self):
        """Compares the page as man shows it with --help: no heading or other option in between."""
        for command in ([], *([word] for word in COMMANDS)):
            page = rendered(SHARE / "man" / ("-".join(["hlaunch", *command]) + ".1"))
            shown = list(options_with_help(run(HLAUNCH, *command, "--help").stdout))
            self.assertGreaterEqual(len(shown), 1, command)
            for names, text in shown:
                self.assertTrue(f" {names} {text} " in page, f"{command} {names}: its help is elsewhere")

    def test_a_reader_finds_each_heading_once(self):
        for page in (SHARE / "man").glob("*.1"):
            done = run("groff", "-man", "-Tascii", "-P-cbou", page)
            headings = re.findall(r"^[A-Z]{4}[A-Z ]*$", done.stdout, re.MULTILINE)
            self.assertEqual(len(headings), len(set(headings)), f"{page}: {headings}")

    def test_every_command_has_a_page(self):
        usage = run(HLAUNCH, "--help").stdout.split("\n\n")[0]
        words = set(re.findall(r"^       hlaunch (\w+)", usage, re.MULTILINE))
        self.assertEqual(words, {*COMMANDS, *AGENTS, "help", "version"})


class Dry(unittest.TestCase):
    """--dry-run and --print-env start nothing and print what a job would get."""

    WORKER = ["--no-python", "sh", "-c", "echo started; env"]

    def test_dry_run_starts_nothing(self):
        done = run(HLAUNCH, "--nproc-per-node=2", "--dry-run", *self.WORKER)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"local rank 0 +\S*/sh -c 'echo started; env'\n")
        self.assertNotIn("\nstarted", done.stdout)

    def test_dry_run_of_several_nodes(self):
        words = ["--nnodes=2", "--rdzv-endpoint=127.0.0.1:29400", "--dry-run"]
        done = run(HLAUNCH, *words, "--json", *self.WORKER)
        self.assertEqual(done.returncode, 0, done)
        job = json.loads(done.stdout)
        self.assertEqual((job["mode"], job["meeting_place"]), ("endpoint", "127.0.0.1:29400"))
        self.assertEqual(job["command"][1:], self.WORKER[2:])
        self.assertIn("no secret to ask agents by", job["master_store"])
        done = run(HLAUNCH, *words, *self.WORKER, env={"HLAUNCH_TOKEN": "0123456789abcdef" * 2})
        self.assertIn("\nmaster store at node rank 0, in clear, for the job's user,", done.stdout)

    def test_a_script_that_is_not_there_is_told(self):
        done = run(HLAUNCH, "--dry-run", "nothing.py")
        self.assertEqual((done.returncode, done.stdout), (127, ""))

    def test_print_env_is_what_the_worker_sees(self):
        words = ["--nproc-per-node=2", "--master-port=0", "--quiet"]
        said = run(HLAUNCH, *words, "--print-env=1", "--json", *self.WORKER)
        self.assertEqual(said.returncode, 0, said)
        foreseen = json.loads(said.stdout)
        seen_by = "import json, os; print(json.dumps(dict(os.environ)))"
        done = run(HLAUNCH, *words, "--no-python", sys.executable, "-c", seen_by)
        self.assertEqual(done.returncode, 0, done)
        seen = json.loads(next(line for line in done.stdout.splitlines()
                               if line.startswith("[1]")).removeprefix("[1] "))
        seen.pop("LC_CTYPE", None)  # Python sets it itself.
        self.assertEqual([foreseen.pop("_"), seen.pop("_")], [shutil.which("sh"), sys.executable])
        self.assertEqual(sorted(seen), sorted(foreseen))
        for name, value in foreseen.items():
            if value != "?":
                self.assertEqual(seen[name], value, name)

    def test_print_env_is_read_by_a_shell(self):
        done = run(HLAUNCH, "--print-env", *self.WORKER, env={"STRANGE": "a 'b' $(c)\nd"})
        again = run("sh", "-euc", f'{done.stdout}\nprintf %s "$STRANGE/$RANK"')
        self.assertEqual((again.returncode, again.stdout), (0, "a 'b' $(c)\nd/0"), again)

    def test_a_local_rank_that_is_not_there(self):
        done = run(HLAUNCH, "--print-env=2", *self.WORKER)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"^hlaunch: --print-env '2': this node has 1 worker")


class Words(unittest.TestCase):
    """The commands at the start of a command line, and words that are close to them."""

    def test_help_and_version(self):
        for words, same in ((["help"], ["--help"]), (["version"], ["--version"]),
                            (["help", "check"], ["check", "--help"])):
            done = run(HLAUNCH, *words)
            self.assertEqual((done.returncode, done.stdout), (0, run(HLAUNCH, *same).stdout), words)

    def test_what_was_meant_is_named(self):
        for typed, meant in (("stauts", "status"), ("device", "devices"), ("halp", "help"),
                             ("docter", "doctor"), ("versoin", "version")):
            done = run(HLAUNCH, typed)
            self.assertEqual(done.returncode, 127, done)
            self.assertRegex(done.stderr, rf"no such script: {typed} .*did you mean hlaunch {meant}\?\n")
        for words in (["help", "train.py"], ["help", "check", "x"], ["version", "x"]):
            done = run(HLAUNCH, *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(f"hlaunch {words[0]} takes no word like {words[-1]}", done.stderr)
        for typed in ("train", "status.py", "./stauts"):
            self.assertNotIn("did you mean", run(HLAUNCH, typed).stderr)

    def test_under_torchruns_name_they_are_scripts(self):
        self.assertEqual(run(TORCHRUN, "version").returncode, 127)


class Environments(unittest.TestCase):
    """Which Python runs scripts: real environments, of which none is active."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="hlaunch-environments-")
        root = pathlib.Path(cls.folder.name).resolve()
        cls.env, cls.other = root / "env", root / "other"
        for prefix in (cls.env, cls.other):
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True, timeout=600)
        shutil.copy(HLAUNCH, cls.env / "bin/hlaunch")
        cls.has_agent = (BUILD / "bin/hlaunch-agent").exists()
        if cls.has_agent:
            (cls.env / "bin/hlaunch-agent").symlink_to(BUILD / "bin/hlaunch-agent")
        (cls.other / "bin/hlaunch").symlink_to(HLAUNCH)
        cls.elsewhere = root / "bin"
        cls.elsewhere.mkdir()
        (cls.elsewhere / "hlaunch").symlink_to(cls.env / "bin/hlaunch")
        (cls.elsewhere / "mpirun").symlink_to("hlaunch")
        cls.script = root / "train.py"
        cls.script.write_text("import sys\nprint('ran in', sys.prefix)\n", encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def bare(self, *words, path="/usr/bin:/bin", **variables):
        """Runs `words` as a unit file or cron does, with few variables."""
        home = {"HOME": self.folder.name, "LC_ALL": "C.UTF-8"}
        return subprocess.run([str(word) for word in words], encoding="utf-8", capture_output=True,
                              stdin=subprocess.DEVNULL, check=False, timeout=600,
                              env={"PATH": path, **home, **variables})

    def assert_runs_in(self, prefix, *words, **options):
        done = self.bare(*words, **options)
        self.assertEqual((done.returncode, f"ran in {prefix}\n" in done.stdout), (0, True), done)

    def test_a_program_in_an_environment_runs_its_python(self):
        left_over = {"VIRTUAL_ENV": str(self.other), "CONDA_PREFIX": str(self.other)}
        self.assert_runs_in(self.env, self.env / "bin/hlaunch", self.script)
        self.assert_runs_in(self.env, self.env / "bin/hlaunch", self.script, **left_over)
        self.assert_runs_in(self.env, self.elsewhere / "hlaunch", self.script)
        self.assert_runs_in(self.env, "hlaunch", self.script, path=f"{self.elsewhere}:/usr/bin:/bin")
        self.assert_runs_in(self.env, self.elsewhere / "mpirun", "-n", 1, "--run-path", self.script)

    def test_a_link_in_an_environment_runs_its_python(self):
        self.assert_runs_in(self.other, self.other / "bin/hlaunch", self.script)

    def test_the_agent_and_this_host_run_the_same_python(self):
        if not self.has_agent:
            self.skipTest("a build without hlaunch-agent")
        for hlaunch, prefix in ((self.env / "bin/hlaunch", self.env), (self.other / "bin/hlaunch", self.other)):
            for words in (["--nnodes", 1, "--rdzv-endpoint", "127.0.0.1:0"], ["--hosts", "localhost"]):
                with self.subTest(f"{hlaunch} {words}"):
                    self.assert_runs_in(prefix, hlaunch, *words, self.script)

    def test_python_m_hlaunch_runs_that_python(self):
        self.assert_runs_in(self.other, self.other / "bin/python", "-m", "hlaunch", self.script,
                            PYTHONPATH=str(BUILD / "python"))

    def test_what_the_user_names_comes_first(self):
        self.assert_runs_in(self.other, self.env / "bin/hlaunch", self.script,
                            PYTHON_EXEC=str(self.other / "bin/python"))

    def test_the_shells_python_beats_an_environment_that_was_left(self):
        self.assert_runs_in(self.other, HLAUNCH, self.script, path=f"{self.other}/bin:/usr/bin:/bin",
                            VIRTUAL_ENV=str(self.env))

    def test_workers_do_not_inherit_the_choice(self):
        done = self.bare(self.env / "bin/hlaunch", "--no-python", "env")
        self.assertNotIn("HLAUNCH_PYTHON", done.stdout)

    def test_a_worker_finds_the_same_packages_as_without_hlaunch(self):
        script = pathlib.Path(self.folder.name) / "packages.py"
        script.write_text("import importlib.metadata as m; print(sorted(d.name for d in m.distributions()))",
                          encoding="utf-8")
        env = {"PYTHON_EXEC": sys.executable}
        self.assertEqual(run(HLAUNCH, "-q", script, env=env).stdout, run(sys.executable, script).stdout)

    def test_a_missing_module_is_reported_with_the_python_that_ran(self):
        script = self.script.with_name("importer.py")
        script.write_text("import torch_of_the_other_environment\n", encoding="utf-8")
        ran = self.env / "bin/python3"
        done = self.bare(self.env / "bin/hlaunch", script, VIRTUAL_ENV=str(self.other))
        self.assertIn(f"or name another one with PYTHON_EXEC; its Python is {ran}; VIRTUAL_ENV", done.stderr)
        self.assertIn(f"VIRTUAL_ENV is {self.other}, which has another one", done.stderr)
        done = self.bare(self.env / "bin/hlaunch", "-m", "no_such_module")
        self.assertIn(f"or name another one with PYTHON_EXEC; its Python is {ran}", done.stderr)

    def test_an_environment_that_broke_is_refused(self):
        broken = pathlib.Path(self.folder.name).resolve() / "broken"
        (broken / "bin").mkdir(parents=True)
        (broken / "pyvenv.cfg").touch()
        (broken / "bin/python3").symlink_to("/gone/python3")
        (broken / "bin/hlaunch").symlink_to(HLAUNCH)
        done = self.bare(broken / "bin/hlaunch", self.script)
        self.assertEqual(done.returncode, 127, done)
        self.assertIn(f"{broken}/bin/python3 leads to a file that is gone", done.stderr)

    def test_check_names_the_python_and_its_torch(self):
        site = next((self.other / "lib").glob("python3*/site-packages"))
        info = site / "torch-9.8.7.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.8.7\n", encoding="utf-8")
        for hlaunch, prefix, torch in (("env", self.env, None), ("other", self.other, "9.8.7")):
            done = self.bare(prefix / "bin/hlaunch", "check", "--json")
            (said,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "python"]
            self.assertEqual(said["state"], "ok", said)
            detail = json.loads(said["detail"])
            self.assertEqual((detail["path"], detail["torch"]), (str(prefix / "bin/python3"), torch), hlaunch)
        self.assertRegex(done.stdout, r"is Python 3\.\d+\.\d+, with torch 9\.8\.7")

    def test_an_option_after_the_script_is_explained_if_the_script_refuses_it(self):
        script = self.script.with_name("parser.py")
        script.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n", encoding="utf-8")
        done = self.bare(self.env / "bin/hlaunch", script, "--nproc-per-node", 2)
        self.assertEqual(done.returncode, 2, done)
        self.assertIn("--nproc-per-node is an option of hlaunch too", done.stderr)


class Version(unittest.TestCase):
    """The output of --version, and where its facts come from."""

    def test_all_programs_say_version_commit_and_build(self):
        programs = {path for path in (BUILD / "bin").glob("hlaunch*") if path.is_file()}
        programs -= {BUILD / "bin/hlaunch-pmix"}  # A part of the agent, which no user types.
        self.assertIn(HLAUNCH, programs)  # A build without gRPC has no other.
        for program in sorted(programs):
            said = run(program, "--version").stdout
            self.assertRegex(said, r"^hlaunch(d|-rendezvous)? \d+\.\d+\.\d+ \(commit "
                                   r"([0-9a-f]{7,40}( with changes)?|unknown), \w+, \w+ [\d.]+\)\n$")

    def commit(self, tree):
        """The commit that write_commit.cmake finds for a folder. A second run must not touch the
        file."""
        output = tree.parent / "commit.cc"
        output.unlink(missing_ok=True)
        for _ in range(2):
            before = output.stat().st_mtime_ns if output.exists() else None
            done = run("cmake", f"-DSOURCE={tree}", f"-DOUTPUT={output}", "-P",
                       ROOT / "cmake/write_commit.cmake")
            self.assertEqual(done.returncode, 0, done)
        self.assertEqual(output.stat().st_mtime_ns, before)
        return re.search(r'kCommit\[\] = "(.*)";', output.read_text(encoding="utf-8"))[1]

    def test_the_commit_is_gits_or_the_archives(self):
        with tempfile.TemporaryDirectory() as folder:
            tree, archived = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "archive/tree"
            for path in ("cmake/archive_commit.txt", ".gitattributes"):
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, tree / path)
            self.assertEqual(self.commit(tree), "unknown")
            git = ["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b"]
            for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
                self.assertEqual(run(*git, *words).returncode, 0, words)
            head = run(*git, "rev-parse", "HEAD").stdout.strip()
            self.assertEqual(self.commit(tree), head[:12])
            (tree / ".gitattributes").write_text("", encoding="utf-8")
            self.assertEqual(self.commit(tree), f"{head[:12]} with changes")
            archived.mkdir(parents=True)
            run("sh", "-euc", f"git -C {tree} archive HEAD | tar x -C {archived}")
            self.assertTrue(head.startswith(self.commit(archived)), self.commit(archived))
            shutil.copy(ROOT / "cmake/archive_commit.txt", archived / "cmake")
            run("git", "init", "-q", archived.parent)  # Another repository, around the folder.
            self.assertEqual(self.commit(archived), "unknown")


class Torchrun(unittest.TestCase):
    """Under the name of torchrun, and compared with the real one."""

    def real_options(self):
        if not REAL_TORCHRUN.exists():
            return set(TORCHRUN_OPTIONS)
        wide = {"COLUMNS": "9999"}  # No option is broken into two lines.
        return options_of(run(REAL_TORCHRUN, "--help", env=wide).stdout) - {"--redirect", "--nproc"}

    def test_the_list_is_torchruns(self):
        if not REAL_TORCHRUN.exists():
            self.skipTest(f"there is no {REAL_TORCHRUN}")
        self.assertEqual(self.real_options(), set(TORCHRUN_OPTIONS))

    def test_every_option_of_torchrun_is_known_and_told(self):
        known = options_of(run(HLAUNCH, "--help").stdout)
        told = options_of((ROOT / "launcher/manual/options.md").read_text(encoding="utf-8"))
        self.assertEqual(self.real_options() - known, set())
        self.assertEqual(self.real_options() - told, set())

    def test_speaks_as_torchrun(self):
        self.assertTrue(run(TORCHRUN, "--help").stdout.startswith("usage: torchrun [options]"))
        done = run(TORCHRUN)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: torchrun", done.stderr)

    def test_runs_a_script_of_the_name_status(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "status"
            script.write_text("#!/bin/sh\necho rank $RANK\n", encoding="utf-8")
            script.chmod(0o755)
            done = run(TORCHRUN, "status", cwd=folder)
            self.assertEqual((done.returncode, done.stdout), (0, "rank 0\n"), done)

    def test_runs_what_variables_say(self):
        done = run(TORCHRUN, "--no-python", "sh", "-c", "echo $ROLE_NAME $PET_ROLE",
                   env={"PET_NPROC_PER_NODE": "2", "PET_ROLE": "trainer", "PET_STANDALONE": "1"})
        self.assertEqual(sorted(done.stdout.splitlines()), ["[trainer0]:trainer", "[trainer1]:trainer"], done)

    def test_run_path_runs_what_a_path_names(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "train"
            script.write_text("#!/bin/sh\nprint(__name__, __file__)\n", encoding="utf-8")
            script.chmod(0o755)
            done = run(HLAUNCH, "--run-path", script, env={"PYTHON_EXEC": sys.executable})
            self.assertEqual((done.returncode, done.stdout), (0, f"__main__ {script}\n"), done)

    def test_passes_the_local_rank_as_the_old_launcher_did(self):
        words = ["--nproc-per-node=2", "--pass-local-rank=--local_rank", "--no-python"]
        done = run(HLAUNCH, *words, "echo", "--lr=1")
        self.assertEqual(sorted(done.stdout.splitlines()),
                         ["[0] --local_rank=0 --lr=1", "[1] --local_rank=1 --lr=1"], done)

    def test_runs_a_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "job.json"
            config.write_text('{"nproc_per_node": 2, "no_python": true} // as usual',
                              encoding="utf-8")
            done = run(HLAUNCH, "--config", config, "sh", "-c", "echo $RANK")
            self.assertEqual(sorted(done.stdout.splitlines()), ["[0] 0", "[1] 1"], done)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
