#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""One node: misuse gives one clear line and its own exit code. Also Ctrl-C, output and stdin."""

import dataclasses
import fcntl
import os
import signal
import subprocess
import sys
import termios

import jobs
import lab


@dataclasses.dataclass
class Misuse:
    words: list
    code: int
    says: str
    env: dict = dataclasses.field(default_factory=dict)


W = jobs.WORKER
MISUSES = [
    Misuse([], jobs.USAGE, r"script"),
    Misuse(["--bogus", W], jobs.USAGE, r"--bogus"),
    Misuse(["--nproc-per-nod", "2", W], jobs.USAGE, r"--nproc-per-nod"),
    Misuse(["--nproc-per-node", "two", W], jobs.USAGE, r"--nproc-per-node.*two"),
    Misuse(["--nproc_per_node=0", W], jobs.USAGE, r"nproc.per.node.*0"),
    Misuse(["--nproc-per-node", "gpu", W], jobs.USAGE, r"gpu"),
    Misuse(["--nnodes", "3:2", W], jobs.USAGE, r"--nnodes.*3:2"),
    Misuse(["--max-restarts", "-1", W], jobs.USAGE, r"--max-restarts"),
    Misuse(["--join-timeout", "soon", W], jobs.USAGE, r"--join-timeout.*soon"),
    Misuse(["--rdzv-backend", "zookeeper", W], jobs.USAGE, r"zookeeper"),
    Misuse(["--nnodes", "2", "--rdzv-endpoint", "node0:99999", W], jobs.USAGE, r"99999"),
    Misuse(["--nnodes", "2", "--standalone", W], jobs.USAGE, r"--standalone"),
    Misuse(["-m", "--no-python", W], jobs.USAGE, r"--no-python"),
    Misuse(["--token-file", "/nowhere/token", "--nnodes", "2", W], jobs.USAGE, r"/nowhere/token"),
    Misuse(["nothing.py"], jobs.NOT_FOUND, r"nothing\.py"),
    Misuse(["--no-python", "./nothing"], jobs.NOT_FOUND, r"\./nothing"),
    Misuse(["--no-python", "./no-run-bit"], jobs.NOT_EXECUTABLE, r"\./no-run-bit"),
    Misuse(["--nproc-per-node", "2", "/dev/stdin"], jobs.USAGE, r"/dev/stdin.*write it to a file"),
    Misuse(["--hosts", "localhost,127.0.0.1", W], jobs.USAGE,
           r"localhost and 127\.0\.0\.1 are both this host.*as in localhost:2"),
    Misuse(["./pipe.py"], jobs.NOT_EXECUTABLE, r"\./pipe\.py is a pipe.*write it to a file"),
    Misuse(["--no-python", "/etc"], jobs.NOT_EXECUTABLE, r"/etc"),
    Misuse([W], jobs.NOT_FOUND, r"no-such-python", {"PYTHON_EXEC": "no-such-python"}),
]


def waiting_bytes(fd):
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


