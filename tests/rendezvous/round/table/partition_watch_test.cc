// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/partition_watch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/exit_code.h"
#include "tests/rendezvous/round/table/table_job.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Job = TableJob;
using Kind = Directive::Kind;
using Phase = NodePhase;

constexpr char kCutOff[] = "node1 is cut off from node0, node2, though all reach the rendezvous";

NodeUpdate Misses(const std::vector<int>& node_ranks) {
  NodeUpdate update = Says(1, Phase::kRunning);
  update.unreached = node_ranks;
  return update;
}

// Runs round 1 with three nodes, of which node1 is cut off.
void Cut(Job& job) {
  job.Run(3);
  ASSERT_TRUE(job.Say(1, Misses({0, 2})).ok());
  ASSERT_TRUE(job.Say(0, Misses({1})).ok());
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_TRUE(job.Told(0).news.empty());
  ASSERT_TRUE(job.Say(2, Misses({1})).ok());
}

JobPolicy Acting(JobPolicy policy, PreflightAction action) {
  policy.on_partition = action;
  return policy;
}

TEST(PartitionWatch, TheNextRoundIsWithoutTheNodeThatIsCutOff) {
  Job job(2, 3, 1);
  Cut(job);
  for (int i : {0, 1, 2}) {
    EXPECT_EQ(job.Told(i).kind, Kind::kStop);
    EXPECT_EQ(job.Told(i).reason,
              "node1 (10.0.0.2) was lost: it is cut off from node0, node2, though all reach the "
              "rendezvous; it ran ranks 2-3; restart 1 of 1");
  }
  EXPECT_TRUE(job.table.TakeEnded().empty());  // Its workers may live.
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  EXPECT_EQ(job.table.state(), JobState::kStopping);
  ASSERT_TRUE(job.Say(1, Says(1, Phase::kReady)).ok());
  const auto ended = job.table.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].node_id, "id1");
  EXPECT_EQ(ended[0].status,
            absl::FailedPreconditionError(absl::StrCat("this node was excluded: ", kCutOff)));
  job.Pass(seconds(40), {0, 2});
  EXPECT_EQ(job.Told(2).kind, Kind::kRun);
  EXPECT_EQ(job.Told(2).assignment.round, 2);
  EXPECT_EQ(job.Told(2).assignment.num_nodes, 2);
  EXPECT_EQ(job.Told(2).assignment.restart_count, 1);
  EXPECT_EQ(job.table.Record().excluded, std::vector<std::string>{kCutOff});
}

TEST(PartitionWatch, PeopleAreToldOnceAndAgainWhenItIsOver) {
  Job job(3, 3, 1);
  Cut(job);
  ASSERT_TRUE(job.Say(2, Misses({1})).ok());
  ASSERT_EQ(job.Told(0).news.size(), 1u);
  EXPECT_EQ(job.Told(0).news[0].text,
            absl::StrCat(kCutOff, "; nobody is excluded: the job cannot do without"));
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Misses({})).ok());
  EXPECT_EQ(job.Told(2).news.back().text, "all nodes reach each other again");
  EXPECT_EQ(job.Told(2).kind, Kind::kRun);
}

TEST(PartitionWatch, WhoDoesNotAnswerTheOthersIsNotExcludedByTheirWord) {
  Job job(2, 3, 1);
  job.Run(3);
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Misses({1})).ok());
  job.Pass(PartitionWatch::kBothSpeak - seconds(2), {0, 1, 2});
  EXPECT_TRUE(job.Told(0).news.empty());
  job.Pass(seconds(3), {0, 1, 2});
  ASSERT_EQ(job.Told(0).news.size(), 1u);
  EXPECT_THAT(job.Told(0).news[0].text, HasSubstr("node0 does not reach node1, by its own word"));
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
}

TEST(PartitionWatch, AJobThatIsToEndDoes) {
  Job job(Acting(Policy(2, 3, 1), PreflightAction::kFail));
  Cut(job);
  EXPECT_EQ(job.Told(0).kind, Kind::kFinish);
  EXPECT_EQ(job.Told(0).outcome.exit_code, kExitNodeLost);
  EXPECT_EQ(job.Told(0).outcome.reason, kCutOff);
}

TEST(PartitionWatch, ASpareTakesThePlaceAndARoundBeginsWithoutOldWords) {
  Job job(3, 3, 2);
  job.Run(3);
  ASSERT_TRUE(job.Join(3).ok());
  ASSERT_TRUE(job.Say(1, Misses({0, 2})).ok());
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Misses({1})).ok());
  for (int i : {0, 1, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  for (int i : {0, 2, 3}) ASSERT_TRUE(job.Say(i, Says(2, Phase::kRunning)).ok());
  job.Pass(seconds(60), {0, 2, 3});
  EXPECT_EQ(job.Told(3).kind, Kind::kRun);
  EXPECT_EQ(job.Told(3).assignment.round, 2);
}

TEST(PartitionWatch, ANodeThatIsLostWhileItStopsHoldsUpNothing) {
  Job job(2, 3, 1);
  Cut(job);
  for (int i : {0, 2}) ASSERT_TRUE(job.Say(i, Says(1, Phase::kReady)).ok());
  job.Pass(seconds(80), {0, 2});
  EXPECT_EQ(job.Told(0).kind, Kind::kRun);
  EXPECT_EQ(job.Told(0).assignment.num_nodes, 2);
}

}  // namespace
}  // namespace hlaunch
