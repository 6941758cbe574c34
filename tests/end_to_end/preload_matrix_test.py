#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""--preload changes nothing: programs run with and without it, and their output, log files, other
files, exit codes and hlaunch's own lines are compared. The ranks with it must be forked ones.

HLAUNCH_AT_LENGTH runs all programs, otherwise those marked `soon`, and some of them with each torch
of ~/.cache/hlaunch, or with HLAUNCH_MATRIX_TORCH; HLAUNCH_MATRIX_ONLY=WORD only those with that word
in their name."""

import collections
import contextlib
import dataclasses
import difflib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import unittest

import jobs
import lab

PROGRAMS = lab.WORKERS / "preload"
MODULES = "preloaded"
AT_LENGTH = bool(os.environ.get("HLAUNCH_AT_LENGTH"))
ONLY = os.environ.get("HLAUNCH_MATRIX_ONLY", "")
CACHED = pathlib.Path("~/.cache/hlaunch").expanduser()
TORCH = os.environ.get("HLAUNCH_TORCH2_PYTHON", str(CACHED / "torch-newest/bin/python"))

# What differs, and why: (program, line's first word) -> reason. The manual's page has the same rows.
DIFFERENCES = {
    ("environment", "proc_environ"): "the kernel shows the variables with which the first process started",
    ("interpreter", "frozen"): "objects of the imported modules are frozen, so that ranks share their memory",
    ("interpreter", "atexit"): "these objects are thawed before Python's last collection",
    ("chance", "hash"): "hashes of strings are seeded when Python starts",
    ("chance", "canary"): "the kernel gives sixteen random bytes to a program that starts, not to a fork",
}

# multiprocessing's tracker of resources ends on its own, after the rank or before.
LEAVES_LATE = re.compile(r"hlaunch: the workers exited and left \d process(es)? behind: python")
# Different in each run, with or without.
VOLATILE = ("MASTER_PORT", "HLAUNCH_COMM_SECRET", "HLAUNCH_JOB_ID", "TORCHELASTIC_RUN_ID",
            "JAX_COORDINATOR_ADDRESS", "HLAUNCH_PRELOAD", "PMI_ID")


def plain(text):
    """Without process numbers, ports, addresses and times."""
    for pattern, instead in (
            (rf'((?:{"|".join(VOLATILE)})(?:=|": "))[^"\\\n]*', r"\1*"),
            (r"\b(matrix_|tap_|hlaunch-agent\.)\w{6}\b", r"\1*"), (r"\b0x[0-9a-f]{5,}", "0x*"),
            (r"\bimport time: +\d+ \| +\d+ ", "import time: "), (r"\bpid \d+", "pid *"), (r"\bpython[\d.]*\[\d+\]", "python"),
            (r"\d+(\.\d+)? ?(ms|s|min|kB|MB)\b", "* s"),
            (r"(127\.0\.0\.1|10\.77\.0\.\d+|\[::1\]):\d+", "*:*"),
            (r"\(\d+ %\)", "(* %)"), (r"; --preload saved \d+ ranks here \S+ s of imports", ""),
            (r"Process (\w+)-\d+", r"Process \1-*"),
            (r"(==|<)\d{2,}(==|>)", "*"),
            (r"\d\d:\d\d:\d\d(\.\d+)?|\d{4}-\d\d-\d\d", "*"),
            (r"\b([EIW]\d{4} \*) \d+", r"\1 *"),
            (r'("(?:time|monotonic_ms|pid|master_port)"): ?("[^"]*"|\d+)', r"\1:*")):
        text = re.sub(pattern, instead, text)
    return text


@dataclasses.dataclass
class Case:
    """One program of the matrix."""
    file: str
    program: str
    code: int = 0
    says: str = ""  # A pattern that the ranks' output has, so that a broken program is seen.
    flags: tuple = ()  # Of Python.
    env: dict = dataclasses.field(default_factory=dict)
    options: tuple = ()  # Of hlaunch.
    stdin: bytes = None
    nproc: int = 0  # 0: two; but one if it fails, since another may be stopped first.
    forked: bool = True  # False: hlaunch starts these ranks in the normal way.
    soon: bool = True  # In each run of the tests.
    act: object = None  # What the test does with the running job.
    python: str = jobs.PYTHON
    words: tuple = None  # In place of the script and the program's name.
    on_terminal: bool = False
    before: str = ""  # What a shell does before.
    preload: str = MODULES

    def __post_init__(self):
        if self.program in ("chance", "libraries", "interpreter"):
            self.env = {"WITH_NUMPY": "1", **self.env}
        self.nproc = self.nproc or (2 if self.code == 0 else 1)

    def __str__(self):
        return " ".join([*self.flags, *(f"{name}={value}" for name, value in self.env.items()),
                         *map(str, self.options), self.before, self.file, self.program])


def stop_by(number):
    def stop(run):
        run.wait_for("ready", 30)
        run.signal(number)
    return stop


class MatrixTest(jobs.JobTest):
    count = 1

    def run_once(self, case, preload):
        """Everything that can be seen of a job."""
        place = self.nodes[0].folder / "place"
        told = self.nodes[0].folder / "told"
        for folder in place, told:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        self.prepare(place)
        words = [*case.flags, *(case.words or (PROGRAMS / case.file, case.program))]
        env = {"PYTHON_EXEC": case.python, "PYTHONPATH": PROGRAMS / "modules", "FORKED_OR_NOT": told,
               "PLACE": place, "PYTHONDONTWRITEBYTECODE": "1", **case.env}
        options = ["--nproc-per-node", case.nproc, "--shutdown-timeout", 2, "--rdzv-id", "matrix",
                   "--log-dir", place / "logs", "--tee", 3,
                   *(["--preload", case.preload] if preload else []), *case.options]
        with contextlib.ExitStack() as stack:
            stdin = subprocess.DEVNULL
            if case.stdin is not None:
                (told / "stdin").write_bytes(case.stdin)
                stdin = stack.enter_context(open(told / "stdin", "rb"))
            line = [lab.HLAUNCH, *options, *(["--no-python", case.python] if case.flags else []), *words]
            if case.before:
                line = ["sh", "-c", case.before + '; exec "$@"', "sh", *line]
            if case.on_terminal:
                line = ["script", "-qec", shlex.join(map(str, line)), "/dev/null"]
            run = self.nodes[0].start(*line, env=env, cwd=place, stdin=stdin)
            if case.act:
                case.act(run)
            code = run.wait(100)
        self.assert_nothing_left()
        forked = [path.read_text(encoding="utf-8") for path in told.iterdir() if path.name.isdigit()]
        seen = collections.OrderedDict(code=str(code))
        seen["hlaunch"] = "\n".join(sorted(plain(line) for line in jobs.own_lines(run)
                                         if case.program == "forks_and_leaves" or not LEAVES_LATE.match(line)))
        seen["stdout"] = "\n".join(sorted(plain(run.out).splitlines()))
        seen["stderr"] = "\n".join(sorted(plain(line) for line in run.err.splitlines()
                                          if line not in jobs.own_lines(run)))
        for path in sorted(place.rglob("*")):
            name = plain(str(path.relative_to(place)))
            seen[name] = oct(path.lstat().st_mode)
            if path.is_file():
                lines = plain(path.read_bytes().decode("utf-8", "backslashreplace")).split("\n")
                # Ranks start and end in any order.
                lines = sorted(lines) if path.name == "events.jsonl" else lines
                seen[name] = "\n".join([seen[name], *lines])
        return seen, forked, run

    def prepare(self, place):
        """Writes the files that a job finds."""

    def compare(self, case):
        without, forked, run = self.run_once(case, False)
        self.assertNotIn("yes", forked, str(run))
        self.assertEqual(without["code"], str(case.code), str(run))
        if case.says:
            self.assertRegex(run.out + run.err, case.says, str(run))
        having, forked, run = self.run_once(case, True)
        if not case.forked:
            self.assertRegex(having["hlaunch"], "hlaunch: nothing is preloaded: .*")
            having["hlaunch"] = re.sub("hlaunch: nothing is preloaded: .*", "", having["hlaunch"]).strip()
        self.assertEqual(forked, ["yes" if case.forked else "no"] * case.nproc, str(run))
        found = list(different(case.program, without, having))
        if found:
            self.fail("\n".join([*found, str(run)]))

    def matrix(self, *cases):
        for case in cases:
            if (case.soon or AT_LENGTH) and ONLY in str(case):
                with self.subTest(str(case)):
                    self.compare(case)


def different(program, without, having):
    """What differs and isn't one of DIFFERENCES, and what is but does not differ, as lines."""
    apart = False
    for name in sorted({*without, *having}):
        if apart and name in ("stdout", "stderr"):
            continue  # They have the same lines as the log files.
        (before, those), (after, others) = (parted(program, seen.get(name, "is missing"))
                                            for seen in (without, having))
        if before != after:
            apart = True
            yield f"{name}:"
            yield from shorter(difflib.unified_diff(before, after, "without", "with", n=0, lineterm=""))
        if set(those) & set(others):
            yield f"{name}: no difference any more: {set(those) & set(others)}"


