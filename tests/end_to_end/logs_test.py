#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Workers' output on the console and in files: nothing is lost or mixed, and no disk, pager or
closed descriptor stops a job."""

import os
import pathlib
import re
import signal

import jobs
import lab

LOST = r"output of workers is lost: cannot write \S+: No space left on device"


class Logs(jobs.JobTest):
    count = 1

    def hlaunch(self, *words, shell="", env=None):
        """Starts `hlaunch` with these words; `shell` runs it as "$@" with its own redirections."""
        wrap = ["sh", "-c", shell, "sh"] if shell else []
        return self.nodes[0].start(*wrap, lab.HLAUNCH, *words,
                                   env={"PYTHON_EXEC": jobs.PYTHON, "TERM": "xterm",
                                        "NO_COLOR": "", **(env or {})})

    def python(self, *options, code, **more):
        script = self.nodes[0].folder / "worker.py"
        script.write_text(f"import os, pathlib, sys, time\nrank = os.environ['RANK']\n{code}\n",
                          encoding="utf-8")
        return self.hlaunch(*options, script, **more)

    def seen(self, path):
        """The path at which the test can open a path of the node, which has mounts of its own."""
        return pathlib.Path(f"/proc/{self.nodes[0].init}/root{path}")

    def log(self, folder, name):
        """The only file of that name below `folder`."""
        found = list(self.seen(folder).glob(f"*/{name}"))
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def small_disk(self, size):
        path = self.nodes[0].folder / f"small{len(list(self.nodes[0].folder.glob('small*')))}"
        path.mkdir()
        done = self.nodes[0].run("mount", "-t", "tmpfs", "-o", f"size={size}", "small", path)
        self.assertEqual(done.code, 0, str(done))
        return path

    def test_a_full_disk_under_the_logs_does_not_stop_the_job(self):
        lines = [f"[{rank}] {i:0100}" for rank in (0, 1) for i in range(20000)]
        for options, shown in ((["-t", "3"], True), (["-r", "3"], False),
                               (["-r", "3", "--log-rotate", "100K:2"], False)):
            with self.subTest(" ".join(options)):
                path = self.small_disk("256k")
                run = self.python("--nproc-per-node", "2", "--log-dir", path, *options,
                                  code="for i in range(20000): print(f'{i:0100}')\n"
                                       "print('trained', file=sys.stderr, flush=True)")
                self.assert_done([run], 0, 60)
                self.assertEqual(sorted(run.out.splitlines()), lines if shown else [])
                if "--log-rotate" not in options:
                    self.assertEqual(len(re.findall(LOST, run.err)), 1, run.err)
                    self.assert_said(run, r"log files lack [1-9]\d* bytes of the workers' output")

    def test_a_full_disk_is_tried_again(self):
        path = self.small_disk("128k")
        run = self.python("-r", "3", "--log-dir", path, code=(
            "sys.stdout.write('x' * 99 + '\\n')\n"
            "sys.stdout.write(('y' * 99 + '\\n') * 3000)\n"
            "sys.stdout.flush()\n"
            f"while not pathlib.Path('{path}/../more').exists(): time.sleep(0.01)\n"
            "print('after')"))
        output = "x" * 99 + "\n" + ("y" * 99 + "\n") * 3000 + "after\n"
        run.wait_for(LOST)
        log = self.log(path, "attempt_0/0/stdout.log")
        full = log.read_text(encoding="utf-8")
        self.assertEqual(full[:100], "x" * 99 + "\n")
        done = self.nodes[0].run("mount", "-o", "remount,size=1m", path)
        self.assertEqual(done.code, 0, str(done))
        (path.parent / "more").touch()
        self.assert_done([run], 0, 20)
        grown = log.read_text(encoding="utf-8")[len(full):]
        gap = re.match(r"\n?\[hlaunch: ([1-9]\d*) bytes are missing here: No space left on "
                       r"device\]\n", grown)
        self.assertIsNotNone(gap, grown[:200])
        # A busy hlaunch takes the end of the output when the disk has room again.
        lost = int(gap[1])
        self.assertTrue(full + output[len(full):][:lost] + grown[gap.end():] == output,
                        f"{len(full)} bytes, {grown[:200]} … {grown[-200:]}")
        self.assert_said(run, rf"log files lack {lost} bytes")

    def test_a_log_directory_that_cannot_be_gets_one_line(self):
        (self.nodes[0].folder / "file").write_text("x", encoding="utf-8")
        (self.nodes[0].folder / "loop").symlink_to("loop")
        for name in ("file", "file/below", "/proc/nowhere", "loop/logs", "x" * 300):
            with self.subTest(name):
                run = self.hlaunch("--log-dir", name, "--no-python", "true")
                self.assert_done([run], jobs.USAGE, 10)
                self.assertRegex(run.err, rf"^hlaunch: cannot use {name} for log files: .*\n$")

    def test_output_that_nobody_can_take_does_not_stop_the_job(self):
        count = 200000
        for shell, says in (('exec "$@" >&-', r"\Ahlaunch: workers get [^\n]*\n\Z"),
                            ('exec "$@" >/dev/full', r"stdout: No space"),
                            ('exec "$@" 2>&-', r"\A\Z"), ('"$@" | true', r"stdout: Broken pipe")):
            with self.subTest(shell):
                folder = self.nodes[0].folder / f"logs{abs(hash(shell))}"
                run = self.hlaunch("--nproc-per-node", "2", "-t", "3", "--log-dir", folder,
                                   "--no-python", "seq", count, shell=shell)
                self.assert_done([run], 0, 30)
                self.assertRegex(run.err, says)
                for rank in (0, 1):
                    text = self.log(folder, f"attempt_0/{rank}/stdout.log").read_text()
                    self.assertEqual(text.splitlines(), [str(i + 1) for i in range(count)])

    def test_a_limit_of_file_sizes_does_not_stop_the_job(self):
        full = self.nodes[0].folder / "full"
        full.write_text("x" * 512, encoding="utf-8")
        run = self.hlaunch("--max-restarts", "1", "--no-python", "sh", "-c",
                           "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && grep SigIgn /proc/self/status",
                           shell=f'ulimit -f 1; exec "$@" 2>>{full}')
        self.assert_done([run], 0, 30)
        self.assertEqual(run.out, "SigIgn:\t0000000000000000\n")

    def test_a_paused_pager_stops_only_what_it_shows(self):
        pipe = self.nodes[0].folder / "unread"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            run = self.python("--nproc-per-node", "2", "-r", "1:3", "--log-dir", "logs",
                              shell=f'exec "$@" >{pipe}',
                              code="for i in range(100000): print(f'{i:099}')")
            folder = self.nodes[0].folder / "logs"
            self.assertTrue(lab.poll(lambda: any(
                path.stat().st_size == 100000 * 100
                for path in self.seen(folder).glob("*/attempt_0/1/stdout.log")), 30), str(run))
            self.assertIsNone(run.process.poll())
            os.set_blocking(reader, True)
            text = b"".join(iter(lambda: os.read(reader, 1 << 20), b""))
            self.assert_done([run], 0, 20)
            self.assertEqual(text.splitlines(), [b"[0] %099d" % i for i in range(100000)])
        finally:
            os.close(reader)

    def test_nothing_is_lost_when_workers_exit_or_are_killed(self):
        # A full pipe at the exit and a grandchild that still holds it; then a signal to the job.
        for name, end, code in (("exit", "exit 0", 0), ("failure", "exit 3", 3),
                                ("SIGTERM", "touch done$RANK; exec sleep 1000", 143)):
            with self.subTest(name):
                folder = self.nodes[0].folder / f"logs-{name}"
                run = self.hlaunch("--nproc-per-node", "2", "-t", "1", "--log-dir", folder,
                                   "--no-python", "sh", "-c",
                                   "sleep 1000 & seq 200000; printf last; " + end)
                if name == "SIGTERM":
                    done = [self.nodes[0].folder / f"done{rank}" for rank in (0, 1)]
                    self.assertTrue(lab.poll(lambda: all(path.exists() for path in done), 20))
                    run.signal(signal.SIGTERM)
                self.assert_done([run], code, 40)
                if name == "failure":  # The other rank may be stopped before all its output.
                    rank = "0" if re.search(r"^\[0\] last$", run.out, re.MULTILINE) else "1"
                    ranks = (rank,)
                else:
                    ranks = ("0", "1")
                for rank in ranks:
                    wanted = [str(i + 1) for i in range(200000)] + ["last"]
                    log = self.log(folder, f"attempt_0/{rank}/stdout.log")
                    self.assertEqual(log.read_text().splitlines(), wanted)
                    self.assertEqual([line[4:] for line in run.out.splitlines()
                                      if line.startswith(f"[{rank}] ")], wanted)

    def test_the_report_has_the_end_of_a_stderr_that_goes_to_a_file_alone(self):
        for options in (["-r", "3"], ["--local-ranks-filter", "1"]):
            with self.subTest(" ".join(options)):
                run = self.python("--nproc-per-node", "2", *options, "--log-dir", "logs", code=(
                    "if rank == '0': print('planted words', file=sys.stderr); sys.exit(3)\n"
                    "time.sleep(600)"))
                self.assert_done([run], 3, 20)
                self.assert_said(run, "planted words")
                self.assertNotIn("[0] planted", run.err)

    def test_any_bytes_pass(self):
        said = bytes(range(256)) * 4 + b"\n" + b"z" * 100000 + b"\n" + b"\xff\xfe\0end"
        run = self.python("--nproc-per-node", "2", "-t", "1", "--log-dir", "logs",
                          code=f"sys.stdout.buffer.write({said!r} if rank == '1' else b'')")
        self.assert_done([run], 0, 20)
        log = self.log(self.nodes[0].folder / "logs", "attempt_0/1/stdout.log")
        self.assertEqual(log.read_bytes(), said)
        self.assertIn("[1] " + "z" * 100000 + "\n", run.out)

    def test_rotation_keeps_the_last_files(self):
        run = self.python("-r", "3", "--log-dir", "logs", "--log-rotate", "4K:2",
                          code="for i in range(200): print(f'{i:099}', flush=True)")
        self.assert_done([run], 0, 20)
        folder = self.log(self.nodes[0].folder / "logs", "attempt_0/0/stdout.log").parent
        files = {path.name: path.read_text().splitlines() for path in folder.glob("stdout*")}
        self.assertEqual(sorted(files), ["stdout.log", "stdout.log.1", "stdout.log.2"])
        self.assertEqual([int(line) for name in ("stdout.log.2", "stdout.log.1", "stdout.log")
                          for line in files[name]], list(range(80, 200)))

    def test_workers_know_their_place_and_prefixes_are_the_users(self):
        run = self.python("--nproc-per-node", "12", "-t", "11:1", "--role", "trainer",
                          "--log-dir", "logs", "--local-ranks-filter", "3,11",
                          "--log-prefix", "<${role_name} ${local_rank}/${rank}> ",
                          code="print(os.environ['HLAUNCH_LOG_DIR'])")
        self.assert_done([run], 0, 30)
        log = self.log(self.nodes[0].folder / "logs", "attempt_0/11/stdout.log")
        self.assertEqual(log.read_text(), f"{self.nodes[0].folder}/logs/"
                                          f"{log.parent.parent.parent.name}/attempt_0/11\n")
        self.assertEqual(sorted(line.rpartition("/attempt_0/")[0].split(" /")[0]
                                for line in run.out.splitlines()),
                         ["<trainer 11/11>", "<trainer 3/3>"])

    def test_a_terminal_shows_colours_and_bars_that_take_turns(self):
        code = ("for i in range(1, 4):\n"
                "    print(f'\\r{i}0%|' + '#' * (i * (1 + int(rank))) + '|', end='',"
                " file=sys.stderr, flush=True)\n"
                "    time.sleep(0.05)\n"
                "print(file=sys.stderr, flush=True)")
        script = self.nodes[0].folder / "worker.py"
        script.write_text(f"import os, sys, time\nrank = os.environ['RANK']\n{code}\n",
                          encoding="utf-8")
        command = f"{lab.HLAUNCH} --nproc-per-node 2 {script}"
        for env, colours in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                             ({"TERM": "dumb"}, False)):
            with self.subTest(str(env)):
                run = self.nodes[0].start(
                    "script", "-qec", command, "/dev/null",
                    env={"PYTHON_EXEC": jobs.PYTHON, "NO_COLOR": "", "OMP_NUM_THREADS": "1", **env})
                self.assert_done([run], 0, 20)
                text = pathlib.Path(run._out).read_bytes().decode()
                self.assertEqual("\x1b[36m[0] \x1b[0m" in text, colours, repr(text))
                self.assertEqual("\x1b[K" in text, env["TERM"] != "dumb", repr(text))
                plain = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r\n", "\n")
                if env["TERM"] != "dumb":
                    self.assertEqual(sorted(shown(plain)),
                                     ["", "[0] 30%|###|", "[1] 30%|######|"], repr(text))

    def test_a_terminal_shows_equal_tracebacks_once_and_the_culprits_by_itself(self):
        script = self.nodes[0].folder / "worker.py"
        script.write_text(
            "import os, pathlib, signal, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "rank, here = int(os.environ['RANK']), pathlib.Path(sys.argv[1])\n"
            "print('hello', flush=True)\n"
            "(here / str(rank)).touch()\n"
            "while len(list(here.iterdir())) < 8: time.sleep(0.01)\n"
            "if rank == 3: raise KeyError('planted')\n"
            "raise RuntimeError(f'Connection closed by peer [10.0.0.{rank}]:{os.getpid()}')\n",
            encoding="utf-8")
        for options, terminal in (("", True), ("--console all", True), ("--console fold", False),
                                  ("", False)):
            with self.subTest(f"{options}, {terminal}"):
                here = self.nodes[0].folder / f"here{options}{terminal}".replace(" ", "")
                here.mkdir()
                command = f"{lab.HLAUNCH} --nproc-per-node 8 {options} {script} {here} 2>&1"
                run = self.nodes[0].start(
                    *(["script", "-qec", command, "/dev/null"] if terminal
                      else ["sh", "-c", command]),
                    env={"PYTHON_EXEC": jobs.PYTHON, "TERM": "xterm", "NO_COLOR": "1",
                         "OMP_NUM_THREADS": "1"})
                self.assert_done([run], 1, 30)
                text = pathlib.Path(run._out).read_bytes().decode().replace("\r\n", "\n")
                self.assertEqual(sorted(ranks_before(text, "hello")), list(range(8)), repr(text))
                self.assertIn("[3] KeyError: 'planted'\n", text)
                heads = re.findall(r"^\[([-0-9,]+)\] RuntimeError: Connection closed by peer", text,
                                   re.MULTILINE)
                self.assertEqual(sorted(rank for head in heads for rank in numbers(head)),
                                 [0, 1, 2, 4, 5, 6, 7], repr(text))
                if options == "--console all" or (not options and not terminal):
                    self.assertEqual(len(heads), 7)

    def test_a_folded_console_loses_nothing(self):
        # Lines fold only if several ranks print them within a moment, so they meet twenty times.
        (self.nodes[0].folder / "met").mkdir()
        run = self.python("--nproc-per-node", "4", "--console", "fold", "-t", "1",
                          "--log-dir", "logs", code=(
                              "met = pathlib.Path('met')\n"
                              "for i in range(20000):\n"
                              "    if i % 1000 == 0:\n"
                              "        sys.stdout.flush()\n"
                              "        (met / f'{i}-{rank}').touch()\n"
                              "        while len(list(met.glob(f'{i}-*'))) < 4: time.sleep(0.001)\n"
                              "    print(i % 7 * int(rank))\n"
                              "print('the end', end='')"))
        self.assert_done([run], 0, 30)
        for rank in range(4):
            said = [match.group(2) for match in re.finditer(r"^\[([-0-9,]+)\] (.*)$", run.out,
                                                            re.MULTILINE)
                    if rank in numbers(match.group(1))]
            self.assertEqual(said, [str(i % 7 * rank) for i in range(20000)] + ["the end"])
            log = self.log(self.nodes[0].folder / "logs", f"attempt_0/{rank}/stdout.log")
            self.assertEqual(log.read_text().splitlines(), said)
        self.assertLess(len(run.out.splitlines()), 80004)

    def test_the_report_is_coloured_for_a_person_alone(self):
        for words, no_color, colours in (("", "", True), ("", "1", False), ("--json ", "", False)):
            with self.subTest(words + no_color):
                run = self.nodes[0].start(
                    "script", "-qec", f"{lab.HLAUNCH} {words}--no-python sh -c 'exit 7'",
                    "/dev/null", env={"TERM": "xterm", "NO_COLOR": no_color})
                self.assert_done([run], 7, 20)
                text = pathlib.Path(run._out).read_bytes().decode()
                self.assertIn("job failed", text)
                self.assertEqual("\x1b[" in text or "u001b" in text, colours, repr(text))


def numbers(ranks):
    """The ranks in a list such as "0-2,4"."""
    found = []
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def ranks_before(text, pattern):
    """The ranks in the prefixes of lines that match, folded or not."""
    heads = re.findall(rf"^\[([-0-9,]+)\] {pattern}$", text, re.MULTILINE)
    return [rank for head in heads for rank in numbers(head)]


def shown(text):
    """The lines that a terminal shows, which obeys '\\r' and "erase to the end of the line"."""
    lines, column = [""], 0
    for part in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            lines.append("")
            column = 0
        elif part == "\r":
            column = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column] + part + lines[-1][column + len(part):]
            column += len(part)
    return lines


if __name__ == "__main__":
    lab.main()
