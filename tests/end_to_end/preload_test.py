#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""--preload: a node imports modules once, and its ranks are forked from that."""

import json
import os
import re
import signal
import textwrap

import hosts_test
import jobs
import lab
import memory_group

WORKER = str(lab.WORKERS / "preload_worker.py")
MODULE = "import os\nPID = os.getpid()\n"


class Preloading(jobs.JobTest):
    count = 1

    def write(self, name, text):
        path = os.path.join(self.nodes[0].folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return path

    def modules(self, text=MODULE):
        """A folder for PYTHONPATH with the module `preloaded`."""
        return os.path.dirname(self.write("modules/preloaded.py", text))

    def hlaunch(self, *words, preload="preloaded", nproc=2, env=None, **options):
        env = {"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": self.modules_at, **(env or {})}
        wish = ["--preload", preload] if preload else []
        return self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", nproc, "--shutdown-timeout", 1,
                                   *wish, *words, env=env, cwd=self.nodes[0].folder, **options)

    def setUp(self):
        super().setUp()
        self.modules_at = self.modules()

    def facts(self, run):
        return [json.loads(text) for text in re.findall(r"FACTS (\{.*\})", run.out)]

    def forked(self, run):
        return [fact["volatile"]["forked"] for fact in self.facts(run)]


class Sameness(Preloading):
    """A forked rank finds itself as one that has started by itself."""

    def same(self, *words, nproc=2, **options):
        told = []
        for preload in "preloaded", None:
            run = self.hlaunch(*words, preload=preload, nproc=nproc, **options)
            self.assert_done([run], jobs.OK, 60)
            self.assertEqual(self.forked(run), [preload is not None] * nproc, str(run))
            facts = sorted(self.facts(run), key=lambda fact: fact["volatile"]["rank"])
            told.append([{name: value for name, value in fact.items() if name != "volatile"}
                         for fact in facts])
        self.maxDiff = None
        self.assertEqual(told[0], told[1])

    def test_a_script_with_arguments(self):
        self.same(WORKER, "--lr", "0.1", "")

    def test_a_module(self):
        with open(WORKER, encoding="utf-8") as file:
            self.write("modules/pack/__init__.py", "")
            self.write("modules/pack/work.py", file.read())
        self.same("-m", "pack.work", "x")

    def test_python_without_buffers(self):
        self.same("--no-python", jobs.PYTHON, "-u", WORKER)

    def test_python_with_options(self):
        self.same("--no-python", jobs.PYTHON, "-OB", "-Xdev", "-W", "ignore", WORKER)

    def test_standard_input(self):
        self.same("--stdin=0", WORKER, stdin=lab.subprocess.PIPE)

    def test_a_lone_rank(self):
        self.same(WORKER, nproc=1)


    def test_the_collector_of_garbage_works_as_ever(self):
        self.modules(MODULE + "import gc\nWHILE_IMPORTED = gc.get_threshold()[0]\n")
        script = self.write("collects.py", """
            import gc, preloaded
            print(gc.isenabled(), gc.get_threshold(), preloaded.WHILE_IMPORTED > 10 ** 6, flush=True)
            """)
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(run.out, "True (700, 10, 10) True\n", str(run))

    def test_a_module_that_sets_the_collector_has_set_it(self):
        self.modules(MODULE + "import gc\ngc.set_threshold(5000, 20, 30)\n")
        script = self.write("collects.py", "import gc, preloaded\nprint(gc.get_threshold())\n")
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(run.out, "(5000, 20, 30)\n", str(run))