def parted(program, text):
    """The lines that are to be the same, and those that differ."""
    lines = text.splitlines()
    differ = [line for line in lines if (program, re.sub(r"^\[\d\] ", "", line).split(" ")[0]) in DIFFERENCES]
    return [line for line in lines if line not in differ], differ


def shorter(lines):
    """The differing part of two long lines."""
    lines = [line for line in lines if not line.startswith("@@")]
    for line in lines:
        others = [other for other in lines if other[:1] != line[:1] and other[1:20] == line[1:20]]
        at = len(os.path.commonprefix([line[1:], others[0][1:]])) if others else 0
        start = max(0, at - 60)
        yield "  " + line[:30] + (" … " + line[1 + start:] if start else line[30:])[:150]


STATES = ("command", "environment", "interpreter", "process", "signals", "descriptors", "streams",
          "places", "libraries")
# hlaunch starts a script with -u, and sets the variable where it is not set.
BUFFERED = {"env": {"PYTHONUNBUFFERED": ""}, "flags": ("-B",)}
IN_TORCH = {"python": TORCH, "preload": "torch"}  # Known, so its objects stay frozen to the end.
AGAIN = {"options": ("--max-restarts", 1), "env": {"FAIL_FIRST": "1"}}


class State(MatrixTest):
    """What a rank finds itself to be."""

    def test_of_two_ranks(self):
        self.matrix(*(Case("state.py", name) for name in STATES))

    def test_of_the_ranks_of_a_second_round(self):
        self.matrix(*(Case("state.py", name, nproc=1, soon=False, **AGAIN) for name in STATES))

    def test_of_a_lone_rank(self):
        self.matrix(*(Case("state.py", name, nproc=1, soon=False) for name in STATES))

    def test_on_a_terminal(self):
        self.matrix(*(Case("state.py", name, nproc=1, on_terminal=True, soon=name == "streams")
                      for name in ("descriptors", "process", "signals", "streams")))

    def test_with_flags_of_python(self):
        for flags in (["-u"], ["-O"], ["-OO", "-B"], ["-W", "error"], ["-X", "dev"], ["-Xutf8"], ["-bb"], ["-s"], ["-P"],
                      ["-X", "faulthandler"], ["-X", "tracemalloc=5"], ["-R"], ["-q"],
                      ["-X", "frozen_modules=off"], ["-X", "no_debug_ranges"], ["-X", "int_max_str_digits=5000"]):
            soon = flags[0] in ("-u", "-X")
            self.matrix(*(Case("state.py", name, flags=tuple(flags), nproc=1,
                               soon=soon and name == "interpreter")
                          for name in ("command", "interpreter", "streams", "libraries")))

    def test_with_flags_under_which_nothing_is_preloaded(self):
        self.matrix(*(Case("state.py", "command", flags=flags, nproc=1, forked=False, soon=False)
                      for flags in (("-X", "importtime"),)))

    def test_with_variables_of_python(self):
        for name, value in (("PYTHONUNBUFFERED", "1"), ("PYTHONOPTIMIZE", "1"), ("PYTHONWARNINGS", "error"),
                            ("PYTHONDEVMODE", "1"), ("PYTHONFAULTHANDLER", "1"),
                            ("PYTHONIOENCODING", "latin-1:replace"),
                            ("PYTHONUTF8", "0"), ("PYTHONHASHSEED", "7"), ("PYTHONTRACEMALLOC", "3"),
                            ("PYTHONASYNCIODEBUG", "1"), ("PYTHONMALLOC", "debug"), ("PYTHONNOUSERSITE", "1"),
                            ("PYTHONSAFEPATH", "1"), ("PYTHONPYCACHEPREFIX", "/tmp/nowhere"),
                            ("PYTHONINTMAXSTRDIGITS", "5000"),
                            ("PYTHONBREAKPOINT", "print"), ("LC_ALL", "C"), ("LC_ALL", "C.UTF-8"), ("LANG", "POSIX"),
                            ("TZ", "Asia/Tokyo"), ("TMPDIR", "/dev/shm"), ("MALLOC_ARENA_MAX", "1"), ("EMPTY", ""),
                            ("WITH_EQUAL_SIGN", "a=b=c"), ("LINES", "one\ntwo")):
            self.matrix(*(Case("state.py", program, env={name: value}, nproc=1, soon=False)
                          for program in ("environment", "interpreter", "streams", "places", "libraries")))

    def test_with_bounds(self):
        self.matrix(*(Case("state.py", "process", before=before, soon=False) for before in (
            "umask 077", "ulimit -n 512", "ulimit -c 0; ulimit -s 4096", "trap '' HUP USR2; true", "renice -n 5 $$ >/dev/null",
            "ulimit -v 8000000")))


