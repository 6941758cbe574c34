#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Scripts that do not know hlaunch: hlaunch can still find out what their ranks do."""

import contextlib
import json
import os
import pathlib
import re
import signal
import unittest

import jobs
import lab
import torch_test

WORKER = str(lab.WORKERS / "hang_worker.py")
SLOW_WORKER = str(lab.WORKERS / "slow_worker.py")


class WithTap(torch_test.WithTorch):
    wanted, python, count = "2.", staticmethod(torch_test.Torch2.python), 1

    def hlaunch(self, *words, env=None):
        return self.nodes[0].start(lab.HLAUNCH, *words,
                                   env={"PYTHON_EXEC": self.python(), **(env or {})})


class Tap(WithTap):
    def tapped(self, mode, env=None):
        run = self.hlaunch("--nproc-per-node", 2, WORKER, mode, env=env)
        self.assert_done([run], jobs.OK, 120)
        self.assertNotIn("WorkerServer", run.err, str(run))  # The server's first and last line.
        self.assertEqual(run.out.count(f"] {mode}: "), 2, str(run))
        return run.out.count(": tapped")

    def test_every_rank_opens_a_server_and_says_nothing_of_it(self):
        self.assertEqual(self.tapped("tap"), 2)

    def test_no_rank_keeps_the_old_name_that_nccl_would_warn_of(self):
        run = self.hlaunch("--nproc-per-node", 1, WORKER, "tap")
        self.assert_done([run], jobs.OK, 120)
        self.assertNotIn("will warn", run.out, str(run))

    def test_none_is_opened_where_the_user_wants_none_or_has_one(self):
        self.assertEqual(self.tapped("tap", {"HLAUNCH_TAP": "0"}), 0)
        self.assertEqual(self.tapped("tap", {"TORCH_WORKER_SERVER_SOCKET": "/x"}), 0)

    def test_jax_on_trainium_learns_its_place_and_all_cores(self):
        """A package of the name does: it is asked as it is imported."""
        clusters = pathlib.Path(self.nodes[0].folder, "packages/jax/_src/clusters")
        clusters.mkdir(parents=True)
        (clusters / "__init__.py").write_text("", encoding="utf-8")
        script = pathlib.Path(self.nodes[0].folder, "places.py")
        script.write_text("import os, jax._src.clusters\nprint('PLACE', os.environ['RANK'], *(os.environ.get("
                          "f'NEURON_PJRT_{name}') for name in ('PROCESS_INDEX', 'PROCESSES_NUM_DEVICES')))\n",
                          encoding="utf-8")
        def places(**env):
            run = self.hlaunch("--nproc-per-node", 2, script, env={
                "PYTHONPATH": clusters.parents[2], "NEURON_RT_ROOT_COMM_ID": "a:1", **env})
            self.assert_done([run], jobs.OK, 60)
            return sorted(re.findall("PLACE (.*)$", run.out, re.MULTILINE))
        self.assertEqual(places(NEURON_RT_VISIBLE_CORES="0-2,7"), ["0 0 4,4", "1 1 4,4"])
        self.assertEqual(places(NEURON_RT_NUM_CORES="2"), ["0 0 2,2", "1 1 2,2"])
        self.assertEqual(places(), ["0 None None", "1 None None"])
        self.assertEqual(places(NEURON_RT_NUM_CORES="2", NEURON_PJRT_PROCESS_INDEX="5"),
                         ["0 5 None", "1 5 None"])

    def test_an_import_works_where_no_server_can_be_opened(self):
        self.assertEqual(self.tapped("tap-is-lost"), 0)


