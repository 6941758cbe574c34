// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/table/gathering.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

// Tests when a running round grows, and what the loss of a node means for its size.

namespace hlaunch {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

JobPolicy Elastic(int min_nodes, int max_nodes, int max_restarts = 0) {
  JobPolicy policy = Policy(min_nodes, max_nodes, max_restarts);
  policy.last_call = Duration::zero();
  return policy;
}

NodeUpdate AtBoundary(Round round, int64_t boundaries) {
  NodeUpdate update = Says(round, Phase::kRunning);
  update.boundaries = boundaries;
  return update;
}

// The nodes stop their workers and are ready again.
void Stop(Job& job, int nodes, Round round) {
  for (int i = 0; i < nodes; ++i) ASSERT_TRUE(job.Say(i, Says(round, Phase::kReady)).ok());
}

TEST(Elastic, RoundsGrowNoMoreOftenThanTheIntervalAndStatusSaysWhen) {
  JobPolicy policy = Elastic(1, 3);
  policy.grow_interval = seconds(60);
  Job job(policy);
  job.Run(1);
  ASSERT_TRUE(job.Join(1).ok());  // The first growth needs no wait.
  EXPECT_EQ(job.Told(0).reason, "node1 joined: from 1 to 2 nodes");
  Stop(job, 1, 1);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  job.Pass(seconds(20), {0, 1});
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(
      job.table.Explain(job.now),
      "round 2 runs with 2 nodes and 4 workers; node2 joined: from 2 to 3 nodes with the next "
      "round, in 40 s: the last one grew not long before");
  job.Pass(seconds(39), {0, 1, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(1), {0, 1, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(Elastic, ARoundGrowsAtTheNextGoodMoment) {
  JobPolicy policy = Elastic(1, 2);
  policy.boundary_limit = seconds(300);
  Job job(policy);
  job.Run(1);
  ASSERT_TRUE(job.Say(0, AtBoundary(1, 1)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_TRUE(job.Told(0).wants_boundary);
  EXPECT_FALSE(job.Told(1).wants_boundary);
  EXPECT_THAT(job.table.Explain(job.now),
              HasSubstr("from 1 to 2 nodes with the next round, at the next checkpoint, within "
                        "300 s"));
  job.Pass(seconds(100), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(0, AtBoundary(1, 2)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  Stop(job, 1, 1);
  EXPECT_EQ(job.Told(1).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(1).assignment.restart_count, 0);
  EXPECT_FALSE(job.Told(0).wants_boundary);
}

TEST(Elastic, AGoodMomentThatDoesNotComeIsAwaitedForTheLimit) {
  JobPolicy policy = Elastic(1, 2);
  policy.boundary_limit = seconds(30);
  Job job(policy);
  job.Run(1);
  ASSERT_TRUE(job.Say(0, AtBoundary(1, 1)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(29), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(Elastic, NoGoodMomentIsAwaitedForANodeThatHasGone) {
  JobPolicy policy = Elastic(1, 2);
  policy.boundary_limit = seconds(30);
  Job job(policy);
  job.Run(1);
  ASSERT_TRUE(job.Say(0, AtBoundary(1, 1)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  EXPECT_FALSE(job.Told(0).wants_boundary);
  ASSERT_TRUE(job.Say(0, AtBoundary(1, 2)).ok());
  job.Pass(seconds(60), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(Elastic, ANodeWaitsForTheEndOfTheRoundIfTheUserWantsThat) {
  JobPolicy policy = Elastic(1, 2, 1);
  policy.on_join = OnJoin::kNextRound;
  Job job(policy);
  job.Run(1);
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(600), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).reason,
            "round 1 runs with 1 node; this node waits until it ends (--on-join next-round)");
  EXPECT_EQ(job.table.Explain(job.now),
            "round 1 runs with 1 node and 2 workers; 1 node waits until it ends (--on-join "
            "next-round)");
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  Stop(job, 1, 1);
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(Elastic, AnIgnoredNodeReplacesALostOneOnly) {
  JobPolicy policy = Elastic(1, 3, 2);
  policy.on_join = OnJoin::kIgnore;
  policy.last_call = seconds(1);
  Job job(policy);
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  job.Pass(seconds(1), {0, 1});
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  Stop(job, 2, 1);
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  Stop(job, 1, 2);
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
}

TEST(Elastic, TheLossOfANodeEndsTheJobIfTheUserWantsThat) {
  JobPolicy policy = Elastic(1, 2, 3);
  policy.on_loss = OnLoss::kFail;
  Job job(policy);
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  Stop(job, 1, 1);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
  EXPECT_EQ(job.Told(0).outcome.reason,
            "node1 (10.0.0.2) was lost: power; it ran ranks 2-3; the job ends for that (--on-loss "
            "fail)");
}

TEST(Elastic, AfterALossTheNextRoundWaitsIfTheUserWantsThat) {
  JobPolicy policy = Elastic(1, 2, 3);
  policy.on_loss = OnLoss::kWait;
  Job job(policy);
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  Stop(job, 1, 1);
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  Stop(job, 1, 2);
  EXPECT_THAT(job.Told(0).reason,
              HasSubstr("waiting for 1 of 2 nodes; here: node0; with --on-loss wait fewer begin "
                        "only after --join-timeout"));
  Job other = Job(job, seconds(0));  // Its rendezvous restarts.
  ASSERT_TRUE(other.Join(job.Info(0)).ok());
  other.Pass(seconds(599), {0});
  EXPECT_EQ(other.Told(0).kind, Kind::kWait);
  other.Pass(seconds(1), {0});
  EXPECT_EQ(other.Told(0).assignment.num_nodes, 1);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(Elastic, ARoundHasAMultipleOfTheNodes) {
  JobPolicy policy = Elastic(2, 4);
  policy.node_multiple = 2;
  policy.grow_interval = seconds(60);
  Job job(policy);
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(2).ok());
  job.Pass(seconds(90), {0, 1, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_THAT(job.table.Explain(job.now),
              HasSubstr("node2 joined: the next round would have 4 nodes, which takes 1 more"));
  ASSERT_TRUE(job.Join(3).ok());
  EXPECT_EQ(job.Told(0).reason, "node2, node3 joined: from 2 to 4 nodes");
}

}  // namespace
}  // namespace hlaunch