class CommandLine(jobs.JobTest):
    count = 1

    def hlaunch(self, *words, env=None, **options):
        return self.nodes[0].start(lab.HLAUNCH, *words,
                                   env={"PYTHON_EXEC": jobs.PYTHON, **(env or {})}, **options)

    def test_misuse_gets_one_line_and_its_own_code(self):
        (self.nodes[0].folder / "no-run-bit").write_text("#!/bin/sh\n", encoding="utf-8")
        os.mkfifo(self.nodes[0].folder / "pipe.py")
        for misuse in MISUSES:
            with self.subTest(" ".join(misuse.words)):
                run = self.hlaunch(*misuse.words, env=misuse.env)
                self.assertEqual(run.wait(15), misuse.code, str(run))
                self.assertEqual(len(run.err.splitlines()), 1, str(run))
                self.assertRegex(run.err, rf"^hlaunch: .*{misuse.says}")
                self.assertEqual(run.out, "")
                self.assert_nothing_left()

    def test_a_name_that_does_not_resolve(self):
        # A name may appear when its host boots, so hlaunch retries as long as it waits for nodes.
        run = self.hlaunch("--nnodes", "2", "--rdzv-endpoint", "no-such-host.invalid:29400",
                           "--join-timeout", "10", W)
        self.assert_done([run], jobs.BAD_ENDPOINT, 16)
        self.assert_said(run, r"cannot resolve 'no-such-host\.invalid'")

    def test_help_and_version(self):
        for word, says in (("--help", r"--nproc-per-node"), ("--version", r"^hlaunch \d+\.\d+")):
            run = self.hlaunch(word)
            self.assertEqual((run.wait(5), run.err), (0, ""), str(run))
            self.assertRegex(run.out, says)

    def test_both_spellings_and_what_belongs_to_the_script(self):
        run = self.hlaunch("--nproc_per_node=2", "--max_restarts", "0", "--no_python", "sh", "-c",
                           'echo "$RANK of $WORLD_SIZE: $*"', "sh", "--nnodes", "7", "-v")
        self.assert_done([run], 0, 10)
        self.assertEqual(sorted(run.out.splitlines()),
                         ["[0] 0 of 2: --nnodes 7 -v", "[1] 1 of 2: --nnodes 7 -v"])

    def test_a_world_of_one_is_not_tagged_and_output_is_kept_to_the_last_byte(self):
        run = self.hlaunch("--no-python", "sh", "-c", "printf 'no newline'; printf oops >&2")
        self.assert_done([run], 0, 10)
        self.assertEqual(run.out.rstrip("\n"), "no newline")
        self.assertIn("oops", run.err)

    def test_a_report_begins_a_line_of_its_own(self):
        run = self.hlaunch("--no-python", "sh", "-c", "printf oops >&2; exit 3")
        self.assert_done([run], 3, 10)
        self.assertIn("oops\nhlaunch: job failed", run.err)

    def test_a_module_and_stdin(self):
        run = self.hlaunch("-m", "platform")
        self.assert_done([run], 0, 10)
        self.assertIn("Linux", run.out)
        # A lone worker reads stdin. Of several workers, local rank 0 does, but only with --stdin.
        for options, said in ((["--nproc-per-node", "1"], ["6"]),
                              (["--nproc-per-node", "2"], ["[0] 0", "[1] 0"]),
                              (["--nproc-per-node", "2", "--stdin"], ["[0] 6", "[1] 0"])):
            with self.subTest(" ".join(options)):
                run = self.hlaunch(*options, "--no-python", "wc", "-c", stdin=subprocess.PIPE)
                run.process.stdin.write(b"hello\n")
                run.process.stdin.close()
                self.assert_done([run], 0, 10)
                self.assertEqual(sorted(run.out.splitlines()), said)

    def test_a_shim_runs_the_python_of_this_directory_in_another_one_too(self):
        node = self.nodes[0]
        here, there, shims, real = (node.folder / name for name in ("here", "there", "shims", "real"))
        for number, folder in enumerate((here, there)):
            (real / str(number) / "bin").mkdir(parents=True)
            (real / str(number) / "bin/python3").symlink_to(jobs.PYTHON)
            folder.mkdir()
            (folder / ".tool-versions").write_text(f"python {number}\n", encoding="utf-8")
        shims.mkdir()
        (shims / "asdf").write_text(
            "#!/bin/sh\nshift\nread -r tool version < .tool-versions || exit 126\n"
            f"export PATH={real}/$version/bin:$PATH\nexec \"$@\"\n", encoding="utf-8")
        (shims / "python3").write_text('#!/bin/sh\nexec asdf exec "python3" "$@"\n', encoding="utf-8")
        for shim in shims.iterdir():
            shim.chmod(0o755)
        script = there / "says.py"
        script.write_text("import os, shutil, sys\n"
                          "print(sys.executable, os.getcwd(), shutil.which('python3'))\n",
                          encoding="utf-8")
        path = {"PATH": f"{shims}:/usr/bin:/bin", "PYTHON_EXEC": ""}
        run = node.run(lab.HLAUNCH, "--wdir", there, "says.py", cwd=here, env=path)
        self.assertEqual((run.code, run.out.strip()),
                         (0, f"{real}/0/bin/python3 {there} {real}/0/bin/python3"), str(run))
        run = node.run(lab.HLAUNCH, "--wdir", there, "--no-python", "python3", "says.py", cwd=here,
                       env=path)
        self.assertEqual((run.code, run.out.split()[0]), (0, f"{real}/1/bin/python3"), str(run))
        self.assertIn(f"{shims}/python3 is a shim: workers run {real}/1/bin/python3, that of", run.err)

    def test_a_daemon_that_still_forks_as_its_worker_ends_is_named(self):
        source, program = (self.nodes[0].folder / name for name in ("walks.c", "walks"))
        # Each process of the daemon lives for a moment, as those of its usual two forks do.
        source.write_text("#include <time.h>\n#include <unistd.h>\nint main(void) {\n"
                          "  struct timespec begin, now;\n  if (fork()) _exit(0);\n  setsid();\n"
                          "  clock_gettime(CLOCK_MONOTONIC, &begin);\n  do {\n"
                          "    if (fork()) _exit(0);\n    clock_gettime(CLOCK_MONOTONIC, &now);\n"
                          "  } while ((now.tv_sec - begin.tv_sec) * 1000 +\n"
                          "           (now.tv_nsec - begin.tv_nsec) / 1000000 < 60);\n"
                          "  sleep(50);\n}\n", encoding="utf-8")
        subprocess.run(["cc", "-o", program, source], check=True, timeout=60)
        for _ in range(10):
            run = self.hlaunch("--no-python", program)
            self.assert_done([run], 0, 20)
            self.assertRegex(run.err, r"the workers exited and left \d+ process(es)? behind: walks")

    def test_the_cause_is_not_written_through_a_link_that_another_user_may_have_put_there(self):
        link, target = (self.nodes[0].folder / name for name in ("error.json", "target"))
        target.write_text("kept", encoding="utf-8")
        link.symlink_to(target)
        run = self.hlaunch("--no-python", "false", env={"TORCHELASTIC_ERROR_FILE": link})
        self.assertEqual(run.wait(15), 1, str(run))
        self.assert_said(run, "TORCHELASTIC_ERROR_FILE .*it is a link, and none is followed")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_text(encoding="utf-8"), "kept")
        self.assert_nothing_left()

    def test_typed_numbers_of_workers_outrank_the_environments(self):
        run = self.hlaunch("--hosts", "localhost:2", "--no-python", "sh", "-c", "echo of $WORLD_SIZE",
                           env={"PET_NPROC_PER_NODE": 3})
        self.assert_done([run], 0, 20)
        self.assertEqual(sorted(run.out.splitlines()), ["[0] of 2", "[1] of 2"])

    def test_a_breakpoint_in_one_of_two_workers_advises_stdin(self):
        script = self.nodes[0].folder / "stops.py"
        script.write_text("import os\nif os.environ['RANK'] == '1':\n    breakpoint()\n",
                          encoding="utf-8")
        run = self.hlaunch("--nproc-per-node", "2", script)
        self.assert_done([run], 1, 20)
        self.assert_said(run, r"BdbQuit")
        self.assert_said(run, r"only with --stdin")

    def test_a_file_that_no_kernel_runs(self):
        script = self.nodes[0].folder / "no-interpreter"
        script.write_text("echo hello\n", encoding="utf-8")
        script.chmod(0o755)
        run = self.hlaunch("--no-python", script)
        self.assert_done([run], jobs.NOT_EXECUTABLE, 5)
        self.assert_said(run, "no-interpreter")

    def test_nohup_holds(self):
        end = self.lab.folder / "end"
        run = self.nodes[0].start("nohup", lab.HLAUNCH, "--nproc-per-node", "2", W, "env", "await",
                                  end, env={"PYTHON_EXEC": jobs.PYTHON})
        self.wait_for_workers([run], 2)
        run.signal(signal.SIGHUP)
        end.touch()
        self.assert_done([run], 0, 15)

    def test_the_terminals_stop_key_stops_it_and_fg_goes_on(self):
        # hlaunch gets its own process group, as from a shell: the kernel stops no orphaned process
        # group.
        end = self.lab.folder / "end"
        run = self.hlaunch("--no-python", "sh", "-c", f"echo up; until test -e {end}; do sleep 0.1; done",
                           process_group=0)
        run.wait_for("up")
        keeper = run.pid
        run.signal(signal.SIGTSTP)
        self.assertTrue(lab.poll(lambda: lab.fields(keeper)[0] == "T", 5), str(run))
        # nsenter stops itself once its child has stopped, and then waits for a SIGCONT of its own.
        self.assertTrue(lab.poll(lambda: lab.fields(run.process.pid)[0] == "T", 5), str(run))
        run.process.send_signal(signal.SIGCONT)
        run.signal(signal.SIGCONT)
        end.touch()
        self.assert_done([run], 0, 10)

    def test_it_stops_though_nobody_reads_what_it_says(self):
        pipe = self.nodes[0].folder / "unread"
        os.mkfifo(pipe)
        run = self.nodes[0].start(
            "sh", "-c", f'exec "$@" 1<>{pipe} 2>&1', "sh", lab.HLAUNCH, "--shutdown-timeout", "2",
            "--no-python", "sh", "-c", "while :; do echo 0123456789abcdef; done")
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            self.assertTrue(lab.poll(lambda: waiting_bytes(reader) > 32768, 10), str(run))
            run.signal(signal.SIGTERM)
            self.assert_done([run], 128 + signal.SIGTERM, 15)
        finally:
            os.close(reader)

    def test_a_signal_ends_all_with_its_own_code(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                run = self.hlaunch("--nproc-per-node", "2", "--shutdown-timeout", "1", W, "family",
                                   "env", "sleep", "600")
                self.wait_for_workers([run], 2)
                run.signal(number)
                self.assert_done([run], 128 + number, 10)

    def test_a_second_interrupt_kills_at_once(self):
        run = self.hlaunch("--nproc-per-node", "2", "--shutdown-timeout", "600", W, "stubborn",
                           "family", "env", "sleep", "600")
        self.wait_for_workers([run], 2)
        run.signal(signal.SIGINT)
        run.wait_for(r"hlaunch: .*SIGINT")
        self.assertIsNone(run.process.poll(), "it should wait for its workers")
        run.signal(signal.SIGINT)
        self.assert_done([run], 130, 4)


class InterruptOfTwoNodes(jobs.JobTest):
    def test_an_interrupt_on_one_node_ends_the_job_on_both(self):
        for index, stubborn in ((0, []), (1, []), (1, ["stubborn"])):
            with self.subTest(f"node{index}", stubborn=bool(stubborn)):
                runs = self.start(W, *stubborn, "family", "env", "sleep", "600",
                                  options=["--nproc-per-node", "2", "--shutdown-timeout", "1"])
                self.wait_for_workers(runs, 4)
                runs[index].signal(signal.SIGINT)
                codes = [jobs.NODE_STOPPED] * 2
                codes[index] = 130
                self.assert_done(runs, codes, 15)
                self.assertRegex(runs[1 - index].err,
                                 rf"job stopped: node{index} was stopped by SIGINT")
                self.assertNotIn(f"exit code {jobs.NODE_STOPPED}", runs[index].err)

    def test_an_interrupt_while_waiting_for_nodes(self):
        run = self.start(W, "env", nodes=self.nodes[:1])[0]
        run.wait_for("waiting")
        run.signal(signal.SIGINT)
        self.assert_done([run], 130, 5)


if __name__ == "__main__":
    lab.main()