class Restarts(Preloading):
    def test_ranks_of_later_rounds_are_forked_from_the_same_process(self):
        script = self.write("fails.py", """
            import os, preloaded
            count = os.environ["TORCHELASTIC_RESTART_COUNT"]
            print("MADE", count, preloaded.PID, os.getpid(), flush=True)
            raise SystemExit(7 if count < "2" else 0)
            """)
        run = self.hlaunch("--max-restarts", 2, script)
        self.assert_done([run], jobs.OK, 60)
        made = re.findall(r"MADE (\d) (\d+) (\d+)", run.out)
        self.assertEqual({count for count, _, _ in made}, set("012"), str(run))
        self.assertEqual(len({server for _, server, _ in made}), 1, str(run))
        self.assertFalse([line for line in made if line[1] == line[2]], str(run))

    def test_a_package_that_was_upgraded_meanwhile_is_imported_anew(self):
        script = self.write("upgrades.py", f"""
            import os, preloaded
            print("MADE", preloaded.PID != os.getpid(), getattr(preloaded, "NEW", 0), flush=True)
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                with open({self.modules_at + "/preloaded.py"!r}, "a") as file:
                    file.write("NEW = 1\\n")
                raise SystemExit(7)
            """)
        run = self.hlaunch("--max-restarts", 1, script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(re.findall(r"MADE (\w+) (\d)", run.out), [("True", "0"), ("True", "1")],
                         str(run))


    # Waits until the forks for the next round are there; the server is one of the agent's children.
    WAITS = """
        import os, time, preloaded
        first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        path = f"/proc/{os.getppid()}/task/{os.getppid()}/children"
        while first:
            with open(path) as file:
                children = file.read().split()
            if len(children) >= 1 + 2 * int(os.environ["WORLD_SIZE"]):
                break
            time.sleep(0.05)
        """

    def test_forks_wait_for_the_next_round_and_become_its_ranks(self):
        script = self.write("waits.py", textwrap.dedent(self.WAITS) + textwrap.dedent("""
            print("MADE", int(first), os.getpid(), *(children if first else ()), flush=True)
            raise SystemExit(7 if first else 0)
            """))
        for _ in range(5):  # The round may end before the agent has heard of the forks.
            run = self.hlaunch("--max-restarts", 1, script)
            self.assert_done([run], jobs.OK, 60)
            waited = re.search(r"MADE 1 \d+ (.*)", run.out)[1].split()
            if all(pid in waited for pid in re.findall(r"MADE 0 (\d+)", run.out)):
                return
        self.fail(str(run))

    def test_no_forks_wait_where_no_round_follows(self):
        script = self.write("looks.py", """
            import os, time, preloaded
            time.sleep(3.5)
            with open(f"/proc/{os.getppid()}/task/{os.getppid()}/children") as file:
                print("CHILDREN", len(file.read().split()), flush=True)
            """)
        run = self.hlaunch(script)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(re.findall(r"CHILDREN (\d+)", run.out), ["3", "3"], str(run))

    def test_a_package_that_was_upgraded_while_forks_wait_is_imported_anew(self):
        script = self.write("upgrades.py", textwrap.dedent(self.WAITS) + textwrap.dedent(f"""
            print("MADE", preloaded.PID != os.getpid(), getattr(preloaded, "NEW", 0), flush=True)
            if first:
                with open({self.modules_at + "/preloaded.py"!r}, "a") as file:
                    file.write("NEW = 1\\n")
                raise SystemExit(7)
            """))
        run = self.hlaunch("--max-restarts", 1, script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(re.findall(r"MADE (\w+) (\d)", run.out), [("True", "0"), ("True", "1")],
                         str(run))

    def test_a_fork_that_was_killed_while_it_waited_is_replaced(self):
        script = self.write("kills.py", textwrap.dedent(self.WAITS) + textwrap.dedent("""
            print("MADE", int(first), preloaded.PID != os.getpid(), flush=True)
            if first:
                os.kill(int(children[-1]), 9)
                raise SystemExit(7)
            """))
        run = self.hlaunch("--max-restarts", 1, script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(re.findall(r"MADE (\d \w+)", run.out), ["1 True", "0 True"], str(run))

    def test_many_rounds_leave_nothing_behind(self):
        rounds = 1000 if os.environ.get("HLAUNCH_AT_LENGTH") else 20
        script = self.write("grows.py", """
            import os, preloaded
            count, agent = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), os.getppid()
            def grown(pid):
                with open(f"/proc/{pid}/statm") as file:
                    return file.read().split()[1], len(os.listdir(f"/proc/{pid}/fd"))
            with open(f"/proc/{agent}/task/{agent}/children") as file:
                children = len(file.read().split())
            print("SEEN", count, preloaded.PID != os.getpid(), len(os.listdir("/proc/self/fd")),
                  children, *grown(agent), *grown(preloaded.PID), flush=True)
            raise SystemExit(7 if count < ROUNDS else 0)
            """.replace("ROUNDS", str(rounds)))
        run = self.hlaunch("--max-restarts", rounds, script)
        self.assert_done([run], jobs.OK, 60 + rounds)
        # The first rank that fails ends the other one, perhaps within its line.
        seen = [line.split() for line in re.findall(r"SEEN ((?:\S+ ){7}\d+)$", run.out, re.MULTILINE)]
        self.assertEqual({int(count) for count, *_ in seen}, set(range(rounds + 1)), str(run)[:2000])
        self.assertEqual({forked for _, forked, *_ in seen}, {"True"}, str(run)[:2000])
        early, late = ([list(map(int, line[2:])) for line in seen if first <= int(line[0]) <= last]
                       for first, last in ((2, 5), (rounds * 3 // 4, rounds)))
        # A rank's descriptors; the agent's children, pages and descriptors; the server's. The least
        # of each counts: what is open or waits for a moment only is no leak.
        for column, more in enumerate((0, 2, 500, 4, 100, 0)):
            self.assertLessEqual(min(line[column] for line in late),
                                 min(line[column] for line in early) + more, column)


class Endings(Preloading):
    def test_codes_and_tracebacks_are_those_of_the_script(self):
        script = self.write("raises.py", "import preloaded\nraise KeyError('x')\n")
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], 1, 60)
        self.assertRegex(run.err, r'Traceback \(most recent call last\):\n.*File ".*raises.py", '
                                  r"line 2, in <module>\n")
        self.assertNotIn("fork_server", run.err)

    def test_a_signal_that_ends_a_rank_is_told(self):
        script = self.write("dies.py", "import os, preloaded\nos.kill(os.getpid(), 9)\n")
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], jobs.KILLED, 60)

    def test_what_a_rank_does_at_exit_is_done(self):
        script = self.write("ends.py", """
            import atexit, threading, time, preloaded
            atexit.register(print, "at exit")
            threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
            """)
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(run.out, "thread\nat exit\n", str(run))

    def test_a_job_that_is_stopped_while_modules_are_imported_ends(self):
        self.modules("import time\ntime.sleep(600)\n")
        run = self.hlaunch(WORKER, "-v")
        lab.poll(lambda: len(run.descendants()) > 2, 10)
        run.signal(signal.SIGTERM)
        self.assert_done([run], 128 + signal.SIGTERM, 20)


class Accidents(Preloading):
    """In none of these cases a job fails."""

    def starts_normally(self, module, says, nproc=2):
        self.modules(module)
        run = self.hlaunch(WORKER, nproc=nproc)
        self.assert_done([run], jobs.OK, 100)
        self.assertEqual(self.forked(run), [False] * nproc, str(run))
        self.assert_said(run, says)
        return run

    def test_a_module_starts_a_thread(self):
        self.starts_normally(MODULE + "import threading, time\nthreading.Thread(target=time.sleep, "
                                      "args=(60,), daemon=True).start()\n", "it starts threads")

    def test_a_module_ends_its_threads_before_a_fork(self):
        """As OpenBLAS does, which starts them again in a rank that multiplies."""
        self.modules(MODULE + textwrap.dedent("""
            import threading
            over = threading.Event()
            thread = threading.Thread(target=over.wait, daemon=True)
            thread.start()
            os.register_at_fork(before=lambda: (over.set(), thread.join()))
            """))
        run = self.hlaunch(WORKER)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))

    def test_a_module_reads_the_rank(self):
        self.starts_normally(MODULE + "RANK = os.environ.get('LOCAL_RANK')\n",
                             "preloaded reads LOCAL_RANK")

    def test_a_module_leaves_a_descriptor_open(self):
        self.starts_normally(MODULE + "LEFT = open('/dev/full', 'w')\n", "it leaves /dev/full open")

    def test_a_module_holds_a_file_that_it_reads(self):
        """All ranks would read on from one place."""
        self.starts_normally(MODULE + "HELD = open(__file__)\n", r"it leaves \S+preloaded.py open")

    def test_a_module_reads_all_variables(self):
        for reads in ("dict(os.environ)", "os.environ.copy()", "list(os.environ.items())"):
            with self.subTest(reads):
                self.starts_normally(MODULE + f"SEEN = {reads}\n", "preloaded reads all variables")

    def test_a_module_has_random_numbers_of_its_own(self):
        for makes in ("random.Random()", "numpy.random.default_rng()", "numpy.random.RandomState()"):
            with self.subTest(makes):
                self.starts_normally(MODULE + f"import {makes.split('.')[0]}\nOWN = {makes}\n",
                                     r"preloaded.OWN would give all ranks the same random numbers")

    def test_a_module_has_a_temporary_folder(self):
        self.starts_normally(MODULE + "import tempfile\nHELD = tempfile.TemporaryDirectory()\n",
                             "the first rank to end would remove its temporary folder")

    def test_a_module_changes_what_a_fork_does_not_keep(self):
        for does, says in (("os.chdir('/')", "it changes the working directory"),
                           ("sys.path.insert(0, '/added')", "it puts folders before the script's"),
                           ("signal.alarm(1000)", "it sets a timer")):
            with self.subTest(does):
                self.starts_normally(MODULE + f"import signal, sys\n{does}\n", says)

    def test_a_module_changes_variables(self):
        self.modules(MODULE + "os.environ.update(NEW='1', CHANGED='2')\nos.environ.pop('GONE')\n")
        script = self.write("sees.py", """
            import os, preloaded
            print("MADE", preloaded.PID != os.getpid(), *map(os.environ.get, ("NEW", "CHANGED", "GONE")))
            """)
        run = self.hlaunch(script, nproc=1, env={"CHANGED": "1", "GONE": "1"})
        self.assert_done([run], jobs.OK, 60)
        self.assertIn("MADE True 1 2 None", run.out, str(run))

    def test_a_module_sees_the_scripts_file(self):
        self.modules(MODULE + "import __main__\nSEEN = __main__.__file__\n")
        script = self.write("sees.py", """
            import os, preloaded
            print("MADE", preloaded.PID != os.getpid(), preloaded.SEEN == __file__, flush=True)
            """)
        run = self.hlaunch(script, nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertIn("MADE True True", run.out, str(run))

    def test_a_module_ends_python_where_no_rank_is(self):
        self.starts_normally(MODULE + "import sys\n'RANK' in dict(os.environ) or os._exit(3)\n",
                             "it ends Python")

    def test_a_module_prints(self):
        self.modules(MODULE + "print('from the module')\n")
        run = self.hlaunch(WORKER)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))
        self.assertEqual(run.out.count("from the module"), 2, str(run))

    def test_the_server_is_killed_between_two_rounds(self):
        self.is_lost(signal.SIGKILL)

    def test_the_server_is_stopped_between_two_rounds(self):
        self.is_lost(signal.SIGSTOP)

    def is_lost(self, number):
        script = self.write("waits.py", """
            import os, sys, time, preloaded
            print("MADE", preloaded.PID != os.getpid(), preloaded.PID, flush=True)
            first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
            while first and not os.path.exists("go"):
                time.sleep(0.05)
            sys.exit(7 if first else 0)
            """)
        run = self.hlaunch("--max-restarts", 1, script, nproc=1)
        run.wait_for("MADE True", 20)
        server = int(re.search(r"MADE True (\d+)", run.out)[1])
        for pid in run.descendants():
            if lab.namespace_pid(pid) == server:
                os.kill(pid, number)
        self.write("go", "")
        self.assert_done([run], jobs.OK, 120)
        self.assertEqual(len(re.findall("MADE", run.out)), 2, str(run))
        self.assert_said(run, "fork server: it (has ended|does not answer)")


    def test_a_rank_dies_while_others_are_forked(self):
        script = self.write("dies.py", """
            import os, preloaded
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["RANK"] == "0":
                os.kill(os.getpid(), 9)
            print("MADE", preloaded.PID != os.getpid(), flush=True)
            """)
        run = self.hlaunch("--max-restarts", 1, script, nproc=12)
        self.assert_done([run], jobs.OK, 60)
        self.assertGreaterEqual(run.out.count("MADE True"), 12, str(run))
        self.assertNotIn("MADE False", run.out)

    def test_a_module_cannot_be_imported_and_the_others_are(self):
        run = self.hlaunch(WORKER, preload="no_such_module,preloaded")
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))
        self.assert_said(run, "ranks import no_such_module themselves: .*No module named")


