// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/summary.h"

#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/exit_code.h"
#include "tests/launcher/report/job/failure.h"

namespace hlaunch {
namespace {

std::string Report(const Outcome& outcome, const SummaryStyle& style = {}) {
  return absl::StrJoin(SummaryLines(outcome, style), "\n");
}

TEST(SummaryLines, AreSilentOnSuccess) {
  EXPECT_EQ(Report({}), "");
  EXPECT_EQ(SummaryLine({}), "");
  EXPECT_EQ(Report({}, {.verbose = true}), "job succeeded");
  Outcome outcome;
  outcome.restart_count = 1;
  EXPECT_EQ(Report(outcome, {.verbose = true, .max_restarts = 3}),
            "job succeeded; 1 of 3 restarts used");
}

TEST(SummaryLines, BeginWithTheCause) {
  Outcome outcome;
  outcome.exit_code = 7;
  outcome.failures = {Failure(3, 7)};
  outcome.failures[0].message = "ValueError: bad batch\nmore";
  outcome.worker_failed = true;
  outcome.failures[0].log_tail = "step 1\n\x1b[31mstep 2\n";
  outcome.restart_count = 2;
  EXPECT_EQ(Report(outcome, {.max_restarts = 2}),
            "job failed: rank 3 (node1, local rank 1, pid 4242) exited with code 7: ValueError: "
            "bad batch\n"
            "    more\n"
            "    | step 1\n"
            "    | step 2\n"
            "  2 of 2 restarts used\n"
            "  exit code 7");
  EXPECT_EQ(SummaryLine(outcome),
            "job failed: rank 3 (node1, local rank 1, pid 4242) exited with code 7: ValueError: "
            "bad batch; exit code 7");
}

TEST(SummaryLines, NameTheSignal) {
  Outcome outcome;
  outcome.exit_code = kExitSignalBase + SIGKILL;
  outcome.failures = {Failure(0, 0, SIGKILL)};
  outcome.worker_failed = true;
  outcome.failures[0].evidence = "sent from outside, not by hlaunch";
  EXPECT_EQ(
      Report(outcome),
      "job failed: rank 0 (node0, local rank 0, pid 4242) was killed by signal 9 (SIGKILL): "
      "sent from outside, not by hlaunch\n"
      "  advice: look for who ends processes on node0: a scheduler's limit, the hard limit of "
      "CPU time (ulimit -Ht), systemd-oomd, a person\n"
      "  exit code 137");
}

TEST(SummaryLines, ShowThePersonsFrameAndTheLastTwo) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  outcome.failures[0].traceback =
      "Traceback (most recent call last):\n"
      "  File \"/home/me/train.py\", line 9, in <module>\n"
      "    main()\n"
      "    ^^^^^^\n"
      "  File \"/home/me/train.py\", line 5, in main\n"
      "    loss.backward()\n"
      "  File \"/usr/lib/python3/dist-packages/torch/a.py\", line 1, in backward\n"
      "    b(\n"
      "  File \"/usr/lib/python3/dist-packages/torch/b.py\", line 2, in b\n"
      "    return c(self)\n"
      "           ~^^^^^^\n"
      "  File \"/usr/lib/python3/dist-packages/torch/c.py\", line 3, in c\n"
      "    raise RuntimeError(\"boom\")\n"
      "RuntimeError: boom\n";
  EXPECT_EQ(Report(outcome),
            "job failed: rank 0 (node0, local rank 0, pid 4242) exited with code 1: RuntimeError: "
            "boom\n"
            "    |   File \"/home/me/train.py\", line 5, in main\n"
            "    |     loss.backward()\n"
            "    |   File \"/usr/lib/python3/dist-packages/torch/b.py\", line 2, in b\n"
            "    |     return c(self)\n"
            "    |   File \"/usr/lib/python3/dist-packages/torch/c.py\", line 3, in c\n"
            "    |     raise RuntimeError(\"boom\")\n"
            "  exit code 1");
}

// hlaunch's package may be in any folder: the summary shows the script's line, not the package's.
TEST(SummaryLines, ShowNoLineOfHlaunchsPackageForThePersons) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  outcome.failures[0].traceback =
      "Traceback (most recent call last):\n"
      "  File \"/home/me/train.py\", line 5, in <module>\n"
      "    group.all_reduce(x)\n"
      "  File \"/opt/python/hlaunch/collectives.py\", line 1, in all_reduce\n"
      "    self.wait()\n"
      "  File \"/opt/python/hlaunch/collectives.py\", line 2, in wait\n"
      "    check(code)\n"
      "  File \"/opt/python/hlaunch/library.py\", line 3, in check\n"
      "    raise CollectiveError(code)\n"
      "hlaunch.CollectiveError: rank 1 left the group\n";
  EXPECT_THAT(Report(outcome),
              testing::HasSubstr("rank 1 left the group\n"
                                 "    |   File \"/home/me/train.py\", line 5, in <module>\n"));
}

