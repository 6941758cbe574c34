// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/proposal.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using absl::StatusCode;
using std::chrono::seconds;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

NodeUpdate Unfit(Round round, const std::string& why) {
  NodeUpdate update = Says(round, Phase::kPrepared);
  update.unfit = why;
  return update;
}

NodeUpdate Measured(Round round, double processor) {
  NodeUpdate update = Says(round, Phase::kPrepared);
  update.health.hardware = "8 × CPU";
  update.health.figures[Figure::kProcessor] = processor;
  return update;
}

TEST(RoundTable, ARoundRunsOnceAllHaveCheckedIt) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  for (int i : {0, 1}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kPrepare);
    EXPECT_EQ(job.Told(i).assignment.node_rank, i);
  }
  EXPECT_EQ(job.Say(0, Says(1, Phase::kRunning)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(job.Say(0, Says(1, Phase::kReady)).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kPrepare);
  EXPECT_EQ(job.table.Explain(job.now), "round 1 with 2 nodes is being checked; waiting for node1");
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kPrepared)).ok());
  for (int i : {0, 1}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kRunning)).ok());
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kPrepared)).ok());  // This word comes late.
  EXPECT_EQ(job.Told(1).kind, Kind::kRun);
}

TEST(RoundTable, ANodeThatAnswersThePreflightTwiceAnswersForNoOther) {
  Job job(WithPreflight(2, 2));
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
    EXPECT_EQ(job.Told(0).kind, Kind::kPrepare);
  }
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(RoundTable, AnUnfitNodeEndsAJobThatCannotDoWithoutIt) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(1, Unfit(1, "cannot reach 10.0.0.1:4000")).ok());
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitPreflight);
  EXPECT_EQ(job.Told(0).outcome.reason, "round 1 cannot start: node1: cannot reach 10.0.0.1:4000");
}

TEST(RoundTable, ASpareReplacesAnUnfitNodeUncharged) {
  Job job(WithPreflight(3, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.Join(3).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(1, Unfit(1, "no route")).ok());
  ASSERT_TRUE(job.Say(2, Says(1, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id1");
  EXPECT_EQ(ended[0].status,
            absl::FailedPreconditionError("this node was excluded: node1: no route"));
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 2, 3}) EXPECT_EQ(job.Told(i).kind, Kind::kPrepare);
  for (int i : {0, 2, 3}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(3).assignment.round, 2);
  EXPECT_EQ(job.Told(3).assignment.node_rank, 1);
  EXPECT_EQ(job.Told(3).assignment.restart_count, 0);
}

TEST(RoundTable, ASpareReplacesANodeThatIsSlowTwiceUncharged) {
  Job job(WithPreflight(4, 4));
  for (int i : {0, 1, 2, 3, 4}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kStop);
  EXPECT_THAT(job.Told(0).reason, testing::HasSubstr("round 1 is measured once more: node2"));
  EXPECT_TRUE(job.table.TakeEnded().empty());
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(2).assignment.node_rank, 2);  // All nodes have their places again.
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Measured(2, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(2, 9)).ok());
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id2");
  EXPECT_THAT(std::string(ended[0].status.message()), testing::HasSubstr("processor 9 ms"));
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kReady)).ok());
  for (int i : {0, 1, 3, 4}) ASSERT_TRUE(job.Say(i, Measured(3, 3)).ok());
  std::vector<int> ranks;
  for (int i : {0, 1, 3, 4}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kRun);
    EXPECT_EQ(job.Told(i).assignment.restart_count, 0);
    ranks.push_back(job.Told(i).assignment.node_rank);
  }
  EXPECT_THAT(ranks, testing::UnorderedElementsAre(0, 1, 2, 3));
  const JobRecord record = job.table.Record();
  EXPECT_EQ(record.total_excluded, 1);
  ASSERT_EQ(record.excluded.size(), 1u);
  EXPECT_THAT(record.excluded[0], testing::HasSubstr("node2: processor 9 ms"));
  Outcome enough;
  enough.exit_code = 1;
  job.table.End(enough, job.now);
  EXPECT_EQ(job.Told(0).outcome.excluded, record.excluded);
}

TEST(RoundTable, ASuspicionIsForgottenWhereTheSecondMeasurementCameToNothing) {
  Job job(WithPreflight(3, 3));
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kReady)).ok());
  for (int i : {0, 3}) ASSERT_TRUE(job.Say(i, Measured(3, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(3, 9)).ok());
  EXPECT_THAT(job.Told(0).reason, testing::HasSubstr("round 3 is measured once more: node2"));
  EXPECT_EQ(job.table.Record().total_excluded, 0);
}

TEST(RoundTable, ANodeThatWasSlowOnceStays) {
  Job job(WithPreflight(3, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Measured(2, 3)).ok());
  for (int i : {0, 1, 2}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.notice, "");
}

TEST(RoundTable, ANodeThatIsSlowOnlyTheSecondTimeStaysToo) {
  Job job(WithPreflight(4, 4));
  for (int i : {0, 1, 2, 3, 4}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1, 3}) ASSERT_TRUE(job.Say(i, Measured(1, 3)).ok());
  ASSERT_TRUE(job.Say(2, Measured(1, 9)).ok());
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 2, 3}) ASSERT_TRUE(job.Say(i, Measured(2, 3)).ok());
  ASSERT_TRUE(job.Say(1, Measured(2, 9)).ok());
  for (int i : {0, 1, 2, 3}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  EXPECT_TRUE(job.table.TakeEnded().empty());
}