class ShortOfMemory(Preloading):
    def setUp(self):
        try:
            self.group = memory_group.MemoryGroup(256 << 20)
        except OSError as error:
            self.skipTest(f"no memory cgroup can be made here: {error}")
        self.addCleanup(self.group.close)
        super().setUp()

    def test_a_module_that_takes_more_than_there_is_is_left_to_the_ranks(self):
        self.modules(MODULE + "'RANK' in dict(os.environ) or bytearray(b'x') * (600 << 20)\n")
        run = self.nodes[0].start(
            *self.group.within(lab.HLAUNCH, "--nproc-per-node", 2, "--preload", "preloaded", WORKER),
            env={"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": self.modules_at})
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [False, False], str(run))
        self.assert_said(run, "it ends Python while it is imported")

    def test_a_server_that_the_kernel_kills_costs_no_rank(self):
        """It grows while the ranks run, as one does whose modules were written to."""
        script = self.write("grows.py", """
            import os, signal, time, preloaded
            print("MADE", preloaded.PID != os.getpid(), flush=True)
            if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                with open(f"/proc/{preloaded.PID}/oom_score_adj", "w") as file:
                    file.write("1000")
                taken = bytearray(b"x") * (300 << 20)
                while os.path.exists(f"/proc/{preloaded.PID}"):
                    time.sleep(0.05)
                raise SystemExit(7)
            """)
        run = self.nodes[0].start(
            *self.group.within(lab.HLAUNCH, "--nproc-per-node", 1, "--max-restarts", 2, "--preload",
                               "preloaded", script),
            env={"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": self.modules_at})
        self.assert_done([run], jobs.OK, 100)
        self.assertEqual(re.findall(r"MADE (\w+)", run.out)[0], "True", str(run))
        self.assert_said(run, "fork server: it has ended")