class Hanging(WithTap):
    """Three ranks; the last one differs from the others."""

    def hangs(self, mode, *options, says):
        """Starts the worker and waits for these findings, which end the job as a failure."""
        # Half of the time-out is longer than any pause of a rank.
        runs = self.start(*options, WORKER, mode, env={"PYTHON_EXEC": self.python(), **self.env},
                          options=["--nproc-per-node", self.each, "--hang-timeout", 8,
                                   "--hang-action", "fail", "--shutdown-timeout", 1],
                          cwd=self.nodes[0].folder)
        for pattern in says:
            runs[0].wait_for(pattern, 60)
        self.assert_done(runs, (128 + signal.SIGKILL, 1, *jobs.OWN_CODES), 60)
        self.assertEqual(runs[0].err.count("no rank has gone on"), 1, str(runs[0]))
        return runs

    each, env = 3, {}

    def behind(self, mode, number, does):
        return self.hangs(mode, says=[
            rf"no rank has gone on for \d+ s. 2 of 3 ranks are in all_reduce number {number} of "
            r"default_pg \(\[4\] float32, 16 B\)",
            rf"rank 2 \(.*local rank {2 % self.each}, pid \d+\) has not come to it: it {does}"])


class Hangs(Hanging):
    """Hangs on one node."""

    def test_a_rank_that_sleeps_is_named_with_its_line(self):
        runs = self.behind("sleep", 4, r"stands in sleep \(hang_worker.py:\d+\)")
        self.assertRegex(self.told(runs), r"job failed: rank 2 .*hangs: it has not come to "
                                          r"all_reduce number 4 of default_pg for \d+ s: it stands")
        self.assertRegex(self.told(runs), "advice: see where it stands")

    def test_a_rank_that_holds_the_interpreter_is_named(self):
        self.behind("lock", 4, "holds the interpreter")

    def test_a_rank_that_was_stopped_is_named(self):
        self.behind("stop", 4, "is stopped")

    def test_a_data_loader_that_gives_nothing_is_named(self):
        self.behind("loader", 3, r"stands in loader \(hang_worker.py:\d+\)")

    def test_groups_that_are_used_in_different_orders_are_shown(self):
        self.hangs("crossed", says=["different orders", "ranks 0,1: in all_reduce number 1 of dp",
                                    "rank 2: in all_reduce number 1 of tp"])

    def test_ranks_that_call_different_collectives_are_shown(self):
        self.hangs("ops", says=["different collectives as number 2 of default_pg",
                                "rank 2: broadcast", "rank 2 .*differs from most"])

    def test_a_key_that_nobody_sets_is_told_of(self):
        self.hangs("key", says=["Ranks 0-2 wait for the master store, for keys that nobody has"])

    def test_a_rank_that_computes_with_the_interpreter_held_is_named_with_its_line(self):
        self.behind("regex", 4, r"holds the interpreter in regex \(hang_worker.py:\d+\)")

    def test_a_rank_that_is_missing_from_a_new_group_is_named(self):
        self.hangs("group", says=["Ranks 0,1 wait for the master store;",
                                  "rank 2 .*has not come to it: it stands in steps"])

    def test_a_rank_that_has_exited_is_named(self):
        self.behind("left", 4, "has exited with 0")

    def test_a_chain_of_groups_is_followed_to_its_end(self):
        runs = self.hangs("chain", says=["rank 2 .*has not come to it: it stands in chain"])
        self.assertNotIn("rank 1 (", runs[0].err.partition("no rank has gone on")[2]
                         .partition("job failed")[0], str(runs[0]))

    def test_ranks_that_receive_what_nobody_sends_are_told_of(self):
        self.hangs("receive", says=["Ranks 0-2 wait for other ranks, in send or recv, each for"])

    def test_a_rank_that_waits_for_a_message_it_has_asked_for_is_not_blamed(self):
        runs = self.hangs("later", says=[r"1 of 3 ranks is in all_reduce number 2 of",
                                         r"rank 2 \(.* has not come to it: it stands in later"])
        self.assertNotRegex(runs[0].err, r"rank 0 \(.* has not come to it")

    def test_a_rank_that_is_left_when_the_others_have_exited_is_named(self):
        runs = self.hangs("alone", says=[
            r"Ranks 0,1 have exited with 0;\n  rank 2 \(.* has not: it stands in alone \(hang_"])
        self.assertRegex(self.told(runs), "job failed: rank 2 .*hangs: the other ranks have exited")

    def test_a_rank_that_does_not_come_to_its_import_of_torch_is_named(self):
        self.hangs("import", says=["Ranks 0,1 wait for the master store;",
                                   "rank 2 .*has not come to it: it sleeps"])