class Chance(MatrixTest):
    """What is to differ between ranks and from run to run does so."""

    def test_ranks_draw_different_numbers(self):
        self.assert_drawn(Case("state.py", "chance", nproc=3))

    @unittest.skipUnless(os.access(TORCH, os.X_OK), f"no {TORCH}")
    def test_ranks_draw_different_numbers_in_torch(self):
        self.assert_drawn(Case("with_torch.py", "chance", nproc=3, **IN_TORCH))

    def assert_drawn(self, case):
        """Without and with a preload, three ranks have three values of a fact, or all have one."""
        seen = []
        for preload in False, True, True:
            _, forked, run = self.run_once(case, preload)
            self.assertEqual(forked, ["yes" if preload else "no"] * 3, str(run))
            seen.append(self.facts(run))
        for name in seen[0][0]:
            apart, having = (len({str(facts[name]) for facts in ranks}) for ranks in seen[:2])
            if ("chance", name) in DIFFERENCES:
                self.assertEqual((apart, having), (3, 1), name)
                continue
            self.assertEqual(having, apart, name)
            if apart == 3:
                self.assertEqual(len({str(facts[name]) for ranks in seen for facts in ranks}), 9, name)

    def facts(self, run):
        """One dictionary for each rank."""
        found = collections.defaultdict(dict)
        for rank, name, value in re.findall(r"^\[(\d)\] (\w+) (.*)$", run.out, re.M):
            found[rank][name] = json.loads(value)
        self.assertEqual(len(found), 3, str(run))
        return list(found.values())

    def test_a_seed_gives_the_same_numbers(self):
        self.matrix(Case("state.py", "chance_with_a_seed", env={"PYTHONHASHSEED": "3"}))