class Placed(Preloading):
    def test_each_rank_runs_on_its_own_cpus(self):
        run = self.hlaunch("--bind", "core", WORKER)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))
        cpus = [fact["cpus"] for fact in self.facts(run)]
        self.assertFalse(set(cpus[0]) & set(cpus[1]), cpus)

    def test_numpys_generator_differs_between_ranks(self):
        script = self.write("draws.py", """
            import os, random
            import numpy
            print("DRAWN", numpy.random.random(), random.random(), flush=True)
            """)
        run = self.hlaunch(script, preload="numpy", nproc=3)
        self.assert_done([run], jobs.OK, 60)
        drawn = re.findall(r"DRAWN (\S+) (\S+)", run.out)
        self.assertEqual(len({one for one, _ in drawn}), 3, str(run))
        self.assertEqual(len({other for _, other in drawn}), 3, str(run))

    def test_a_program_of_other_ranks_starts_as_ever(self):
        run = self.hlaunch("--also", "-n 1 sh -c 'echo other'", WORKER)
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True], str(run))
        self.assertIn("other", run.out)


class OnTwoNodes(Preloading):
    count = 2

    def test_each_node_has_its_own(self):
        runs = self.start("--preload", "preloaded", WORKER, options=["--nproc-per-node", 2],
                          env={"PYTHONPATH": self.modules_at})
        self.assert_done(runs, jobs.OK, 60)
        for run in runs:
            self.assertEqual(self.forked(run), [True, True], self.told(runs))