class HangsOnDevices(jobs.JobTest):
    """As with NCCL, a call returns before it is done, and a device does it later. The worker plays
    torch's control server, so no torch and no GPU is needed."""

    worker = str(lab.WORKERS / "device_worker.py")

    def hangs(self, mode, *says):
        run = self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 8,
                                  "--hang-action", "fail", "--shutdown-timeout", 1, self.worker,
                                  mode, cwd=self.nodes[0].folder)
        for pattern in says:
            run.wait_for(pattern, 60)
        self.assert_done([run], (128 + signal.SIGKILL,), 60)
        self.assertEqual(run.err.count("no rank has gone on"), 1, str(run))

    def test_a_rank_that_sleeps_is_named_though_the_others_have_run_ahead(self):
        self.hangs("sleep", r"The devices of 2 of 3 ranks are in all_reduce number 4 of default_pg "
                            r"\(\[4\] float32, 16 B\)",
                   r"rank 2 \(.*\) has not come to it: it stands in idle_rank \(device_worker.py:")

    def test_the_first_call_that_differs_is_shown(self):
        self.hangs("op", "different collectives as number 4 of default_pg",
                   "ranks 0,1: all_reduce", "rank 2: broadcast", "rank 2 .*differs from most")

    def test_groups_that_are_used_in_different_orders_are_shown(self):
        self.hangs("crossed", "different orders", "ranks 0,1: in all_reduce number 1 of tp",
                   "rank 2: in all_reduce number 1 of dp", "rank 2 .* it waits for its device|"
                   "rank 2 .* waits for its device")

    def test_a_rank_that_left_its_device_waiting_is_named(self):
        self.hangs("elsewhere", "are in all_reduce number 1 of dp",
                   r"rank 2 \(.*\) has not come to it: it stands in idle_rank")

    def test_the_device_on_which_a_call_does_not_end_is_named(self):
        self.hangs("device", "All 3 ranks have called all_reduce number 4 of default_pg .* has "
                             "ended on 2 of their devices",
                   r"rank 2 \(.*\) waits for its device in synchronize \(played_device.py:")

    def test_a_rank_whose_message_is_missing_is_named(self):
        self.hangs("receive", "The devices of ranks 0,1 wait for other ranks, in send or recv;",
                   "rank 1: in recv from rank 2, which has called no send to it",
                   r"rank 2 \(.*\) does not: it stands in idle_rank \(device_worker.py:")

    def test_a_rank_that_takes_longer_in_each_step_is_named(self):
        run = self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 4,
                                  self.worker, "slow", cwd=self.nodes[0].folder)
        run.wait_for(r"rank 2 \(.*\) holds up 2 other ranks, which lose \d+ % of their time.*"
                     r"; it was most often in slow_steps \(device_worker.py:1\)", 120)
        (self.nodes[0].folder / "end").touch()
        self.assert_done([run], jobs.OK, 60)

    def test_exchanges_that_are_over_are_no_hang(self):
        run = self.nodes[0].run(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 2,
                                self.worker, "exchanges", cwd=self.nodes[0].folder)
        self.assertEqual(run.code, 0, str(run))
        self.assertNotIn("has gone on", run.err)


