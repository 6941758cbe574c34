// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests what follows a failure if the user sets more than the number of restarts.

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

JobPolicy Paused(Duration pause, int max_restarts = 3) {
  JobPolicy policy = Policy(2, 2, max_restarts);
  policy.restart_pause = pause;
  return policy;
}

JobPolicy FreeOn75(int max_restarts) {
  JobPolicy policy = Policy(2, 2, max_restarts);
  policy.free_on = "75";
  return policy;
}

// A worker of node 1 fails in the running round; then both nodes are ready.
void Fail(Job& job, int exit_code) {
  const Round round = job.table.round();
  ASSERT_EQ(job.Told(1).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Failed(round, Failure(2, exit_code))).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kStop) << job.table.Explain(job.now);
  ASSERT_TRUE(job.Say(0, Says(round, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(round, Phase::kReady)).ok());
}

// Both nodes run their round for `time`.
void Work(Job& job, Duration time) {
  for (int i : {0, 1}) {
    ASSERT_TRUE(job.Say(i, Says(job.table.round(), Phase::kRunning)).ok());
  }
  job.Pass(time, {0, 1});
}

TEST(RestartPause, HoldsTheNextRoundBackAndIsNamedEverywhere) {
  Job job(Paused(seconds(8)));
  job.Run(2);
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_THAT(job.Told(0).reason,
              EndsWith(" exited with 7; restart 1 of 3 begins in 8 s (--restart-pause)"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  EXPECT_EQ(job.Told(0).reason,
            "waiting for the pause of 8 s before restart 1 of 3 (--restart-pause)");
  job.Pass(milliseconds(2500), {0, 1});
  EXPECT_EQ(job.table.Status(job.now, 0).explanation,
            "restart 1 of 3 begins in 6 s (--restart-pause)");
  job.Pass(milliseconds(5400), {0, 1});
  EXPECT_EQ(job.table.round(), 1);
  job.Pass(milliseconds(100), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
  EXPECT_THAT(job.table.Explain(job.now), Not(HasSubstr("pause")));
}

TEST(RestartPause, DoublesUntilARoundRanLong) {
  Job job(Paused(seconds(8)));
  job.Run(2);
  Fail(job, 7);
  job.Pass(seconds(8), {0, 1});
  Work(job, seconds(30));
  Fail(job, 7);
  EXPECT_EQ(job.Told(0).reason,
            "waiting for the pause of 16 s before restart 2 of 3 (--restart-pause)");
  job.Pass(seconds(16), {0, 1});
  Work(job, kLongRun);
  Fail(job, 7);
  EXPECT_EQ(job.Told(0).reason,
            "waiting for the pause of 8 s before restart 3 of 3 (--restart-pause)");
}

TEST(RestartPause, IsNoPartOfTheJoinTimeout) {
  Job job(Paused(hours(1)));
  job.Run(2);
  Fail(job, 7);
  job.Pass(hours(1) - seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RestartPause, EndsForANewcomerAsForTheOthers) {
  Job job(Paused(seconds(60)));
  job.Run(2);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "its keeper says so", job.now).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0});
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_THAT(job.Told(2).reason, HasSubstr("the pause of 1 min before restart 1 of 3"));
  job.Pass(seconds(30), {0, 2});
  EXPECT_EQ(job.Told(2).kind, Kind::kRun) << "the time for others to come went by meanwhile";
}

TEST(RestartPause, BeginsAnewWithARendezvousThatIsRestarted) {
  Job job(Paused(seconds(8)));
  job.Run(2);
  Fail(job, 7);
  job.Pass(seconds(5), {0, 1});
  Job later(job, seconds(1));
  for (int i : {0, 1}) {
    ASSERT_TRUE(later.table.Join(later.Info(i), Says(1, Phase::kReady), false, later.now).ok());
  }
  later.Pass(seconds(7), {0, 1});
  EXPECT_EQ(later.Told(0).reason,
            "waiting for the pause of 8 s before restart 1 of 3 (--restart-pause)");
  later.Pass(seconds(1), {0, 1});
  EXPECT_EQ(later.Told(0).kind, Kind::kRun);
}

TEST(EndOn, EndsTheJobThoughRestartsAreLeft) {
  JobPolicy policy = Policy(2, 2, 5);
  policy.end_on = "3";
  Job job(policy);
  job.Run(2);
  Fail(job, 4);
  ASSERT_TRUE(job.Say(1, Failed(2, Failure(2, 3))).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.reason, EndsWith("exited with 3; exit code 3 is in --end-on"));
  EXPECT_EQ(outcome.restart_count, 1);
}

TEST(FreeOn, RestartsWithoutACharge) {
  Job job(FreeOn75(1));
  job.Run(2);
  Fail(job, 75);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1) << "workers see every restart";
  EXPECT_EQ(job.Told(0).assignment.max_restarts, 1);
  JobStatus status = job.table.Status(job.now, 0);
  EXPECT_EQ(status.restarts, 1);
  EXPECT_EQ(status.uncounted, 1);
  Fail(job, 1);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 2);
  status = job.table.Status(job.now, 0);
  EXPECT_EQ(status.restarts - status.uncounted, 1);
  ASSERT_TRUE(job.Say(1, Failed(3, Failure(2, 1))).ok());
  const Outcome outcome = job.Told(0).outcome;
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.reason, EndsWith("; 1 restart was used"));
  EXPECT_EQ(outcome.restart_count, 2);
  EXPECT_EQ(outcome.uncounted, 1);
  EXPECT_EQ(outcome.history.size(), 2u);
}

