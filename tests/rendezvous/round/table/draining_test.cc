// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/draining.h"

#include "gmock/gmock.h"
#include "tests/rendezvous/round/table/table_job.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Kind = Directive::Kind;

JobPolicy WithSpares(int nodes, int spares) {
  JobPolicy policy = Policy(nodes, nodes);
  policy.spares = spares;
  return policy;
}

NodeUpdate WillGo(Round round, NodePhase phase = NodePhase::kRunning) {
  NodeUpdate update = Says(round, phase);
  update.drain_reason = "the host goes down";
  return update;
}

absl::StatusOr<std::string> Drain(TableJob& job, const std::string& node,
                                  Duration within = Duration::zero()) {
  return job.table.Drain({node, "ECC", within, false}, job.now);
}

void Stopped(TableJob& job, const std::vector<int>& nodes, Round round) {
  for (const int i : nodes) ASSERT_TRUE(job.Say(i, Says(round, NodePhase::kReady)).ok());
}

// Checks that the agent of node `i` is told to end without a failure of the job.
void ExpectDismissed(const TableJob& job, int i, const std::string& reason) {
  EXPECT_EQ(job.Told(i).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(i).outcome.exit_code, 0);
  EXPECT_EQ(job.Told(i).outcome.reason, "this node left: it is drained: " + reason);
}

TEST(Draining, ASpareTakesThePlaceAndNothingIsCharged) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(*Drain(job, "node1"), "round 1 ends, and the next begins without node1");
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).reason, "node1 is drained: ECC");
  Stopped(job, {1, 0}, 1);
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  EXPECT_EQ(job.Told(0).assignment.restart_count, 0);
  EXPECT_EQ(job.Told(2).assignment.node_rank, 1);
  ExpectDismissed(job, 1, "ECC");
  EXPECT_EQ(job.table.Record().restarts, 0);
}

TEST(Draining, SaysThatANodeIsStillNeededWhileTheJobWaitsForOthers) {
  TableJob job(3, 3, /*max_restarts=*/1);
  job.Run(3);
  job.Detach(2);
  job.Pass(std::chrono::minutes(5), {0, 1});
  Stopped(job, {0, 1}, 1);
  ASSERT_EQ(job.table.Record().state, JobState::kForming);
  EXPECT_EQ(*Drain(job, "node1"),
            "node1 takes part in the next round only if no other node can take its place");
  ASSERT_TRUE(job.Join(3).ok());
  EXPECT_EQ(job.Told(1).assignment.round, 2);
}

TEST(Draining, ASmallerRoundBeginsAtOnceWhereTheMinimumAllowsIt) {
  TableJob job(2, 3);
  job.Run(3);
  ASSERT_TRUE(Drain(job, "0").ok());  // Names the node by its rank.
  Stopped(job, {0, 1, 2}, 1);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).assignment.num_nodes, 2);
  ExpectDismissed(job, 0, "ECC");
}

TEST(Draining, AJobThatCannotDoWithoutGoesOnUntilAnotherNodeJoins) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  const std::string said =
      "node1 will be gone within 110 s: ECC; nobody can take its place: the job needs 2 nodes and "
      "has 1 without; the round goes on";
  EXPECT_EQ(*Drain(job, "node1", seconds(110)), said);
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_EQ(job.Told(0).news.size(), 1u);
  EXPECT_EQ(job.Told(0).news[0].text, said);
  EXPECT_THAT(job.table.Explain(job.now), HasSubstr("; drained: node1 (ECC)"));
  EXPECT_EQ(job.table.Status(job.now, 0).nodes[1].state, "running, drained");
  EXPECT_EQ(job.table.Status(job.now, 0).nodes[1].drain_reason, "ECC");
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(Draining, ARoundThatIsToKeepItsSizeGoesOnThoughTheMinimumWouldBeThere) {
  JobPolicy policy = Policy(2, 3);
  policy.on_loss = OnLoss::kWait;
  TableJob job(policy);
  job.Run(3);
  EXPECT_EQ(*Drain(job, "node1"),
            "node1 is drained: ECC; nobody can take its place: the job needs 3 nodes and has 2 "
            "without; the round goes on");
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(Draining, AMemberThatCannotBeReplacedTakesPartInTheNextRoundToo) {
  TableJob job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(Drain(job, "node1").ok());
  NodeUpdate failed = Says(1, NodePhase::kFailed);
  failed.failures.push_back(WorkerFailure());
  ASSERT_TRUE(job.Say(0, failed).ok());
  job.Pass(seconds(5), {0, 1});
  ASSERT_EQ(job.Told(1).kind, Kind::kStop);
  Stopped(job, {0, 1}, 1);
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  EXPECT_EQ(job.Told(1).assignment.round, 2);
}

TEST(Draining, ANodesOwnWordCountsTheSameAndMayBeTakenBack) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(job.Say(1, WillGo(1)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Says(1, NodePhase::kRunning)).ok());
  EXPECT_TRUE(job.table.Record().drained.empty());
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, WillGo(1)).ok());
  EXPECT_EQ(job.Told(0).reason, "node1 is drained: the host goes down");
  ASSERT_TRUE(job.Say(1, WillGo(1, NodePhase::kReady)).ok());
  Stopped(job, {0}, 1);
  EXPECT_EQ(job.Told(2).assignment.round, 2);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 0);
  ExpectDismissed(job, 1, "the host goes down");
}