class HangsOnDevicesOfHosts(jobs.JobTest):
    """Three hosts with one rank each. The worker needs no torch and no GPU."""

    count = 3

    def hangs(self, mode, *says, strike=lambda runs: None):
        runs = self.start(HangsOnDevices.worker, mode, cwd=self.nodes[0].folder,
                          options=["--nproc-per-node", 1, "--hang-timeout", 8])
        strike(runs)
        for run in runs[:2]:
            for pattern in says:
                run.wait_for(pattern, 60)
        return runs

    def end(self, runs):
        for run in runs:
            with contextlib.suppress(AssertionError):  # The end of the first may have ended it.
                run.signal(signal.SIGTERM)
        self.assert_done(runs, (128 + signal.SIGTERM, *jobs.OWN_CODES), 60)

    def test_a_part_that_hangs_is_explained_while_another_goes_on(self):
        runs = self.hangs("part", "The device of 1 of 2 ranks is in all_reduce number 1 of dp",
                          r"rank 1 \(node1, .*\) has not come to it: it stands in idle_rank",
                          "no rank of node rank 2 is known to stand still")
        self.assertNotIn("has gone on", runs[2].err)
        self.end(runs)

    def test_a_node_that_does_not_answer_does_not_hide_what_others_do(self):
        def strike(runs):
            self.assertTrue(lab.poll(lambda: len(list(self.nodes[0].folder.glob("*.2.2.*"))),
                                     60), self.told(runs))
            os.kill(jobs.agent_of(runs[2]), signal.SIGSTOP)
        runs = self.hangs("part", r"rank 1 \(node1, .*\) has not come to it: it stands in idle_rank",
                          strike=strike)
        os.kill(jobs.agent_of(runs[2]), signal.SIGCONT)
        self.end(runs)


class HangsOfHlaunch(Hanging):
    """With hlaunch's own backend, whose calls torch's flight recorder does not have."""

    env = {"BACKEND": "hlaunch", "PYTHONPATH": str(lab.BIN.parent / "python")}

    def test_a_rank_that_sleeps_is_named_with_its_line(self):
        self.behind("sleep", 4, r"stands in sleep \(hang_worker.py:\d+\)")

    def test_a_rank_that_holds_the_interpreter_is_named(self):
        self.behind("lock", 4, "holds the interpreter")

    def test_groups_that_are_used_in_different_orders_are_shown(self):
        self.hangs("crossed", says=["different orders", "ranks 0,1: in all_reduce number 1 of dp",
                                    "rank 2: in all_reduce number 1 of tp"])

    def test_the_rank_that_does_not_send_is_named(self):
        self.hangs("message", says=[
            "rank 1: in recv from rank 2, which has called no send to it",
            r"rank 2 \(.*\) does not: it stands in message \(hang_worker.py:\d+\)"])

    def test_ranks_that_receive_what_nobody_sends_are_told_of(self):
        self.hangs("receive", says=["Ranks 0-2 wait for other ranks, in send or recv, each for"])


class HangsAgain(WithTap):
    def test_a_hang_after_a_restart_is_found_as_well(self):
        run = self.hlaunch("--nproc-per-node", 2, "--hang-timeout", 8, "--hang-action", "fail",
                           "--max-restarts", 1, "--shutdown-timeout", 1, WORKER, "sleep")
        self.assert_done([run], (128 + signal.SIGKILL,), 120)
        self.assertEqual(run.err.count("has not come to it: it stands in sleep ("), 2,
                         str(run))