class Endings(MatrixTest):
    """How a rank can end."""

    def test_by_itself(self):
        self.matrix(*(Case("endings.py", name, code) for name, code in (
            ("code_0", 0), ("code_7", 7), ("code_none", 0), ("code_300", 44), ("code_text", 1),
            ("code_at_once", 9), ("exit_by_builtin", 4), ("thread_at_exit", 0),
            ("daemon_thread_at_exit", 0), ("at_exit", 3), ("globals_at_exit", 0))))

    def test_by_an_exception(self):
        self.matrix(*(Case("endings.py", name, code, says) for name, code, says in (
            ("raises", 1, "KeyError: 'key'"), ("raises_from", 1, "a note"),
            ("raises_a_group", 1, "ExceptionGroup"), ("raises_in_a_thread", 0, "in thread worker"),
            ("raises_in_asyncio", 1, "KeyError"), ("raises_where_nobody_sees", 0, "Exception ignored"),
            ("recursion", 1, "RecursionError"), ("out_of_memory", 1, "MemoryError"),
            ("own_hook", 1, "hook: KeyError"), ("syntax_error", 1, "was never closed"))))

    def test_by_a_signal(self):
        self.matrix(*(Case("endings.py", name, 128 + number, says) for name, number, says in (
            ("interrupt", signal.SIGINT, "KeyboardInterrupt"), ("terminate", signal.SIGTERM, ""),
            ("usr1", signal.SIGUSR1, ""), ("killed", signal.SIGKILL, ""), ("abort", signal.SIGABRT, ""),
            ("segfault", signal.SIGSEGV, ""), ("default_pipe", signal.SIGPIPE, ""))))

    def test_by_a_signal_with_faulthandler(self):
        dies = 128 + signal.SIGSEGV
        self.matrix(
            Case("endings.py", "segfault_with_faulthandler", dies, "string_at"),
            Case("endings.py", "segfault", dies, "Segmentation fault", env={"PYTHONFAULTHANDLER": "1"}),
            Case("endings.py", "segfault", dies, "Segmentation fault", flags=("-X", "faulthandler"), soon=False),
            Case("endings.py", "abort", 128 + signal.SIGABRT, "Fatal Python error", flags=("-X", "dev"), soon=False),
            Case("endings.py", "registered_dump", 0, "most recent call first"),
            Case("endings.py", "dump_later", 0, "Timeout", soon=False))

    def test_when_nobody_reads(self):
        self.matrix(Case("endings.py", "broken_pipe", 1, "BrokenPipeError"),
                    Case("endings.py", "broken_pipe_at_exit", 120, "BrokenPipeError", **BUFFERED))

    def test_when_the_job_is_stopped(self):
        self.matrix(*(Case("endings.py", name, 128 + number, act=stop_by(number), nproc=1, soon=name == "handled")
                      for name in ("handled", "unhandled") for number in (signal.SIGTERM, signal.SIGINT)))

    def test_with_flags(self):
        self.matrix(
            Case("endings.py", "warns", 1, "UserWarning", flags=("-W", "error")),
            Case("endings.py", "warns", 0, "ResourceWarning", flags=("-X", "dev")),
            Case("endings.py", "warns", 0, "be warned"),
            Case("endings.py", "asserts", 1, "asserted"),
            Case("endings.py", "asserts", 0, "no assertion False", flags=("-O",)),
            Case("endings.py", "raises", 1, "string_at|KeyError", flags=("-X", "no_debug_ranges"), soon=False),
            Case("endings.py", "at_exit", 3, "", flags=("-X", "dev"), soon=False))