TEST(SummaryLines, NameTheWorkerThatDidNotCome) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1), Failure(1, 1)};
  outcome.failures[0].message = "RuntimeError: Timed out waiting 2000ms for recv operation";
  outcome.failures[1].message = outcome.failures[0].message;
  outcome.awaited = {{2, 0, "node1"}};
  EXPECT_EQ(Report(outcome),
            "job failed: rank 2 (node1) did not come: rank 0 (node0, local rank 0, pid 4242) "
            "exited with code 1: RuntimeError: Timed out waiting 2000ms for recv operation\n"
            "  consequences: rank 1 (node0) exited with code 1\n"
            "  advice: see where rank 2 on node1 stands (py-spy dump --pid PID), or allow longer "
            "with init_process_group(timeout=...)\n"
            "  exit code 1");
  outcome.failures.resize(1);
  outcome.failures[0].message = "RuntimeError: Connection closed by peer";
  EXPECT_TRUE(absl::StrContains(Report(outcome), "\n  did not fail: rank 2 (node1)\n"));
}

TEST(SummaryLines, BeginWithWhatTheMissingWorkerDid) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  outcome.failures[0].message = "RuntimeError: Connection closed by peer";
  outcome.awaited = {{2, 0, "node1", "exited with code 0", true}};
  EXPECT_TRUE(absl::StartsWith(
      Report(outcome),
      "job failed: rank 2 (node1) exited with code 0 before the others were done: rank 0 (node0, "
      "local rank 0, pid 4242) exited with code 1: RuntimeError: Connection closed by peer\n"))
      << Report(outcome);
  outcome.awaited[0].exited = false;
  outcome.awaited[0].did = "left the group before barrier #7";
  EXPECT_TRUE(absl::StartsWith(Report(outcome),
                               "job failed: rank 2 (node1) left the group before barrier #7: rank "
                               "0 (node0, local rank 0, pid 4242) exited with code 1: "));
  EXPECT_FALSE(absl::StrContains(Report(outcome), "did not fail"));
}

TEST(SummaryLines, TellOfTheLastRestarts) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  for (int i = 1; i <= 5; ++i) {
    outcome.history.push_back({i, absl::StrCat("rank ", i, " failed"), {}});
  }
  outcome.restart_count = 5;
  EXPECT_EQ(Report(outcome, {.max_restarts = 5}),
            "job failed: rank 0 (node0, local rank 0, pid 4242) exited with code 1\n"
            "  before: 2 more restarts\n"
            "  restart after round 3: rank 3 failed\n"
            "  restart after round 4: rank 4 failed\n"
            "  restart after round 5: rank 5 failed\n"
            "  5 of 5 restarts used\n"
            "  exit code 1");
}

TEST(SummaryLines, SayByWhichCausesTimeWasLost) {
  Outcome outcome;
  SummaryStyle style;
  style.lost = "time lost: 52 s of 4 min 0 s: start 2 s, waiting for the slowest rank 50 s";
  EXPECT_EQ(Report(outcome, style), "job succeeded\n  " + style.lost);
  outcome.exit_code = kExitNodeLost;
  EXPECT_TRUE(absl::StrContains(Report(outcome, style), "\n  " + style.lost + "\n"));
}

TEST(SummaryLines, CountRestartsThatDoNotCountApart) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  outcome.restart_count = 7;
  outcome.uncounted = 4;
  EXPECT_THAT(Report(outcome, {.max_restarts = 3}),
              testing::HasSubstr("\n  3 of 3 restarts used, 4 more do not count\n"));
  outcome.restart_count = outcome.uncounted = 1;
  EXPECT_THAT(Report(outcome, {}),
              testing::HasSubstr("\n  0 of 0 restarts used, 1 more does not count\n"));
}

