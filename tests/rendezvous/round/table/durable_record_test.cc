// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/durable_record.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

TEST(RoundTable, ARunningRoundGoesOnAfterARestart) {
  Job before(2, 2, 1);
  before.Run(2);
  Job job(before, seconds(20));
  EXPECT_EQ(job.table.Explain(job.now),
            "round 1 runs with 2 nodes and 4 workers; not heard of: node0 (silent for 0 s), node1 "
            "(silent for 0 s)");
  job.Pass(seconds(39));  // No node is lost before the loss limit and margin.
  for (int i : {0, 1}) {
    ASSERT_TRUE(job.table.Join(job.Info(i), Says(1, Phase::kRunning), false, job.now).ok());
    EXPECT_EQ(job.Told(i).kind, Kind::kRun);
    EXPECT_EQ(job.Told(i).assignment.node_rank, i);
    EXPECT_EQ(job.Told(i).assignment.master_addr, "10.0.0.1");
  }
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
}

TEST(RoundTable, ARestartThatWasChargedStaysCharged) {
  Job before(2, 2, 1);
  before.Run(2);
  ASSERT_TRUE(before.Say(1, Failed(1, Failure(2, 7))).ok());
  ASSERT_TRUE(before.Say(1, Says(1, Phase::kReady)).ok());
  Job job(before, seconds(1));
  NodeUpdate ready = Says(1, Phase::kReady);
  ready.failures = {Failure(2, 7)};
  ASSERT_TRUE(job.table.Join(job.Info(1), ready, false, job.now).ok());
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kRunning), false, job.now).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("exited with 7; restart 1 of 1"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
  ASSERT_TRUE(job.Say(0, Failed(2, Failure(0, 9))).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 9);
}

TEST(RoundTable, WhatHappenedWhileNobodyListenedIsToldAfterTheRestart) {
  Job before(2, 2);
  before.Run(2);
  ASSERT_TRUE(before.Say(0, Says(1, Phase::kSucceeded)).ok());  // This needs no record.
  const uint64_t version = before.table.durable_version();
  Job job(before, seconds(1));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kSucceeded), false, job.now).ok());
  ASSERT_TRUE(job.table.Join(job.Info(1), Says(1, Phase::kSucceeded), false, job.now).ok());
  EXPECT_EQ(job.Told(1).outcome.exit_code, 0);
  EXPECT_EQ(before.table.durable_version(), version);
}

TEST(RoundTable, AGhostIsStillAGhostAfterARestart) {
  Job before(2, 2, 1);
  before.Run(2);
  before.Detach(1);
  NodeInfo elsewhere = before.Info(1);
  elsewhere.incarnation = 50;
  elsewhere.host = "other";
  ASSERT_TRUE(before.Join(elsewhere).ok());
  Job job(before, seconds(10));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kReady), false, job.now).ok());
  ASSERT_TRUE(job.Join(elsewhere).ok());
  EXPECT_THAT(job.Told(0).reason, HasSubstr("waiting until node1 (pid 101) must have stopped"));
}

TEST(RoundTable, AnOutcomeIsToldAfterARestart) {
  Job before(2, 2);
  before.Run(2);
  ASSERT_TRUE(before.Say(1, Failed(1, Failure(2, 7))).ok());
  Job job(before, seconds(1));
  ASSERT_TRUE(job.table.Join(job.Info(0), Says(1, Phase::kRunning), false, job.now).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 7);
  EXPECT_FALSE(job.table.AllFinished());
  EXPECT_EQ(job.Join(5).code(), StatusCode::kFailedPrecondition);
}

TEST(RoundTable, EveryDecisionChangesTheDurableVersion) {
  Job job(WithPreflight(2, 2));
  uint64_t version = job.table.durable_version();
  const auto changed = [&] {
    return std::exchange(version, job.table.durable_version()) != version;
  };
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_FALSE(changed());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_TRUE(changed());  // The round was proposed.
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  EXPECT_TRUE(changed());  // The round runs.
  job.Beat(0);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  EXPECT_FALSE(changed());
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_TRUE(changed());  // The job is over.
}

TEST(RoundTable, WhoHasHeardTheEndIsNotAwaitedAfterARestart) {
  Job job(2, 2);
  job.Run(2);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.table.Record().members.size(), 2u);
  const uint64_t over = job.table.durable_version();
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kFinished)).ok());
  EXPECT_EQ(job.table.durable_version(), over);  // One record for the job's end, not one per node.
  EXPECT_EQ(job.table.Record().members.size(), 1u);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kFinished)).ok());
  EXPECT_GT(job.table.durable_version(), over);
  EXPECT_THAT(job.table.Record().members, IsEmpty());
  const uint64_t finished = job.table.durable_version();
  job.Pass(seconds(50));  // The nodes are gone.
  EXPECT_EQ(job.table.durable_version(), finished);
}

TEST(RoundTable, ANodeThatWasGivenUpIsRefusedAfterARestartToo) {
  Job before(1, 2, 1);
  before.Run(2);
  before.Pass(seconds(40), {0});
  Job job(before, seconds(3));
  // It was told round 1 and may still read and obey that.
  EXPECT_EQ(job.Join(1).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace hlaunch