class Streams(MatrixTest):
    """How a rank reads and writes."""

    def test_standard_input(self):
        text = "one\ntwo\nüthree".encode()
        self.matrix(*(Case("streams.py", name, code, stdin=text, options=(f"--stdin={reader}",),
                           soon=reader == "all", says=says)
                      for reader in ("0", "all", "none")
                      for name, code, says in (
                          ("reads_lines", 0, "end"), ("reads_by_input", 1, "EOFError"), ("reads_bytes", 0, ""))),
                    Case("streams.py", "reads_lines", stdin=text, nproc=1))

    def test_output(self):
        self.matrix(*(Case("streams.py", name, code, says, soon=soon) for name, code, says, soon in (
            ("partial_lines", 0, "last without end", True), ("progress", 0, "step 3", True),
            ("bytes_of_all_kinds", 0, "around", True),
            ("one_descriptor", 0, "err 19", True), ("many_lines", 0, "19999 x", True),
            ("loses_what_is_not_flushed", 0, "", True), ("forks_with_a_full_buffer", 0, "twice", True),
            ("reconfigures", 0, "latin", True), ("closes", 1, "before", True), ("logs", 0, "failed", True))))

    def test_output_with_buffers(self):
        self.matrix(*(Case("streams.py", name, code, says, **BUFFERED, soon=soon) for name, code, says, soon in (
            ("partial_lines", 0, "last without end", False), ("many_lines", 0, "19999 x", False),
            ("one_descriptor", 0, "err 19", True), ("loses_what_is_not_flushed", 0, "", True),
            ("forks_with_a_full_buffer", 0, "twice", True), ("logs", 0, "failed", False))),
            *(Case("state.py", name, nproc=1, **BUFFERED, soon=False)
              for name in ("streams", "descriptors", "interpreter")),
            Case("streams.py", "cannot_be_written", 1, "surrogates not allowed", env={"PYTHONIOENCODING": "utf-8:strict"}))

    def test_output_without_buffers(self):
        self.matrix(*(Case("streams.py", name, flags=flags, env=env, nproc=1,
                           soon=flags == ("-u",) and name == "one_descriptor")
                      for flags, env in ((("-u",), {}), ((), {"PYTHONUNBUFFERED": "1"}),
                                         ((), {"PYTHONIOENCODING": "utf-16"}),
                                         ((), {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}))
                      for name in ("one_descriptor", "loses_what_is_not_flushed", "bytes_of_all_kinds", "reconfigures")
                      if not (env and name == "bytes_of_all_kinds")))