TEST(FreeOn, PausesWhereRestartsFollowEachOtherSoon) {
  Job job(FreeOn75(0));
  job.Run(2);
  Fail(job, 75);
  Fail(job, 75);
  EXPECT_EQ(job.Told(0).reason,
            "waiting for the pause of 1 s before a restart that is not charged (restarts follow "
            "each other soon)");
  job.Pass(seconds(1), {0, 1});
  Fail(job, 75);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("the pause of 2 s"));
}

TEST(FreeOn, IsJudgedByItsStepsAsOtherRestartsAre) {
  JobPolicy policy = FreeOn75(0);
  policy.max_stuck_restarts = 2;
  Job job(policy);
  job.Run(2);
  const auto fail = [&] {
    const Round round = job.table.round();
    ASSERT_TRUE(job.Say(1, Failed(round, Failure(2, 75))).ok());
    NodeUpdate ready = Says(round, Phase::kReady);
    ready.step = 50;
    for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, ready).ok());
    job.Pass(seconds(5), {0, 1});
  };
  for (int i = 0; i < 3; ++i) fail();
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNoProgress);
  EXPECT_EQ(job.Told(0).outcome.restart_count, 2);
  EXPECT_EQ(job.Told(0).outcome.uncounted, 2);
}

TEST(RestartWindow, LetsTheBudgetGrowAgain) {
  JobPolicy policy = Policy(2, 2, 1);
  policy.restart_window = hours(1);
  Job job(policy);
  job.Run(2);
  Fail(job, 7);
  Work(job, hours(1));
  EXPECT_EQ(job.table.Status(job.now, 0).uncounted, 1);
  Fail(job, 7);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 2);
  Work(job, hours(1) - seconds(1));
  ASSERT_TRUE(job.Say(1, Failed(3, Failure(2, 7))).ok());
  EXPECT_THAT(job.Told(0).outcome.reason, EndsWith("; 1 restart was used within 1 h"));
  EXPECT_EQ(job.Told(0).outcome.uncounted, 1);
}

TEST(RestartWindow, TheReportCountsAsTheStatusBeforeTheEndDid) {
  JobPolicy policy = Policy(2, 2, 1);
  policy.restart_window = hours(1);
  Job job(policy);
  job.Run(2);
  Fail(job, 7);
  Work(job, hours(1));
  ASSERT_EQ(job.table.Status(job.now, 0).uncounted, 1);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).outcome.restart_count, 1);
  EXPECT_EQ(job.Told(0).outcome.uncounted, 1);
}

TEST(RestartWindow, BeginsAnewForARendezvousThatIsRestarted) {
  JobPolicy policy = Policy(2, 2, 1);
  policy.restart_window = hours(1);
  Job job(policy);
  job.Run(2);
  Fail(job, 7);
  Work(job, seconds(3590));
  Job later(job, seconds(1));
  for (int i : {0, 1}) {
    ASSERT_TRUE(later.table.Join(later.Info(i), Says(2, Phase::kRunning), false, later.now).ok());
  }
  later.Pass(seconds(3590), {0, 1});
  EXPECT_EQ(later.table.Status(later.now, 0).uncounted, 0);
  later.Pass(seconds(10), {0, 1});
  EXPECT_EQ(later.table.Status(later.now, 0).uncounted, 1);
}

TEST(Join, RefusesAPolicyThatCannotBeRead) {
  Job job(2, 2);
  NodeInfo info = job.Info(0);
  info.policy.end_on = "fire";
  const absl::Status status = job.Join(info);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("node0 (pid 100) says --end-on: 'fire' names no failure"));
}

}  // namespace
}  // namespace hlaunch