class OnHosts(hosts_test.SshTest):
    count = 2

    def test_each_host_has_its_own(self):
        folder = self.nodes[0].folder / "modules"
        folder.mkdir()
        (folder / "preloaded.py").write_text(MODULE, encoding="utf-8")
        run = self.launch("--nproc-per-node", 2, "--preload", "preloaded", WORKER,
                          env={"PYTHONPATH": folder})
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(re.findall(r'"forked": (\w+)', run.out), ["true"] * 4, str(run))


class Words(Preloading):
    def test_programs_that_are_not_python_start_as_ever(self):
        run = self.hlaunch("--no-python", "sh", "-c", "echo $RANK")
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, "nothing is preloaded: the ranks' program is not Python itself")

    def test_the_variable_and_the_configuration_say_it_too(self):
        run = self.hlaunch(WORKER, preload=None, env={"HLAUNCH_PRELOAD": "preloaded"})
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))

    def test_the_name_torchrun_takes_it_too(self):
        run = self.nodes[0].start(lab.BIN / "torchrun", "--nproc-per-node", 2, "--preload",
                                  "preloaded", WORKER, env={"PYTHON_EXEC": jobs.PYTHON,
                                                            "PYTHONPATH": self.modules_at})
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(self.forked(run), [True, True], str(run))

    def test_the_summary_says_what_a_preload_has_saved(self):
        self.modules(MODULE + "import time\ntime.sleep(0.5)\n")
        script = self.write("fails.py", """
            import os, preloaded
            raise SystemExit(7 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)
            """)
        run = self.hlaunch("--max-restarts", 1, script)
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, r"the restart took \S+ s; --preload saved 4 ranks here \S+ s of imports")
        self.assertGreaterEqual(float(re.search(r"here (\S+) s of", run.err)[1]), 1.5, str(run))

    def test_a_dry_run_names_what_would_be_preloaded(self):
        self.write("modules/numpy.py", MODULE)
        script = self.write("imports.py", "import os, numpy, preloaded\n")
        run = self.hlaunch("--dry-run", script, preload="auto")
        self.assert_done([run], jobs.OK, 60)
        self.assertRegex(run.out, r"\npreload +numpy; not preloaded: auto does not know it")

    def test_auto_takes_what_the_script_imports_and_is_known(self):
        self.write("modules/numpy.py", MODULE)
        script = self.write("imports.py", """
            import os, sys
            import numpy, preloaded
            print("MADE", numpy.PID != os.getpid(), preloaded.PID != os.getpid(), flush=True)
            """)
        run = self.hlaunch(script, preload="auto", nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertIn("MADE True False", run.out, str(run))

    def test_auto_leaves_what_stands_behind_code_to_the_ranks(self):
        """That code may set what the module reads: variables, sys.path, a filter of warnings."""
        self.write("modules/numpy.py", MODULE + "SEEN = os.environ.get('SEEN')\n")
        self.write("boot.py", "import os\nos.environ['SEEN'] = 'yes'\n")
        for begins in ('os.environ["SEEN"] = "yes"', 'os.environ.update(SEEN="yes")', "import boot",
                       'for name in ("SEEN",):\n    os.environ[name] = "yes"',
                       'class Setup:\n    os.environ["SEEN"] = "yes"',
                       'def sets(_):\n    os.environ["SEEN"] = "yes"\n@sets\ndef unused():\n    pass'):
            with self.subTest(begins):
                script = self.write("sets.py", f"import os\n{begins}\nimport numpy\n"
                                    "print('MADE', numpy.PID != os.getpid(), numpy.SEEN)\n")
                run = self.hlaunch(script, preload="auto", nproc=1)
                self.assert_done([run], jobs.OK, 60)
                self.assertIn("MADE False yes", run.out, str(run))
                self.assert_said(run, "ranks import numpy themselves: the script runs other code")

    def test_auto_reads_on_behind_statements_that_do_nothing(self):
        self.write("modules/numpy.py", MODULE)
        script = self.write("names.py", """
            \"\"\"A script.\"\"\"
            from __future__ import annotations
            import os
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                import no_such_module
            LIMIT: int = 3
            NAMES = {"a": [LIMIT, -1], "b": f"{LIMIT}"}
            def helper(value=LIMIT):
                return os.environ.setdefault("A", value)
            class Helper(object):
                limit = LIMIT
                def act(self):
                    helper()
            try:
                import numpy
            except ImportError:
                raise SystemExit("no numpy")
            print("MADE", numpy.PID != os.getpid(), flush=True)
            """)
        run = self.hlaunch(script, preload="auto", nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assertIn("MADE True", run.out, str(run))


if __name__ == "__main__":
    lab.main()