class Children(MatrixTest):
    """What a rank starts."""

    def test_pools(self):
        self.matrix(*(Case("children.py", name, code, says, nproc=1) for name, code, says in (
            ("pool_by_fork", 0, "9 ForkPoolWorker __main__"), ("pool_by_spawn", 0, "9 SpawnPoolWorker __mp_main__"),
            ("pool_by_forkserver", 0, "9 ForkServerPoolWorker __mp_main__"), ("pool_by_default", 0, "True"),
            ("process_that_fails", 1, "in a process"), ("executor", 0, "16, 25"), ("queue_and_manager", 0, "1, 2, 3"),
            ("shared_memory", 0, "ab"), ("leaked_shared_memory", 0, "leaked shared_memory"))))

    def test_processes(self):
        self.matrix(*(Case("children.py", name, code, says) for name, code, says in (
            ("forks", 0, "ended 6"), ("forks_and_leaves", 0, "left 2 processes behind"), ("daemonises", 0, ""),
            ("other_programs", 0, "returncode=3"), ("asyncio_program", 0, "through cat"),
            ("on_a_terminal", 0, "True, True, True"), ("becomes_another", 0, "again"),
            ("becomes_itself", 0, "again"), ("title", 0, "own name"), ("counts_children", 0, "True"))))


class Starts(MatrixTest):
    """How a script can be named."""

    def prepare(self, place):
        source = (PROGRAMS / "endings.py").read_text(encoding="utf-8")
        (place / "pack").mkdir()
        (place / "pack/__init__.py").write_text("", encoding="utf-8")
        (place / "pack/__main__.py").write_text(source, encoding="utf-8")
        (place / "pack/work.py").write_text(source, encoding="utf-8")
        (place / "folder").mkdir()
        (place / "folder/__main__.py").write_text(source, encoding="utf-8")
        (place / "relative.py").write_text(source, encoding="utf-8")
        (place / "link.py").symlink_to(PROGRAMS / "endings.py")
        (place / "broken.py").write_text("import preloaded\npreloaded.tell()\nx = (\n", encoding="utf-8")
        (place / "latin.py").write_bytes(b"# coding: latin-1\nimport preloaded\npreloaded.tell()\nprint('\xe9')\n")
        (place / "helper.py").write_text("VALUE = 5\n", encoding="utf-8")
        (place / "imports.py").write_text("import preloaded\npreloaded.tell()\nimport helper\nimport sys\n"
                                          "print(helper.VALUE, helper.__file__, sys.path)\n", encoding="utf-8")
        (place / "no_suffix").write_text(source, encoding="utf-8")
        (place / "tests.py").write_text(
            "import preloaded\npreloaded.tell()\nimport unittest\n\n\nclass T(unittest.TestCase):\n"
            "    def test_it(self):\n        self.assertEqual(1, 2)\n", encoding="utf-8")

    def test_of_a_script(self):
        self.matrix(*(Case("", word, 1, "KeyError", words=(word, "raises"), soon=soon) for word, soon in (
            ("relative.py", True), ("./relative.py", False), ("link.py", True), ("folder", True), ("no_suffix", False))))
        self.matrix(Case("", "latin", 0, "é", words=("latin.py",)), Case("", "imports", 0, "5", words=("imports.py",)))

    def test_of_a_script_that_python_cannot_read(self):
        case = Case("", "broken", 1, "SyntaxError", words=("broken.py",))
        without, having = (self.run_once(case, preload)[0] for preload in (False, True))
        self.assertFalse(list(different("broken", without, having)))

    def test_of_a_module(self):
        self.matrix(*(Case("", " ".join(words), 0 if words[0] == "pdb" else 1, says, nproc=1,
                           flags=("-m",), words=words, soon=soon)
                      for words, says, soon in (
                          (("pack.work", "raises"), "KeyError", True), (("pack", "raises"), "KeyError", False),
                          (("unittest", "tests"), "1 != 2", True),
                          (("pdb", "-c", "continue", "relative.py", "raises"), "Post mortem", False))))

    def test_of_code(self):
        self.matrix(Case("", "code", 1, "KeyError", flags=("-c",), nproc=1, words=(
            "import preloaded; preloaded.tell(); import sys; print(sys.argv, sys.path[0], __name__); {}[7]", "x")))


