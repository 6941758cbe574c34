// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests restarts that bring a job no further.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/table/record_changes.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

JobPolicy Stuck(int max_stuck_restarts) {
  JobPolicy policy = Policy(2, 2, /*max_restarts=*/100);
  policy.max_stuck_restarts = max_stuck_restarts;
  return policy;
}

NodeUpdate Ready(Round round, std::optional<int64_t> step) {
  NodeUpdate update = Says(round, Phase::kReady);
  update.step = step;
  return update;
}

// A worker of node 1 fails; then both nodes tell how far their workers came.
void Fail(Job& job, Round round, std::optional<int64_t> first, std::optional<int64_t> second) {
  ASSERT_EQ(job.Told(1).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Failed(round, Failure(2, 7))).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kStop);
  ASSERT_TRUE(job.Say(0, Ready(round, first)).ok());
  ASSERT_TRUE(job.Say(1, Ready(round, second)).ok());
}

TEST(StuckRestarts, EndAJobThatTheyBringNoFurther) {
  Job job(Stuck(2));
  job.Run(2);
  Fail(job, 1, 50, std::nullopt);
  Fail(job, 2, 50, 50);
  Fail(job, 3, std::nullopt, 40);
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, kExitNoProgress);
  EXPECT_THAT(
      outcome.reason,
      StartsWith("2 restarts in a row brought the job no further than step 50; the last: "));
  EXPECT_THAT(outcome.reason, HasSubstr("worker rank 2 on node1 (pid 1002) exited with 7"));
  EXPECT_EQ(outcome.restart_count, 2) << "the third did not begin";
}

TEST(StuckRestarts, BeginAnewOnceAnyNodeCameFurther) {
  Job job(Stuck(2));
  job.Run(2);
  Fail(job, 1, 50, 50);
  Fail(job, 2, 50, 50);
  Fail(job, 3, 10, 51);
  Fail(job, 4, 51, 51);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun) << "one restart in vain, and two are allowed";
  Fail(job, 5, 51, 51);
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNoProgress);
}

TEST(StuckRestarts, AreNotCountedWhereNobodyTellsSteps) {
  Job job(Stuck(1));
  job.Run(2);
  for (Round round = 1; round < 6; ++round) Fail(job, round, std::nullopt, std::nullopt);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(StuckRestarts, AreNoReasonToEndUnlessTheUserSaysSo) {
  Job job(Stuck(0));
  job.Run(2);
  for (Round round = 1; round < 6; ++round) Fail(job, round, 5, 5);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(StuckRestarts, AreRememberedByARendezvousThatIsRestarted) {
  Job job(Stuck(2));
  job.Run(2);
  Fail(job, 1, 50, 50);
  Fail(job, 2, 50, 50);
  Job later(job, std::chrono::seconds(1));
  for (int i : {0, 1}) {
    ASSERT_TRUE(later.table.Join(later.Info(i), Says(3, Phase::kRunning), false, later.now).ok());
  }
  Fail(later, 3, 50, 50);
  EXPECT_EQ(later.Told(0).outcome.exit_code, kExitNoProgress);
}

TEST(CountStuck, LooksOnceAtEachRestart) {
  JobRecord record;
  record.policy.max_stuck_restarts = 1;
  record.restarts = 1;
  TakeStep(record, 5);
  CountStuck(record);
  CountStuck(record);  // The round was stopped to grow: no restart.
  EXPECT_EQ(WhyStuck(record), "");
  record.restarts = 2;
  CountStuck(record);
  EXPECT_EQ(WhyStuck(record), "a restart brought the job no further than step 5");
}

}  // namespace
}  // namespace hlaunch