TEST(SummaryLines, CountConsequencesApart) {
  Outcome outcome;
  outcome.exit_code = 1;
  for (int rank = 0; rank < 6; ++rank) outcome.failures.push_back(Failure(rank, 1));
  outcome.failures[1] = Failure(1, 0, SIGABRT);
  outcome.worker_failed = true;
  outcome.total_failures = 1000;
  EXPECT_EQ(Report(outcome),
            "job failed: rank 0 (node0, local rank 0, pid 4242) exited with code 1\n"
            "  consequences: rank 1 (node0) was killed by signal 6 (SIGABRT), rank 2 (node1) "
            "exited with code 1, rank 3 (node1) exited with code 1, and 996 more\n"
            "  exit code 1");
}

TEST(SummaryLines, StayShort) {
  Outcome outcome;
  outcome.exit_code = kExitSignalBase + SIGKILL;
  for (int rank = 0; rank < 16; ++rank) outcome.failures.push_back(Failure(rank, 0, SIGKILL));
  outcome.worker_failed = true;
  outcome.failures[0].message = "m\nm\nm";
  for (int i = 0; i < 100; ++i) absl::StrAppend(&outcome.failures[0].log_tail, "line ", i, "\n");
  const auto lines = SummaryLines(outcome, {.max_restarts = 9});
  EXPECT_LE(lines.size(), 11u);
  for (const std::string& line : lines) EXPECT_FALSE(absl::StrContains(line, "\n")) << line;
}

TEST(SummaryLines, TakeTenLinesForALongMessageWithATracebackAndALog) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1), Failure(1, 1)};
  outcome.failures[0].log_file = "/logs/0.err";
  outcome.failures[0].traceback = "Traceback (most recent call last):\n";
  for (int i = 0; i < 9; ++i) {
    absl::StrAppend(&outcome.failures[0].traceback, "  File \"t.py\", line ", i,
                    ", in f\n    g()\n");
  }
  absl::StrAppend(&outcome.failures[0].traceback, "RuntimeError: No space left on device:\n");
  for (int i = 0; i < 5; ++i) absl::StrAppend(&outcome.failures[0].traceback, "\tline ", i, "\n");
  const std::vector<std::string> lines = SummaryLines(outcome, {});
  EXPECT_EQ(lines.size(), 10u) << Report(outcome);
  EXPECT_EQ(lines[4], "    |   File \"t.py\", line 7, in f");
}

TEST(SummaryLines, RecallWhatThePreflightSaidOfTheNetwork) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 1)};
  outcome.failures[0].message = "RuntimeError: Timed out waiting 3000ms for send operation";
  outcome.failures[0].kind = FailureKind::kWarnedBefore;
  outcome.failures[0].evidence = "before the round: node0 and node1: small messages pass: MTU?";
  const std::string report = Report(outcome);
  EXPECT_TRUE(
      absl::StrContains(report, "send operation: before the round: node0 and node1: small "));
  EXPECT_TRUE(absl::StrContains(report, "compare the MTU"));
  Outcome lost;
  lost.exit_code = kExitNodeLost;
  lost.reason = "node1 was lost; before the round: small messages pass, is the MTU larger?";
  lost.warned = true;
  EXPECT_TRUE(absl::StrContains(Report(lost), "compare the MTU"));
}

TEST(SummaryLines, NameWhatAProgramWithoutAnExceptionSaid) {
  Outcome outcome;
  outcome.exit_code = 127;
  outcome.worker_failed = true;
  outcome.failures = {Failure(0, 127)};
  outcome.failures[0].log_tail =
      "./train: error while loading shared libraries: libx.so.1: cannot "
      "open shared object file: No such file or directory";
  EXPECT_TRUE(
      absl::StartsWith(Report(outcome),
                       "job failed: rank 0 (node0, local rank 0, pid 4242) exited with "
                       "code 127: ./train: error while loading shared libraries: libx.so.1"));
}

