// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/time_line.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/round/values/limits.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using Job = TableJob;
using Phase = NodePhase;

constexpr int64_t kWall = 1'800'000'000'000;  // Wall time at which jobs begin.

JobStatus StatusOf(const Job& job) {
  const Duration since = job.now - (Instant{} + std::chrono::hours(1));
  return job.table.Status(
      job.now, kWall + std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
}

TEST(TimeLine, TellsWhenEachRoundBeganRanAndEnded) {
  Job job(2, 2, /*max_restarts=*/1);
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_EQ(StatusOf(job).began_ms, kWall);
  EXPECT_TRUE(StatusOf(job).rounds.empty());
  job.Pass(seconds(3), {0});
  job.Run(2);
  job.Pass(seconds(10), {0, 1});
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  job.Pass(seconds(2), {0, 1});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(5), {0, 1});
  const JobStatus status = StatusOf(job);
  ASSERT_EQ(status.rounds.size(), 2u);
  const RoundStatus &first = status.rounds[0], &second = status.rounds[1];
  EXPECT_EQ(first.round, 1);
  EXPECT_EQ(first.began_ms, kWall + 3000);
  EXPECT_EQ(first.ran_ms, kWall + 3000);
  EXPECT_EQ(first.stopping_ms, kWall + 13000);
  EXPECT_EQ(first.stopped_ms, kWall + 15000);
  EXPECT_EQ(first.nodes, 2);
  EXPECT_EQ(first.world_size, 4);
  EXPECT_THAT(first.reason, testing::HasSubstr("worker rank 2 on node1 (pid 1002) exited with 7"));
  EXPECT_EQ(second.ran_ms, kWall + 15000);
  EXPECT_EQ(second.stopping_ms, 0);
  EXPECT_EQ(second.restarts, 1);
  EXPECT_EQ(status.told_ms - status.began_ms, 20000);
  EXPECT_EQ(status.ran_for, seconds(15));
  EXPECT_EQ(status.world_size, 4);
  EXPECT_EQ(status.nodes[1].first_rank, 2);
  ASSERT_TRUE(status.failure);
  EXPECT_EQ(status.failure->rank, 2);
  EXPECT_EQ(status.failed_round, 1);
}

TEST(TimeLine, NothingRunsOnceTheJobIsOver) {
  Job job(2, 2);
  job.Run(2);
  job.Pass(seconds(4), {0, 1});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kSucceeded)).ok());
  job.Pass(seconds(6), {0, 1});
  const JobStatus status = StatusOf(job);
  EXPECT_EQ(status.ran_for, seconds(4));
  EXPECT_EQ(status.rounds.at(0).stopping_ms, kWall + 4000);
}

TEST(TimeLine, BeginsAnewWithARestartOfTheRendezvous) {
  Job before(2, 2);
  before.Run(2);
  Job job(before, seconds(60));
  const JobStatus status = StatusOf(job);
  EXPECT_EQ(status.began_ms, kWall + 60000);
  ASSERT_EQ(status.rounds.size(), 1u);
  EXPECT_EQ(status.rounds[0].began_ms, 0);
  EXPECT_EQ(status.rounds[0].ran_ms, kWall + 60000);
}

TEST(TimeLine, KeepsTheLatestRounds) {
  TimeLine line;
  JobRecord record;
  for (int i = 1; i <= 50; ++i) {
    record.round = i;
    record.state = JobState::kRunning;
    line.SetNow(Instant{} + seconds(10 * i));
    line.RoundBegins(record);
    line.SetNow(Instant{} + seconds(10 * i + 4));
    line.RoundStops("why", {});
    line.RoundStops("again", {});
  }
  JobStatus status;
  line.Tell(status, Instant{} + seconds(600), 600'000);
  ASSERT_EQ(status.rounds.size(), kMaxRoundsShown);
  EXPECT_EQ(status.rounds.back().round, 50);
  EXPECT_EQ(status.rounds.back().reason, "why");
  EXPECT_EQ(status.ran_for, seconds(200));
}

}  // namespace
}  // namespace hlaunch
