// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/restart_policy.h"

#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using Kind = FailureEvent::Kind;

FailureEvent Worker(int exit_code, int signal) {
  FailureEvent event;
  event.worker = Failure(3, exit_code);
  event.worker.signal = signal;
  return event;
}

FailureEvent NodeGone(Kind kind, const std::string& detail, int left_exit_code) {
  FailureEvent event;
  event.kind = kind;
  event.host = "gpu7";
  event.detail = detail;
  event.left_exit_code = left_exit_code;
  return event;
}

TEST(AfterFailure, RestartsWhileTheBudgetLastsAndElseSaysHowTheJobExits) {
  struct Case {
    RestartBudget budget;
    FailureEvent event;
    bool restart;
    int exit_code;
    std::string reason;
  };
  FailureEvent waited = Worker(1, 0);
  waited.worker.message = "RuntimeError: Timed out waiting 5000ms";
  waited.awaited = {{1, 1, "node0"}, {6, 0, "node3"}};
  const std::string rank3 = "worker rank 3 on node1 (pid 1003) ";
  const Case cases[] = {
      {{0, 0}, Worker(7, 0), false, 7, rank3 + "exited with 7"},
      {{0, 0}, Worker(0, 9), false, 137, rank3 + "was killed by signal 9 (SIGKILL)"},
      {{0, 0}, Worker(0, 35), false, 163, rank3 + "was killed by signal 35"},
      {{3, 0}, Worker(7, 0), true, 7, rank3 + "exited with 7; restart 1 of 3"},
      {{3, 2}, Worker(7, 0), true, 7, rank3 + "exited with 7; restart 3 of 3"},
      {{3, 3}, Worker(7, 0), false, 7, rank3 + "exited with 7; 3 restarts were used"},
      {{1, 1}, Worker(7, 0), false, 7, rank3 + "exited with 7; 1 restart was used"},
      {{0, 0},
       waited,
       false,
       1,
       rank3 +
           "exited with 1: RuntimeError: Timed out waiting 5000ms; rank 1 on node0 and rank 6 on "
           "node3 did not fail"},
      {{0, 0}, Worker(0, 0), false, 1, rank3 + "exited with 0"},
      {{0, 0}, Worker(256, 0), false, 1, rank3 + "exited with 256"},
      {{0, 0},
       NodeGone(Kind::kNodeLost, "silence", 0),
       false,
       kExitNodeLost,
       "gpu7 was lost: silence"},
      {{1, 0},
       NodeGone(Kind::kNodeLost, "silence", 0),
       true,
       kExitNodeLost,
       "gpu7 was lost: silence; restart 1 of 1"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "SIGINT", 130),
       false,
       kExitNodeStopped,
       "gpu7 was stopped by SIGINT"},
      {{1, 0},
       NodeGone(Kind::kNodeLeft, "SIGTERM", 143),
       true,
       kExitNodeStopped,
       "gpu7 was stopped by SIGTERM; restart 1 of 1"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "its keeper was killed", kExitAgentLost),
       false,
       kExitAgentLost,
       "gpu7 left: its keeper was killed"},
      {{0, 0},
       NodeGone(Kind::kNodeLeft, "its keeper was killed", 0),
       false,
       kExitNodeLost,
       "gpu7 left: its keeper was killed"},
  };
  for (const Case& c : cases) {
    const JobVerdict verdict = AfterFailure(c.budget, c.event);
    EXPECT_EQ(verdict.restart, c.restart) << c.reason;
    EXPECT_EQ(verdict.exit_code, c.exit_code) << c.reason;
    EXPECT_EQ(verdict.reason, c.reason);
  }
}

TEST(AfterFailure, EndsTheJobWhereANewWorkerWouldMeetTheSame) {
  FailureEvent stuck = Worker(0, 9);
  stuck.worker.no_restart = true;
  const JobVerdict verdict = AfterFailure({.max_restarts = 3, .used = 1}, stuck);
  EXPECT_FALSE(verdict.restart);
  EXPECT_EQ(verdict.exit_code, 137);
}

}  // namespace
}  // namespace hlaunch