TEST(SummaryLines, ColourOnlyOnRequest) {
  Outcome outcome;
  outcome.exit_code = 1;
  outcome.failures = {Failure(0, 1)};
  EXPECT_FALSE(absl::StrContains(Report(outcome), "\x1b"));
  EXPECT_TRUE(absl::StartsWith(Report(outcome, {.colour = true}), "\x1b[1;31mjob failed"));
}

TEST(SummaryLines, SayInPlainWordsWhatElseEndedTheJob) {
  const struct {
    int exit_code;
    const char* reason;
    const char* report;
    bool refused = false;
  } rows[] = {
      {kExitNodeLost, "node1 was silent for 40 s",
       "job failed: node1 was silent for 40 s\n"
       "  advice: look at that host first, then at the network; --max-restarts lets the job try "
       "again"},
      {kExitNodeLost, "",
       "job failed: a node died or was cut off\n"
       "  advice: look at that host first, then at the network; --max-restarts lets the job try "
       "again"},
      {kExitJoinTimeout, "1 of 2 nodes missing after 600 s",
       "job failed: 1 of 2 nodes missing after 600 s\n"
       "  advice: start the missing nodes, or give them longer with --join-timeout"},
      {kExitJoinTimeout,
       "gave up after 600 s: waiting for 1 of 2 nodes; node1 was refused: --nnodes",
       "job failed: gave up after 600 s: waiting for 1 of 2 nodes; node1 was refused: --nnodes\n"
       "  advice: no node need be started: fix what the refused one was refused for",
       true},
      {kExitRendezvousLost, "",
       "job failed: the host of the rendezvous was not heard of any more\n"
       "  advice: look at that host first, then at the network to it; --loss-limit sets the "
       "time-out"},
      {kExitSignalBase + SIGINT, "SIGINT on node0", "job stopped: SIGINT on node0"},
      {kExitSignalBase + SIGTERM, "", "job stopped: SIGTERM was received"},
      {kExitNodeStopped, "node1 was stopped by SIGTERM",
       "job stopped: node1 was stopped by SIGTERM"},
      {kExitNodeStopped, "", "job stopped: another node was stopped"},
      {kExitAgentLost, "", "job failed: hlaunch itself was killed on a node"},
  };
  for (const auto& row : rows) {
    Outcome outcome;
    outcome.exit_code = row.exit_code;
    outcome.reason = row.reason;
    outcome.refused = row.refused;
    EXPECT_EQ(Report(outcome), absl::StrCat(row.report, "\n  exit code ", row.exit_code));
  }
}

TEST(SummaryLines, ListWorkersBesideALostNode) {
  Outcome outcome;
  outcome.exit_code = kExitNodeLost;
  outcome.reason = "node1 was silent for 40 s";
  outcome.failures = {Failure(0, 1)};
  EXPECT_EQ(
      Report(outcome),
      absl::StrCat(
          "job failed: node1 was silent for 40 s\n"
          "  workers that failed: rank 0 (node0) exited with code 1\n"
          "  advice: look at that host first, then at the network; --max-restarts lets the job try "
          "again\n"
          "  exit code ",
          kExitNodeLost));
}

TEST(SummaryLines, SaysInOneLineWhatCouldNotBeStarted) {
  Outcome outcome;
  outcome.exit_code = 126;
  outcome.worker_failed = true;
  outcome.failures = {Failure(3, 0, 0)};
  outcome.failures[0].pid = 0;
  outcome.failures[0].exit_code = 126;
  outcome.failures[0].message = "cannot run ./train: it is not a program";
  EXPECT_EQ(SummaryLines(outcome, {}),
            std::vector<std::string>{"job failed: rank 3 (" + outcome.failures[0].host +
                                     ") was not started: cannot run ./train: it is not a program"});
}

TEST(FailureLine, NamesWhatARankHadSpawned) {
  WorkerFailure failure = Failure(2, 7);
  failure.spawned = "rank 1 of spawn 1";
  EXPECT_EQ(FailureLine(failure),
            "rank 1 of spawn 1, which rank 2 had spawned (node1, pid 4242) exited with code 7");
}

TEST(FailureLine, NumbersSignalsWithoutAName) {
  EXPECT_EQ(FailureLine(Failure(0, 0, 40)),
            "rank 0 (node0, local rank 0, pid 4242) was killed by signal 40 (real-time signal)");
}

}  // namespace
}  // namespace hlaunch