TEST(RoundTable, ExcludesAsManyOfTheBadAtOnceAsItsShareAllows) {
  for (const int bad : {2, 3}) {
    Job job(WithPreflight(1, 8));
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(job.Join(i).ok());
    NodeUpdate faulty = Says(1, Phase::kPrepared);
    faulty.health.fault = "heat";
    for (int i = 0; i < 8; ++i) {
      ASSERT_TRUE(job.Say(i, i < 8 - bad ? Says(1, Phase::kPrepared) : faulty).ok());
    }
    EXPECT_EQ(job.table.TakeEnded().size(), bad == 2 ? 2u : 0u);
  }
}

TEST(RoundTable, ABadNodeThatIsNeededRunsAndNodeRankZeroIsTold) {
  Job job(WithPreflight(2, 2));
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  NodeUpdate faulty = Says(1, Phase::kPrepared);
  faulty.health.fault = "devices: 7 of the 8 hpu devices asked for work";
  ASSERT_TRUE(job.Say(1, faulty).ok());
  for (int i : {0, 1}) EXPECT_EQ(job.Told(i).kind, Kind::kRun);
  EXPECT_THAT(job.Told(0).assignment.notice, testing::HasSubstr("node1: devices: 7 of the 8"));
  EXPECT_EQ(job.Told(1).assignment.notice, "");
}

TEST(RoundTable, ExcludesNoMoreOfTheBadThanItsShareHoweverManyRoundsItTakes) {
  Job job(WithPreflight(1, 4));
  for (int i : {0, 1, 2, 3}) ASSERT_TRUE(job.Join(i).ok());
  NodeUpdate faulty = Says(1, Phase::kPrepared);
  faulty.health.fault = "heat";
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(3, faulty).ok());
  EXPECT_EQ(job.table.TakeEnded().size(), 1u);
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 1, 2});
  faulty.round = 2;
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(2, faulty).ok());
  EXPECT_TRUE(job.table.TakeEnded().empty());
  EXPECT_EQ(job.Told(2).kind, Kind::kRun);
}

TEST(RoundTable, ANodeThatDoesNotAnswerThePreflightIsExcluded) {
  Job job(WithPreflight(1, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  job.Pass(seconds(14), {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kPrepare);
  job.Pass(seconds(1), {0, 1});
  EXPECT_EQ(job.Told(0).reason, "round 1 cannot start: node1 did not answer");
}

// A host that stands still while a round is checked ends no job that may restart.
TEST(RoundTable, ARestartThatIsLeftIsSpentOnARoundThatCannotStart) {
  JobPolicy policy = WithPreflight(2, 2);
  policy.max_restarts = 1;
  Job job(policy);
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  job.Pass(kPreflightTime, {0, 1});
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
  EXPECT_EQ(job.Told(0).reason, "round 1 cannot start: node1 did not answer; restart 1 of 1");
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(1).assignment.restart_count, 1);
  job.Pass(kPreflightTime, {0, 1});
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitPreflight);
}

// After a restart of the rendezvous the nodes come back within the time until they are given up,
// and only then have their checks to go on.
TEST(RoundTable, ARestartOfTheRendezvousCostsNoNodeTheTimeForItsChecks) {
  JobPolicy policy = WithPreflight(2, 2);
  policy.lease.loss_limit = seconds(8);
  Job before(policy);
  for (int i : {0, 1}) ASSERT_TRUE(before.Join(i).ok());
  Job job(before, seconds(5));
  for (int i : {0, 1}) ASSERT_TRUE(job.Join(i).ok());
  job.Pass(seconds(17), {0, 1});
  EXPECT_EQ(job.table.state(), JobState::kPreflight);
  job.Pass(kPreflightTime + seconds(1), {0, 1});
  EXPECT_EQ(job.table.state(), JobState::kOver);
}

TEST(RoundTable, AnUnfitNodeThatComesBackStopsNoRound) {
  Job job(WithPreflight(2, 3));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Join(i).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.Say(2, Unfit(1, "no route")).ok());
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(30), {0, 1});
  for (int i : {0, 1}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kPrepared)).ok());
  EXPECT_EQ(job.Told(0).assignment.round, 2);
  NodeInfo again = job.Info(2);
  again.incarnation = 50;
  ASSERT_TRUE(job.Join(again).ok());
  for (int second = 0; second < 40; ++second) {
    job.Pass(seconds(1), {0, 1});
    job.table.Heard("id2", 50, job.now);
  }
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  ASSERT_TRUE(job.Join(4).ok());  // A fit node joins.
  EXPECT_EQ(job.Told(0).kind, Kind::kStop);
}

TEST(RoundTable, ANodeLostInPreflightIsNotCharged) {
  Job job(WithPreflight(2, 2));
  ASSERT_TRUE(job.Join(0).ok());
  ASSERT_TRUE(job.Join(1).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kPrepared)).ok());
  ASSERT_TRUE(job.table.NodeDied("id1", 2, "power", job.now).ok());
  ASSERT_TRUE(job.Say(0, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.Told(0).reason,
            "waiting for 1 of 2 nodes; here: node0 (node1 (10.0.0.2) was lost: power)");
  ASSERT_TRUE(job.Join(2).ok());
  EXPECT_EQ(job.Told(2).kind, Kind::kPrepare);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 0);
}

TEST(RoundTable, ALoneNodeHasNothingToCheck) {
  Job job(WithPreflight(1, 1));
  ASSERT_TRUE(job.Join(0).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

}  // namespace
}  // namespace hlaunch