TEST(Draining, ALateWordNeitherDrainsANodeNorTakesThatBack) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(job.Say(1, WillGo(1)).ok());
  ASSERT_TRUE(job.Say(1, Says(0, NodePhase::kReady)).ok());
  EXPECT_EQ(job.table.Record().drained.size(), 1u);
  ASSERT_TRUE(job.Say(1, Says(1, NodePhase::kRunning)).ok());
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_TRUE(job.Say(1, WillGo(0, NodePhase::kReady)).ok());
  EXPECT_TRUE(job.table.Record().drained.empty());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(Draining, ANodeThatStandsByOrJoinsAgainIsNotTaken) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(job.table.Join(job.Info(2), WillGo(0, NodePhase::kReady), false, job.now).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ExpectDismissed(job, 2, "the host goes down");
}

TEST(Draining, ANodeThatIsUndrainedIsUsedAgain) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(Drain(job, "node1").ok());
  EXPECT_EQ(*job.table.Drain({"node1", "", {}, true}, job.now), "node1 is used again");
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, WillGo(1)).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(job.table.Drain({"node1", "", {}, true}, job.now).status()));
}

TEST(Draining, SurvivesARestartOfTheRendezvous) {
  TableJob before(WithSpares(2, 1));
  before.Run(2);
  ASSERT_TRUE(Drain(before, "node1").ok());
  TableJob job(before, seconds(3));
  for (const int i : {0, 1}) {
    ASSERT_TRUE(job.table.Join(job.Info(i), Says(1, NodePhase::kRunning), false, job.now).ok());
  }
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(0).reason, "node1 is drained: ECC");
}

TEST(Draining, WhoWasDismissedHearsSoAfterARestartOfTheRendezvousToo) {
  TableJob before(WithSpares(2, 1));
  before.Run(2);
  ASSERT_TRUE(before.Join(2).ok());
  ASSERT_TRUE(Drain(before, "node1").ok());
  Stopped(before, {1, 0}, 1);
  ASSERT_EQ(before.table.Record().round, 2u);
  TableJob job(before, seconds(3));
  ASSERT_TRUE(job.table.Join(job.Info(1), Says(1, NodePhase::kReady), false, job.now).ok());
  ExpectDismissed(job, 1, "ECC");
}

TEST(Draining, TheWordOfAPersonEndsWithTheAgent) {
  TableJob job(2, 2, 1);
  job.Run(2);
  ASSERT_TRUE(Drain(job, "node1").ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "killed", job.now).ok());
  EXPECT_TRUE(job.table.Record().drained.empty());
}

TEST(Draining, RefusesWhatItCannotDo) {
  TableJob job(2, 2);
  ASSERT_TRUE(job.Join(job.Info(0), true).ok());
  ASSERT_TRUE(job.Join(1).ok());
  const absl::Status unknown = Drain(job, "node7").status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_EQ(unknown.message(),
            "the job has no node node7; it has node0 (node rank 0, id id0), node1 (node rank 1, id "
            "id1)");
  const absl::Status local = Drain(job, "node0").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(local));
  EXPECT_THAT(std::string(local.message()), HasSubstr("node0 has the job's rendezvous"));
  TableJob alone(1, 1);
  alone.Run(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Drain(alone, "node0").status()));
}

TEST(Draining, OfSeveralNodesWithOneNameTheirIdsAreAskedFor) {
  TableJob job(2, 3);
  NodeInfo second = job.Info(1);
  second.host = "node0";
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(second).ok());
  const absl::Status ambiguous = Drain(job, "node0").status();
  EXPECT_TRUE(absl::IsInvalidArgument(ambiguous));
  EXPECT_THAT(std::string(ambiguous.message()), HasSubstr("node0 names 2 nodes: node0 ("));
  EXPECT_TRUE(Drain(job, "id1").ok());
}

TEST(Draining, OfTheLocalNodesOwnWordAllAreTold) {
  TableJob job(1, 2);
  ASSERT_TRUE(job.Join(job.Info(0), true).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, WillGo(1)).ok());
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
  ASSERT_EQ(job.Told(1).news.size(), 1u);
  EXPECT_THAT(job.Told(1).news[0].text, HasSubstr("node0 is drained: the host goes down; it has"));
}

TEST(Draining, ARoundThatIsNearlyDoneIsLeftAlone) {
  TableJob job(WithSpares(2, 1));
  job.Run(2);
  ASSERT_TRUE(job.Join(2).ok());
  ASSERT_TRUE(job.Say(0, Says(1, NodePhase::kSucceeded)).ok());
  ASSERT_TRUE(Drain(job, "node1").ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

}  // namespace
}  // namespace hlaunch
