// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/round_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

TEST(RoundTable, FormsARoundWithRanksAndOneMaster) {
  Job job(3, 3);
  NodeInfo big = job.Info(1);
  big.nproc = 5;
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_TRUE(job.Join(big).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kWait);
  EXPECT_EQ(job.Told(2).reason, "waiting for 1 of 3 nodes; here: node1, node2");
  ASSERT_TRUE(job.Join(0).ok());
  const int first_rank[] = {0, 2, 7};
  for (int i = 0; i < 3; ++i) {
    const Directive told = job.Told(i);
    ASSERT_EQ(told.kind, Kind::kRun);
    EXPECT_EQ(told.round, 1);
    EXPECT_EQ(told.assignment.round, 1);
    EXPECT_EQ(told.assignment.node_rank, i);
    EXPECT_EQ(told.assignment.num_nodes, 3);
    EXPECT_EQ(told.assignment.first_rank, first_rank[i]);
    EXPECT_EQ(told.assignment.world_size, 9);
    EXPECT_EQ(told.assignment.master_addr, "10.0.0.1");
    EXPECT_EQ(told.assignment.master_port, 4000);
  }
  EXPECT_THAT(job.table.TakeChanged(), UnorderedElementsAre("id0", "id1", "id2"));
  EXPECT_THAT(job.table.TakeChanged(), IsEmpty());
}

TEST(RoundTable, TellsAllWhatItsFirstNodeOffers) {
  Job job(2, 2);
  for (int i = 0; i < 2; ++i) {
    NodeUpdate ready = Says(0, Phase::kReady);
    ready.store_port = static_cast<uint16_t>(4000 + i);
    ready.coordinator_port = static_cast<uint16_t>(5000 + i);
    ready.worker_store = i == 0;
    ASSERT_TRUE(job.table.Join(job.Info(i), ready, false, job.now).ok());
  }
  const auto expect = [](const Assignment& told) {
    EXPECT_EQ(told.master_port, 4000);
    EXPECT_EQ(told.coordinator_port, 5000);
    EXPECT_TRUE(told.worker_store);
  };
  expect(job.Told(0).assignment);
  expect(job.Told(1).assignment);
  const JobRecord restored = Job(job, seconds(1)).table.Record();
  EXPECT_EQ(restored.coordinator_port, 5000);
  EXPECT_TRUE(restored.worker_store);
}

TEST(RoundTable, TellsNodeRankZeroAloneWhoTheMembersAre) {
  Job job(3, 3);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(job.Join(i).ok());
  EXPECT_THAT(job.Told(0).assignment.members, ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  EXPECT_THAT(job.table.FirstAssignment().members, SizeIs(3));
  EXPECT_THAT(job.Told(1).assignment.members, IsEmpty());  // Its reply is O(1).
  EXPECT_THAT(job.Told(2).assignment.members, IsEmpty());
}

TEST(RoundTable, SucceedsOnlyWhenAllHave) {
  Job job(2, 2);
  job.Run(2);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(1).outcome.exit_code, 0);
  EXPECT_EQ(job.Told(1).outcome.reason, "");
  EXPECT_FALSE(job.table.AllFinished());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kFinished)).ok());
  EXPECT_THAT(job.table.Unfinished(), ElementsAre("node0"));
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kFinished)).ok());
  EXPECT_TRUE(job.table.AllFinished());
}

TEST(RoundTable, RestartsAfterAllHaveStopped) {
  Job job(2, 2, /*max_restarts=*/1);
  job.Run(2);
  ASSERT_TRUE(job.Say(1, Failed(1, Failure(2, 7))).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).round, 1);
  EXPECT_THAT(job.Told(0).reason, HasSubstr("exited with 7; restart 1 of 1"));
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).kind, Kind::kWait);
  EXPECT_THAT(job.Told(1).reason, HasSubstr("waiting for 1 of 2 nodes to stop"));
  NodeUpdate ready = Says(1, Phase::kReady);
  ready.store_port = 4001;
  ASSERT_TRUE(job.Say(0, ready).ok());
  const Assignment again = job.Told(1).assignment;
  EXPECT_EQ(again.round, 2);
  EXPECT_EQ(again.restart_count, 1);
  EXPECT_EQ(again.max_restarts, 1);
  EXPECT_EQ(again.node_rank, 1);
  EXPECT_EQ(again.master_port, 4001);
  ASSERT_TRUE(job.Say(1, Failed(2, Failure(3, 9))).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 9);
  EXPECT_EQ(job.Told(0).outcome.restart_count, 1);
  EXPECT_EQ(job.Told(0).outcome.total_failures, 1);
}