@unittest.skipUnless(os.access(TORCH, os.X_OK), f"no {TORCH}")
class WithTorch(MatrixTest):
    def prepare(self, place):
        self.assertTrue(place.is_dir())

    def torch(self, *cases):
        self.matrix(*(dataclasses.replace(case, **IN_TORCH)
                      for case in cases))

    def test_training(self):
        self.torch(Case("with_torch.py", "trains", 0, r"0\.\d", soon=False))

    def test_all_else(self):
        # A lone rank may have many threads, and OpenBLAS would start them when it is imported.
        threads = {"OMP_NUM_THREADS": "1"}
        self.torch(*(Case("with_torch.py", name, code, says, nproc=nproc, env=threads, soon=False) for name, code, says, nproc in (
            ("facts", 0, "float32", 2), ("loads_by_fork", 0, "25.0", 1), ("loads_by_spawn", 0, "25.0", 1),
            ("loads_by_forkserver", 0, "25.0", 1), ("spawns", 0, "process 0", 1), ("fails", 1, "shapes cannot", 1),
            ("compiles", 0, "True", 1), ("shares_threads", 0, "True 2", 1))))


@unittest.skipUnless(AT_LENGTH, "takes minutes for each torch")
class WithEachTorch(MatrixTest):
    """The same programs where they have imported torch, with every torch that is here."""

    FACTS = {("state.py", name) for name in STATES}
    ENDINGS = {("endings.py", name, code) for name, code in (
        ("code_7", 7), ("code_text", 1), ("code_at_once", 9), ("thread_at_exit", 0), ("daemon_thread_at_exit", 0),
        ("at_exit", 3), ("raises", 1), ("raises_in_a_thread", 0), ("own_hook", 1), ("interrupt", 128 + signal.SIGINT),
        ("terminate", 128 + signal.SIGTERM), ("registered_dump", 0),
        ("segfault_with_faulthandler", 128 + signal.SIGSEGV))}
    CHILDREN = {("children.py", name) for name in (
        "pool_by_fork", "pool_by_spawn", "pool_by_forkserver", "executor", "forks", "daemonises", "title",
        "becomes_itself", "other_programs")}
    STREAMS = {("streams.py", name) for name in ("partial_lines", "logs", "one_descriptor", "many_lines")}
    TORCH = {("with_torch.py", *rest) for rest in (
        ("facts",), ("trains",), ("loads_by_fork",), ("loads_by_spawn",), ("loads_by_forkserver",), ("spawns",),
        ("fails", 1), ("compiles",), ("shares_threads",))}

    def test_programs(self):
        pythons = sorted(CACHED.glob(os.environ.get("HLAUNCH_MATRIX_TORCH", "torch-2.*") + "/bin/python"))
        self.assertTrue(pythons)
        for python in pythons:
            with self.subTest(python.parent.parent.name):
                self.programs({"python": str(python), "preload": "torch", "env": {"WITH_TORCH": "1"}})

    def programs(self, common):
        programs = set().union(self.FACTS, self.ENDINGS, self.CHILDREN, self.STREAMS, self.TORCH)
        for words in sorted(programs, key=str):
            two = words[0] == "state.py" or words[1] == "trains"
            self.matrix(Case(*words, nproc=2 if two else 1, **common))
        dies = 128 + signal.SIGABRT
        by_variable = {**common, "env": {**common["env"], "PYTHONFAULTHANDLER": "1"}}
        self.matrix(
            Case("endings.py", "segfault", 128 + signal.SIGSEGV, "Segmentation fault", **by_variable),
            Case("endings.py", "abort", dies, "Fatal Python error", flags=("-X", "dev"), **common),
            Case("endings.py", "handled", 128 + signal.SIGTERM, act=stop_by(signal.SIGTERM), nproc=1, **common),
            Case("streams.py", "reads_lines", stdin=b"one\ntwo", options=("--stdin=0",), nproc=1, **common))


if __name__ == "__main__":
    lab.main()