class HangsOnHosts(Hanging):
    """Each rank runs on its own host. The bench of hangs has the other cases."""

    count, each = 3, 1

    def test_a_rank_that_was_stopped_is_named(self):
        self.behind("stop", 4, "is stopped")

    def test_a_rank_that_has_exited_is_named(self):
        self.behind("left", 4, "has exited with 0")

    def test_groups_that_are_used_in_different_orders_are_shown(self):
        self.hangs("crossed", says=["different orders", "ranks 0,1: in all_reduce number 1 of dp",
                                    "rank 2: in all_reduce number 1 of tp"])

    def test_a_worker_may_hold_the_store(self):
        self.hangs("sleep", "--master-store", "worker", says=[
            r"rank 2 \(node2, local rank 0, pid \d+\) has not come to it: it stands in sleep"])

    def test_two_hosts_that_do_not_reach_each_other_are_named(self):
        (self.nodes[0].folder / "go").touch()
        runs = self.start(WORKER, "late", env={"PYTHON_EXEC": self.python()},
                          options=["--nproc-per-node", 1, "--hang-timeout", 8,
                                   "--health-interval", 0, "--shutdown-timeout", 1],
                          cwd=self.nodes[0].folder)
        self.assertTrue(lab.poll(lambda: (self.nodes[0].folder / "steps").exists(), 60),
                        self.told(runs))
        for address in (self.nodes[2].ip, self.nodes[2].ip6):
            broken = self.nodes[1].run("ip", "neigh", "replace", address, "lladdr",
                                       "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
            self.assertEqual(broken.code, 0, str(broken))
        for run in runs:
            run.wait_for(r"node(1 \(\S+\) acknowledges nothing that node2|"
                         r"2 \(\S+\) acknowledges nothing that node1) sends to it \(rank [12]\)", 60)
            run.signal(signal.SIGTERM)
        self.assert_done(runs, (128 + signal.SIGTERM, *jobs.OWN_CODES), 60)

    def test_a_rank_that_takes_longer_in_each_step_is_named(self):
        runs = self.start(SLOW_WORKER, "slow", env={"PYTHON_EXEC": self.python()},
                          options=["--nproc-per-node", 1, "--hang-timeout", 4],
                          cwd=self.nodes[0].folder)
        runs[0].wait_for(r"rank 2 \(node2, local rank 0, pid \d+\) holds up 2 other ranks, which lose "
                         r"\d+ % of their time", 180)
        (self.nodes[0].folder / "end").touch()
        self.assert_done(runs, jobs.OK, 60)

    def test_all_nodes_say_what_node_rank_0_has_found(self):
        runs = self.start(WORKER, "late", env={"PYTHON_EXEC": self.python()},
                          options=["--nproc-per-node", 1, "--hang-timeout", 4],
                          cwd=self.nodes[0].folder)
        for run in runs:
            run.wait_for(r"no rank has gone on for \d+ s. 2 of 3 ranks are in", 60)
            run.wait_for(r"rank 2 \(node2, local rank 0, pid \d+\) has not come to it", 60)
        (self.nodes[0].folder / "go").touch()
        runs[0].wait_for(r"the ranks go on after \d+ s", 60)
        (self.nodes[0].folder / "end").touch()
        self.assert_done(runs, jobs.OK, 60)


class NoHang(WithTap):
    def job(self, mode, *options):
        run = self.hlaunch("--nproc-per-node", 2, *options, WORKER, mode)
        self.assert_done([run], jobs.OK, 120)
        self.assertNotIn("has gone on", run.err)

    def test_steps_that_take_long_are_no_hang(self):
        self.job("slow", "--hang-timeout", 60)

    def test_nobody_looks_where_that_is_switched_off(self):
        self.job("slow", "--hang-timeout", "off")

    def test_a_time_out_of_the_frameworks_own_is_explained(self):
        run = self.hlaunch("--nproc-per-node", 2, "--hang-timeout", 80, "--shutdown-timeout", 1,
                           WORKER, "times_out")
        self.assertNotEqual(run.wait(120), jobs.OK, str(run))
        # The other rank may be seen as it writes its traceback.
        self.assert_said(run, r"before that, (no rank has|a part of the job has not) gone on for \d+ s. "
                              "1 of 2 ranks is in all_reduce number 1 of short")
        self.assertRegex(run.err, "rank 1 .* has not come to it: it (stands|sleeps)", str(run))

    def test_a_rank_that_writes_is_seen_to_work(self):
        node = self.nodes[0]
        run = node.start(lab.HLAUNCH, "--nproc-per-node", 2, "--hang-timeout", 16, WORKER, "writes",
                         cwd=node.folder, env={"PYTHON_EXEC": self.python()})
        run.wait_for("rank 1 .* has not come to it: it computes, reads or writes in writes", 60)
        (node.folder / "go").touch()
        self.assert_done([run], jobs.OK, 60)

    def test_small_messages_alone_are_progress(self):
        node = self.nodes[0]
        run = node.start(lab.HLAUNCH, "--nproc-per-node", 3, "--hang-timeout", 6, WORKER, "ring",
                         cwd=node.folder, env={"PYTHON_EXEC": self.python()})
        self.assert_done([run], jobs.OK, 60)
        self.assertNotIn("has gone on", run.err, str(run))

    def test_a_rank_that_was_only_late_may_go_on(self):
        node = self.nodes[0]
        run = node.start(lab.HLAUNCH, "--nproc-per-node", 2, "--hang-timeout", 2, WORKER, "late",
                         cwd=node.folder, env={"PYTHON_EXEC": self.python()})
        run.wait_for("rank 1 .* has not come to it: it (stands|computes, reads or writes) in late", 60)
        (node.folder / "go").touch()
        run.wait_for(r"the ranks go on after \d+ s", 60)
        (node.folder / "end").touch()
        self.assert_done([run], jobs.OK, 60)


AT_LENGTH = unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")


class SlowRanks(WithTap):
    """Four ranks in steps of 0.3 s. Looks are half a second apart here."""

    def job(self, mode, **env):
        node = self.nodes[0]
        return node.start(lab.HLAUNCH, "--nproc-per-node", 4, "--hang-timeout", 4, "--log-dir", "logs",
                          SLOW_WORKER, mode, cwd=node.folder,
                          env={"PYTHON_EXEC": self.python(), **env})

    def end(self, run):
        (self.nodes[0].folder / "end").touch()
        self.assert_done([run], jobs.OK, 60)

    def is_named(self, mode, **env):
        run = self.job(mode, **env)
        run.wait_for(r"rank 2 \(.*local rank 2, pid \d+\) holds up 3 other ranks, which lose \d+ % of "
                     r"their time. .*it was most often in load \(slow_worker.py:\d+\)", 120)
        self.end(run)
        self.assertEqual(run.err.count("holds up"), 1, str(run))
        self.assert_said(run, r"time lost: .*waiting for the slowest rank \d+")
        (log,) = self.nodes[0].folder.glob("logs/**/events.jsonl")
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        (slow,) = [event for event in events if event["event"] == "slow_ranks"]
        self.assertEqual(slow["ranks"], [2])
        self.assertGreater([event for event in events if event["event"] == "time_lost"][-1]
                           ["waiting_seconds"], 1)

    def nobody_is_named(self, mode):
        run = self.job(mode)
        run.wait_for("MANY STEPS", 300)
        self.end(run)
        self.assertNotIn("holds up", run.err)
        return run

    def test_a_rank_that_takes_longer_in_each_step_is_named(self):
        self.is_named("slow")

    def test_a_rank_for_which_the_others_wait_in_backward_is_named(self):
        self.is_named("backward")

    @AT_LENGTH
    def test_a_rank_is_named_with_collectives_of_hlaunch(self):
        self.is_named("slow", **HangsOfHlaunch.env)

    @AT_LENGTH
    def test_equal_ranks_are_not_named(self):
        self.nobody_is_named("equal")

    def test_ranks_that_are_late_in_turns_are_not_named(self):
        self.nobody_is_named("turns")

    def test_a_checkpoint_in_each_step_is_no_slow_rank(self):
        run = self.nobody_is_named("saves")
        self.assert_said(run, r"time lost: .*checkpoints \d+")


class Asking(WithTap):
    """Users ask what the ranks of job "a" do."""

    each, token = 2, lab.TOKEN
    nnodes = None  # None stands for the number of nodes.

    def job(self, *words, options=()):
        words = words or (jobs.WORKER, "env", "sleep", 600)
        meet = ["--nnodes", self.nnodes or self.count, "--rdzv-endpoint", self.endpoint]
        self.runs = [node.start(lab.HLAUNCH, *meet, "--rdzv-id", "a", "--nproc-per-node", self.each,
                                "--shutdown-timeout", 1, *options, *words, cwd=self.nodes[0].folder,
                                env={"PYTHON_EXEC": self.python(), **self.secret()})
                     for node in self.nodes]

    def secret(self):
        return {"HLAUNCH_TOKEN": self.token} if self.token else {}

    def ask(self, word, *words, job="a", node=-1, code=0, env=None):
        """Asks from the last node, since the rendezvous is on the first one."""
        words = [*words, *([] if "--timeout" in words else ["--timeout", 60])]
        run = self.nodes[node].run(lab.HLAUNCH, word, job, "--rdzv-endpoint", self.endpoint, *words,
                                   env=self.secret() if env is None else env)
        if code is not None:
            self.assertEqual(run.code, code, self.told([run, *self.runs]))
        return run

    def await_said(self, *words, patterns, node=-1):
        """The first output of these words that all patterns match: the rendezvous may come up
        later, and what a rank does is not told if it did not answer in time."""
        said = []
        def match():
            said.append(self.ask(*words, node=node, code=None))
            return said[-1].code == 0 and all(re.search(pattern, said[-1].out, re.MULTILINE)
                                              for pattern in patterns)
        self.assertTrue(lab.poll(match, 60), self.told([said[-1], *self.runs]))
        return said[-1].out

    def await_why(self, *patterns):
        return self.await_said("why", patterns=patterns)

    def end(self):
        for run in self.runs:
            with contextlib.suppress(AssertionError):  # The end of the first may have ended it.
                run.signal(signal.SIGTERM)
        self.assert_done(self.runs, (128 + signal.SIGTERM, *jobs.OWN_CODES), 30)


class Why(Asking):
    """Two hosts with two ranks each."""

    count = 2

    def test_a_rank_that_is_missing_is_named_with_everybody_else(self):
        self.job(WORKER, "sleep")
        where = r"all_reduce number 4 of default_pg \(\[4\] float32, 16 B\)"
        self.await_why(r"job a, round 1: 4 workers\nno rank has called a collective for 1 s. "
                       rf"3 of 4 ranks are in {where};\n"
                       r"  rank 3 \(node1, local rank 1, pid \d+\) has not come to it: "
                       r"it stands in sleep \(hang_worker.py:\d+\)\n",
                       r"^rank 3 \(node1\): stands in sleep \(hang_worker.py:\d+\)$",
                       rf"^ranks 0-2 \(node0, node1\): each is in {where}, in steps")
        facts = json.loads(self.await_said("why", "--json", patterns=[r'"culprits": \[\s*3\s*\]']))
        self.assertEqual((facts["verdict"]["kind"], facts["verdict"]["culprits"]), ("behind", [3]))
        self.assertEqual([rank["host"] for rank in facts["ranks"]],
                         ["node0", "node0", "node1", "node1"])
        self.stacks()
        self.refusals()
        self.stands_still()
        self.end()

    def stacks(self):
        patterns = (r"\nrank 3 \(node1\):\n  sleep \(\S*hang_worker.py:\d+\)\n",
                    r"\nranks 0-2 \(node0, node1\):\n(  .*\n)*  steps \(\S*hang_worker")
        self.assertEqual(*[self.await_said("stacks", patterns=patterns, node=node).count(
            "hang_worker.py") for node in (1, 0)])
        facts = json.loads(self.await_said("stacks", "--rank", 3, "--json",
                                           patterns=[r'"frames": \[\s*"sleep ']))
        self.assertEqual([stack["ranks"] for stack in facts["stacks"]], [[3]])
        native = self.ask("stacks", "--rank", 3, "--native", "--json").out
        self.assertEqual([stack["ranks"] for stack in json.loads(native)["stacks"]], [[3]])

    def refusals(self):
        self.assert_said(self.ask("why", job="b", code=jobs.REFUSED), "there is no job 'b' here")
        for word in ("why", "stacks"):
            self.ask(word, code=jobs.REFUSED, env={"HLAUNCH_TOKEN": lab.OTHER_TOKEN})
            self.ask(word, code=jobs.REFUSED, env={})
        self.assert_said(self.ask("stacks", "--rank", 4, code=jobs.USAGE),
                         "--rank 4: round 1 has 4 ranks, from 0 on")

    def stands_still(self):
        """`why` names an agent that stands still, and the others still answer."""
        agent = jobs.agent_of(self.runs[1])
        said = []
        def others_answer():
            os.kill(agent, signal.SIGSTOP)
            said.append(self.ask("why", "--timeout", 6, node=0).out)
            os.kill(agent, signal.SIGCONT)
            self.assertRegex(said[-1], r"(?m)^node1 \(ranks 2,3\) has not answered for 6 s$")
            return re.search(r"(?m)^ranks 0,1 \(node0\): each is in all_reduce", said[-1])
        # Between two stops the agent has the time to tell the rendezvous that it lives.
        self.assertTrue(lab.poll(others_answer, 60, step=2), said[-1])

    def test_all_is_well(self):
        self.job(WORKER, "late")
        (self.nodes[0].folder / "go").touch()
        self.await_why(r"^all 4 ranks go on; default_pg is at all_reduce number \d+")
        (self.nodes[0].folder / "end").touch()
        self.assert_done(self.runs, jobs.OK, 60)


class WhyWithoutTorch(Asking):
    """Without a token, too: anyone may ask where ranks are, but only few may see code."""

    count, token = 2, None

    def test_stacks_are_for_the_rendezvous_own_host(self):
        self.job()
        said = self.await_why("^ranks 0-3 .*: each sleeps$")
        self.assertRegex(said, r"^job a, round 1: 4 workers\n")
        self.assert_said(self.ask("stacks", code=jobs.REFUSED), "stacks show code, and this")
        self.assertIn("job a, round 1: 4 workers", self.ask("stacks", node=0).out)
        self.end()

    def test_a_job_that_waits_for_nodes_says_so(self):
        self.nnodes = 3
        self.job()
        self.runs[0].wait_for(r"waiting \d+ s for 1 of 3 nodes")
        self.assertRegex(self.ask("why").out, "^job a: no worker runs: waiting for 1 of 3 nodes")
        self.end()


class WhyOnOneHost(Asking):
    """The agent runs in the same process as the rendezvous."""

    count = 1

    def test_a_rank_that_holds_the_interpreter_is_named(self):
        self.nnodes = "1:2"
        self.job(WORKER, "lock", options=["--last-call", 1])
        said = self.await_why("rank 1 .* has not come to it: it holds the interpreter")
        self.assertRegex(said, r"(?m)^rank 1 \(node0\): holds the interpreter")
        self.assertRegex(self.ask("stacks", "--rank", 0).out,
                         r"\nrank 0 \(node0\):\n(  .*\n)*  steps ")
        self.end()

    def test_a_job_without_a_rendezvous_is_asked_through_its_socket(self):
        self.endpoint, self.nnodes = "localhost:0", 1
        self.job(WORKER, "lock")
        def asked(word, pattern):
            run = self.nodes[0].run(lab.HLAUNCH, word, "--timeout", 60, timeout=90)
            return run.code == 0 and re.search(pattern, run.out)
        self.assertTrue(lab.poll(lambda: asked("why", "rank 1 .* has not come to it: it holds the "
                                                      "interpreter"), 60), self.told(self.runs))
        self.assertTrue(asked("stacks", r"\nrank 0 \(node0\):\n(  .*\n)*  steps "))
        self.end()


if __name__ == "__main__":
    lab.main()
