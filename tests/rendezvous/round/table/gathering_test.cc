// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/gathering.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

TEST(RoundTable, ASpareTakesThePlaceAndTheRankOfALostNode) {
  JobPolicy policy = Policy(3, 3, 1);
  policy.spares = 1;
  Job job(policy);
  job.Run(3);
  NodeInfo spare = job.Info(3);
  spare.node_rank = 3;  // The number that a scheduler gives.
  ASSERT_TRUE(job.Join(spare).ok());
  EXPECT_EQ(job.Told(3).reason, "this node stands by as a spare: round 1 runs with 3 nodes");
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  EXPECT_EQ(job.Told(3).kind, Kind::kWait);
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.node_rank, 0);
  EXPECT_EQ(job.Told(3).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 2);
  EXPECT_EQ(job.Told(3).assignment.restart_count, 1);
}

TEST(RoundTable, AJoinBeginsTheNextRoundUncharged) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(30), {0});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(1).reason, "round 1 runs with 1 node; this node waits for the next");
  job.Pass(seconds(29), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);  // More nodes may come: the last call runs.
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).reason, "node1 joined: from 1 to 2 nodes");
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(1).assignment.restart_count, 0);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);  // No other node can come, so at once.
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(2).assignment.num_nodes, 3);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 0);
}

TEST(RoundTable, ARoundThatIsPartlyDoneDoesNotGrow) {
  Job job(2, 3);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  job.Pass(seconds(30), {0, 1});
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Join(2).ok());
  job.Pass(seconds(60), {0, 1, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(2).reason, "round 1 runs with 2 nodes, of which some are done");
}

TEST(RoundTable, GivesUpWhenNodesDoNotComeAndNamesThem) {
  Job job(2, 2);
  NodeInfo first = job.Info(0);
  first.node_rank = 0;
  ASSERT_TRUE(job.Join(first).ok());
  job.Pass(seconds(599), {0});
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  job.Pass(seconds(1), {0});
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitJoinTimeout);
  EXPECT_EQ(
      job.Told(0).outcome.reason,
      "gave up after 600 s: waiting for 1 of 2 nodes: node rank 1 has not joined; here: node0");
  EXPECT_EQ(job.Join(1).code(), StatusCode::kFailedPrecondition);
}

TEST(RoundTable, StartsBelowMaxAfterTheLastCall) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(29), {0});
  EXPECT_EQ(job.Told(0).reason, "last call: 1 of 1 to 3 nodes may start; here: node0");
  job.Pass(seconds(1), {0});
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 1);
}

TEST(RoundTable, StartsBelowMaxOnceAllNodesThatWereStartedAreHere) {
  Job job(1, 3);
  job.table.Expect(3, 0, job.now);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  job.table.Expect(3, 1, job.now);  // One could not be started.
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(RoundTable, AwaitsNoStartedNodeThatIsGone) {
  Job job(1, 3);
  job.table.Expect(3, 0, job.now);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  job.table.Expect(3, 1, job.now);  // It is told of in both ways, and may be the same node.
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(RoundTable, AwaitsNoNodeThatNobodyStartsAgain) {
  JobPolicy policy = Policy(2, 3, 2);
  policy.started_nodes = 3;
  Job job(policy);
  job.Run(3);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(RoundTable, AwaitsANodeThatWasStartedAndIsSilent) {
  JobPolicy policy = Policy(1, 3, 2);
  policy.started_nodes = 3;
  Job job(policy);
  job.Run(3);
  job.Pass(seconds(6), {0, 1});  // Node 2 is suspect, and may be heard again.
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  ASSERT_TRUE(job.Say(2, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

TEST(RoundTable, AwaitsNoNodeOfAStepThatIsGoneWhereAnotherNodeLeads) {
  JobPolicy policy = Policy(2, 3, 2);
  policy.started_nodes = 3;
  Job before(policy);
  before.Run(3);
  Job job(before, seconds(1));  // As after the death of the node that led.
  for (int i : {1, 2}) {
    ASSERT_TRUE(
        job.table.Join(job.Info(i), Says(1, Phase::kRunning), /*local=*/i == 1, job.now).ok());
  }
  ASSERT_TRUE(job.table.NodeDied("id0", 1, "killed", job.now).ok());
  for (int i : {1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.num_nodes, 2);
}

TEST(RoundTable, ASilentNodeBeginsNoRound) {
  Job job(2, 2);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(5));
  ASSERT_TRUE(job.Join(1).ok());
  EXPECT_EQ(job.Told(1).reason, "waiting for 1 of 2 nodes; here: node1; not heard of: node0");
  job.Beat(0);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, ALargeJobIsToldTheReasonOnceASecond) {
  constexpr int kNodes = 2000;
  Job job(kNodes, kNodes);
  size_t told = 0;
  for (int i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(job.Join(i).ok());
    told += job.table.TakeChanged().size();
  }
  EXPECT_LT(told, 4u * kNodes + 64 * 64);  // Each one's own news, the start, and the first 64.
  EXPECT_EQ(job.Told(kNodes - 1).assignment.node_rank, kNodes - 1);
  EXPECT_EQ(job.Told(7).assignment.world_size, 2 * kNodes);
}

TEST(RoundTable, AwaitsNothingOnceTheNodesThatWouldHaveGrownTheRoundAreGone) {
  Job job(1, 3);
  ASSERT_TRUE(job.Join(0).ok());
  job.Pass(seconds(30), {0});
  ASSERT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  job.Pass(seconds(35), {0});
  EXPECT_GT(job.table.NextDeadline(), job.now);  // Otherwise its thread would spin.
  job.Pass(seconds(40));
  EXPECT_EQ(job.Told(0).kind, Kind::kWait);
  EXPECT_EQ(job.table.state(), JobState::kOver);
}

TEST(RoundTable, ANodeIsInTheRoundThatItsComingBackMakesPossible) {
  Job job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(job.Join(2).ok());  // This one is a spare.
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  job.Detach(1);
  NodeInfo again = job.Info(1);
  again.incarnation = 77;
  ASSERT_TRUE(job.Join(again).ok());  // The agent that it replaces was the last to stop.
  ASSERT_EQ(job.table.round(), 2);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
}

TEST(RoundTable, ALargeJobLooksForGrowthAtMostOnceASecond) {
  JobPolicy policy = Policy(1, 200);
  policy.last_call = seconds(10);
  Job job(policy);
  std::vector<int> all;
  for (int i = 0; i < 180; ++i) all.push_back(i);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(job.Join(i).ok());
  job.Pass(seconds(11), std::vector<int>(all.begin(), all.begin() + 100));
  ASSERT_EQ(job.table.state(), JobState::kRunning);
  job.table.TakeChanged();
  size_t told = 0;
  for (int i = 100; i < 180; ++i) {
    job.now += milliseconds(10);
    ASSERT_TRUE(job.Join(i).ok());
    told += job.table.TakeChanged().size();
  }
  EXPECT_LE(told, 2 * 80U);  // The news is not quadratic.
  job.Pass(seconds(12), all);
  EXPECT_EQ(job.Told(179).reason,
            "waiting for 100 of 100 nodes to stop: node100, node101, node102 "
            "and 77 more joined: from 100 to 180 nodes");
}

}  // namespace
}  // namespace hlaunch