TEST(RoundTable, ANodeThatNeverHeardOfTheRoundMustSayThatItStopped) {
  Job job(2, 2, 1);
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(0, Phase::kReady)).ok());  // Sent before it was told to run.
  EXPECT_EQ(job.Told(1).kind, Kind::kStop);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.round, 2);
}

TEST(RoundTable, DoubledAndLateUpdatesChangeNothing) {
  Job job(2, 2, 3);
  job.Run(2);
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  }
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  ASSERT_TRUE(job.Say(0, Failed(1, Failure(0, 1))).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(0, Says(0, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 1);
  ASSERT_TRUE(job.Say(0, Says(2, Phase::kSucceeded)).ok());
  ASSERT_TRUE(job.Say(0, Says(2, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(1, Says(2, Phase::kSucceeded)).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, 0);
}

// The status code and message become the node's exit code and last line.
TEST(RoundTable, TellsANodeOfAnotherRoundWhichRoundsTheyAreAndWhatToDo) {
  Job job(2, 2);
  job.Run(2);
  const absl::Status ahead = job.Say(0, Says(4, Phase::kRunning));
  EXPECT_EQ(ahead.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(ahead.message()),
              AllOf(HasSubstr("in round 4 of job job"), HasSubstr("none after round 1"),
                    HasSubstr("Start the node again")));
  NodeInfo stranger = job.Info(2);
  const absl::Status old = job.table.Join(stranger, Says(1, Phase::kRunning), false, job.now);
  EXPECT_EQ(old.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(old.message()),
              AllOf(HasSubstr("comes from round 1 of job job, in which this rendezvous does not"),
                    HasSubstr("the job is in round 1"), HasSubstr("Start the node again")));
  const absl::Status newer = job.table.Join(stranger, Says(9, Phase::kRunning), false, job.now);
  EXPECT_EQ(newer.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(newer.message()), HasSubstr("knows none after round 1"));
}

TEST(RoundTable, RefusesContradictions) {
  Job job(2, 2);
  job.Run(2);
  NodeUpdate no_port = Says(0, Phase::kReady), no_failure = Says(1, Phase::kFailed);
  no_port.store_port = 0;
  for (const NodeUpdate& update : {Says(-1, Phase::kReady), Says(0, Phase::kRunning), no_port,
                                   no_failure, Says(1, Phase::kReady), Says(1, Phase::kFinished)}) {
    EXPECT_EQ(job.Say(0, update).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RoundTable, RefusesNodesThatDoNotFit) {
  struct Case {
    std::string what;
    std::function<void(NodeInfo&)> change;
    StatusCode code;
    std::string message;
  };
  const Case cases[] = {
      {"job id", [](NodeInfo& n) { n.job_id = "other"; }, StatusCode::kFailedPrecondition,
       "the job at this endpoint is 'job', not 'other': give both the same --rdzv-id, or each its "
       "own port"},
      {"nnodes", [](NodeInfo& n) { n.policy.max_nodes = 3; }, StatusCode::kFailedPrecondition,
       "job job has --nnodes 2, set by node0 (pid 100), and node1 (pid 101) says 2:3"},
      {"node id", [](NodeInfo& n) { n.node_id = ""; }, StatusCode::kInvalidArgument, "node id"},
      {"incarnation", [](NodeInfo& n) { n.incarnation = 0; }, StatusCode::kInvalidArgument,
       "incarnation"},
      {"min", [](NodeInfo& n) { n.policy.min_nodes = 0; }, StatusCode::kInvalidArgument,
       "--nnodes 0:2"},
      {"nproc", [](NodeInfo& n) { n.nproc = 0; }, StatusCode::kInvalidArgument,
       "--nproc-per-node 0"},
      {"long name", [](NodeInfo& n) { n.host = std::string(257, 'x'); },
       StatusCode::kInvalidArgument, "257 bytes"},
      {"rank range", [](NodeInfo& n) { n.node_rank = 2; }, StatusCode::kInvalidArgument,
       "node rank 2 of node1 (pid 101) is not in 0 to 1 (--nnodes 2)"},
      {"duplicate rank", [](NodeInfo& n) { n.node_rank = 0; }, StatusCode::kUnavailable,
       "node rank 0 in job job is held by node0 (pid 100), which is being asked"},
      {"duplicate node", [](NodeInfo& n) { n.node_id = "id0"; }, StatusCode::kUnavailable,
       "the place of this node in job job is held by node0 (pid 100), which is being asked"},
  };
  Job job(2, 2);
  NodeInfo first = job.Info(0);
  first.node_rank = 0;
  ASSERT_TRUE(job.Join(first).ok());
  for (const Case& c : cases) {
    NodeInfo node = job.Info(1);
    c.change(node);
    const absl::Status status = job.Join(node);
    EXPECT_EQ(status.code(), c.code) << c.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.what;
  }
  EXPECT_EQ(job.Told(0).reason,
            "waiting for 1 of 2 nodes: node rank 1 has not joined; here: node0");
}

TEST(RoundTable, ALossWithEnoughNodesLeftGoesOnWithFewerAndIsCharged) {
  Job job(2, 3, 1);
  job.Run(3);
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 2});
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 1);
}

// One of two voters that is left cannot keep a record before the other one has lapsed. A worker
// that failed meanwhile must not put the loss off.
TEST(RoundTable, SilenceGoesOnWhileARecordWaitsToBeKept) {
  TableJob job(1, 2, /*max_restarts=*/5);
  job.Run(2);
  const Instant silent = job.now;
  job.Pass(seconds(5), {0});
  WorkerFailure failure;
  failure.exit_code = 1;
  NodeUpdate failed = Says(1, NodePhase::kFailed);
  failed.failures = {failure};
  ASSERT_TRUE(job.Say(0, failed).ok());
  while (job.now < silent + seconds(30)) {
    job.now += seconds(1);
    job.Beat(0);
    job.table.StandBy(job.now);
  }
  job.Pass(seconds(9), {0});
  EXPECT_TRUE(job.table.Holds("id1", 2));
  job.Pass(seconds(1), {0});
  EXPECT_FALSE(job.table.Holds("id1", 2));
}

// No node was told yet that it must answer.
TEST(RoundTable, TheMembersOfARoundThatWaitsToBeKeptHaveTheirTimeToAnswer) {
  TableJob job(WithPreflight(2, 2));
  for (const int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_EQ(job.table.state(), JobState::kPreflight);
  for (int second = 0; second < 25; ++second) {
    job.now += seconds(1);
    for (const int i : {0, 1}) job.Beat(i);
    job.table.StandBy(job.now);
  }
  job.Pass(kPreflightTime - seconds(1), {0, 1});
  EXPECT_EQ(job.table.state(), JobState::kPreflight);
  job.Pass(seconds(1), {0, 1});
  EXPECT_NE(job.table.state(), JobState::kPreflight);
}

TEST(RoundTable, APauseWhileARecordWaitsIsNoSilence) {
  TableJob job(1, 2);
  job.Run(2);
  job.table.StandBy(job.now += seconds(1));
  job.table.StandBy(job.now += seconds(60));
  job.Pass(seconds(30), {0});
  EXPECT_TRUE(job.table.Holds("id1", 2));
}

TEST(RoundTable, EndIsAnOutcomeLikeAnyOther) {
  Job job(2, 2, 3);
  job.Run(2);
  job.table.End({.exit_code = 143, .reason = "SIGTERM", .failures = {}}, job.now);
  job.table.End({.exit_code = 1, .reason = "later", .failures = {}}, job.now);
  EXPECT_EQ(job.Told(1).outcome.exit_code, 143);
  EXPECT_EQ(job.Told(1).outcome.reason, "SIGTERM");
}

}  // namespace
}  // namespace hlaunch
