// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_model.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/report/status/time_words.h"
#include "tests/launcher/report/status/jobs_to_see.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::map<std::string, std::string> FactsOf(const StatusModel& model) {
  std::map<std::string, std::string> facts;
  for (const Fact& fact : model.facts) facts[fact.name] = fact.value;
  return facts;
}

TEST(ModelOf, SaysWhatARunningJobDoes) {
  const StatusModel model = ModelOf(RestartedJob(), "--rdzv-endpoint node0:29400");
  EXPECT_EQ(model.light, Light::kGood);
  EXPECT_EQ(model.state, "running");
  EXPECT_EQ(model.sentence, "round 2 runs with 2 nodes and 4 workers");
  EXPECT_EQ(model.title, "2/2 running, train-17");
  EXPECT_EQ(model.told, "2027-01-15 08:05:00 UTC");
  EXPECT_THAT(model.awaited, IsEmpty());
  std::map<std::string, std::string> facts = FactsOf(model);
  EXPECT_EQ(facts["Restarts"], "1 of 3");
  EXPECT_EQ(facts["Goodput"], "93.3 %: ran 4 min 40 s of 5 min 0 s");
  EXPECT_THAT(model.commands, ElementsAre("hlaunch why train-17 --rdzv-endpoint node0:29400",
                                          "hlaunch stacks train-17 --rdzv-endpoint node0:29400"));
  EXPECT_THAT(ModelOf(RestartedJob()).commands, IsEmpty());
  JobStatus of_cluster = RestartedJob();
  of_cluster.job_id = "hlaunch-17";
  EXPECT_THAT(ModelOf(of_cluster, "--rdzv-endpoint node0:29400").commands,
              ElementsAre("hlaunch why 17", "hlaunch stacks 17"));
}

TEST(ModelOf, TellsRoundsWithWhyTheyEndedAndWhatARestartTook) {
  const StatusModel model = ModelOf(RestartedJob());
  ASSERT_EQ(model.rounds.size(), 2u);
  const RoundRow &second = model.rounds[0], &first = model.rounds[1];
  EXPECT_EQ(first.name, "1");
  EXPECT_EQ(first.ran, "1 min 40 s");
  EXPECT_EQ(first.took, "7 s");
  EXPECT_THAT(first.end, HasSubstr("rank 3 on node1"));
  EXPECT_FALSE(first.current);
  EXPECT_EQ(first.phases.size(), 4u);
  EXPECT_TRUE(second.current);
  EXPECT_EQ(second.took, "13 s");
  EXPECT_EQ(second.ran, "3 min 0 s");
  EXPECT_EQ(second.phases.back().kind, RoundPhase::Kind::kRunning);
  EXPECT_EQ(second.phases.back().to_ms, kNoon + 300000);
  EXPECT_EQ(model.line_from_ms, kNoon);
  EXPECT_EQ(model.line_to_ms, kNoon + 300000);
}

TEST(ModelOf, KeepsTheLastLinesOfTheRankThatFailed) {
  const StatusModel model = ModelOf(RestartedJob());
  EXPECT_EQ(model.last_lines_of, "rank 3 on node1 (pid 4242), which exited with code 7 in round 1");
  EXPECT_THAT(model.last_lines, ElementsAre("step 41 loss 2.17", "RuntimeError: HBM is gone"));
  EXPECT_EQ(model.log_file, "/logs/train-17/rank3/stderr.log");
  // That round is over: no worker has failed in this one.
  EXPECT_EQ(model.nodes.rows.at(1).cells, "RR");
}

TEST(ModelOf, MarksTheRankThatFailedInTheRoundThatIsShown) {
  JobStatus job = RestartedJob();
  job.state = JobState::kStopping;
  job.failed_round = 2;
  Stand(job.nodes[0], NodeStanding::kStopping);
  Stand(job.nodes[1], NodeStanding::kReady);
  const StatusModel model = ModelOf(job);
  EXPECT_EQ(model.light, Light::kBad);
  EXPECT_THAT(model.awaited, ElementsAre("node0 (node rank 0): stopping"));
  EXPECT_EQ(model.nodes.rows.at(1).cells, "WX");
  EXPECT_EQ(model.nodes.rows.at(1).note, "rank 3 failed");
}

TEST(ModelOf, SaysWhomAJobWaitsFor) {
  const StatusModel model = ModelOf(WaitingJob());
  EXPECT_EQ(model.light, Light::kWaiting);
  EXPECT_EQ(model.state, "waiting for nodes");
  EXPECT_EQ(model.rounds.at(0).name, "next");
  EXPECT_EQ(model.rounds[0].phases.at(0).to_ms - kNoon, 12000);
  EXPECT_EQ(FactsOf(model).count("Goodput"), 0u);
}

TEST(ModelOf, NamesSilentNodesAsAwaited) {
  const StatusModel model = ModelOf(HugeJob());
  EXPECT_EQ(model.light, Light::kBad);
  EXPECT_THAT(model.awaited, ElementsAre("gpu1024 (node rank 1024): silent for 7 s"));
}

// Whoever rewords a state changes no colour, no letter and nobody who is awaited.
TEST(ModelOf, DoesNotReadTheWordsOfAState) {
  JobStatus job = HugeJob();
  for (NodeStatus& node : job.nodes) node.state = "left: stopping, silent";
  const StatusModel model = ModelOf(job), before = ModelOf(HugeJob());
  EXPECT_EQ(model.light, before.light);
  EXPECT_EQ(model.awaited.size(), before.awaited.size());
  ASSERT_EQ(model.nodes.rows.size(), before.nodes.rows.size());
  for (size_t i = 0; i < model.nodes.rows.size(); ++i) {
    EXPECT_EQ(model.nodes.rows[i].light, before.nodes.rows[i].light);
    EXPECT_EQ(model.nodes.rows[i].cells, before.nodes.rows[i].cells);
  }
  EXPECT_EQ(model.nodes.folds.at(0).nodes, before.nodes.folds.at(0).nodes);
}

TEST(ModelOf, ComparesWhatNodesMeasured) {
  const StatusModel model = ModelOf(HugeJob());
  ASSERT_EQ(model.figures.size(), 1u);
  EXPECT_EQ(model.figures[0].range, "4.1 GB/s to 12.2 GB/s");
  EXPECT_EQ(model.figures[0].odd, "gpu77: 4.1 GB/s");
}

TEST(ModelOf, TellsHowAJobEnded) {
  JobStatus job = RestartedJob();
  job.state = JobState::kOver;
  job.rounds[1].stopping_ms = kNoon + 200000;
  job.ran_for = std::chrono::seconds(180);
  const StatusModel well = ModelOf(job);
  EXPECT_EQ(well.state, "ended well");
  EXPECT_EQ(well.rounds[0].end, "all ranks ended well");
  EXPECT_FALSE(well.rounds[0].current);
  EXPECT_EQ(FactsOf(well)["Goodput"], "90.0 %: ran 3 min 0 s of 3 min 20 s");
  EXPECT_EQ(well.line_to_ms, kNoon + 200000);
  job.exit_code = 7;
  EXPECT_EQ(ModelOf(job).state, "failed, exit code 7");
  EXPECT_EQ(ModelOf(job).light, Light::kBad);
}

TEST(ModelOf, KnowsLittleOfAnOldRendezvous) {
  JobStatus job = RestartedJob();
  job.rounds.clear();
  job.began_ms = job.told_ms = 0;
  job.failure.reset();
  const StatusModel model = ModelOf(job);
  EXPECT_THAT(model.rounds, IsEmpty());
  EXPECT_EQ(model.told, "");
  EXPECT_EQ(FactsOf(model).count("Goodput"), 0u);
}

TEST(GroupNodes, FoldsThoseThatAreAlike) {
  const NodeGroups groups = GroupNodes(HugeJob());
  ASSERT_EQ(groups.folds.size(), 1u);
  EXPECT_EQ(groups.folds[0].nodes, 2046);
  EXPECT_EQ(groups.folds[0].workers, 16368);
  EXPECT_EQ(groups.folds[0].state, "running");
  EXPECT_EQ(groups.folds[0].hosts, "gpu0-gpu2, gpu4-gpu1023, gpu1025-gpu2047");
  ASSERT_EQ(groups.rows.size(), 2u);
  EXPECT_EQ(groups.rows[0].host, "gpu3");
  EXPECT_EQ(groups.rows[0].note, "ECC errors in HBM 2");
  EXPECT_EQ(groups.rows[1].host, "gpu1024");
  EXPECT_EQ(groups.rows[1].cells, "????????");
  EXPECT_EQ(groups.unlisted, 0);
}

TEST(GroupNodes, ShowsAllOfFew) {
  const NodeGroups groups = GroupNodes(RestartedJob());
  EXPECT_EQ(groups.rows.size(), 2u);
  EXPECT_TRUE(groups.folds.empty());
}

TEST(GroupNodes, CountsWhatIsNotListed) {
  JobStatus job = HugeJob();
  job.total_nodes = 5000;
  for (size_t i = 0; i < job.nodes.size(); i += 10) job.nodes[i].drain_reason = job.nodes[i].host;
  const NodeGroups groups = GroupNodes(job);
  int shown = static_cast<int>(groups.rows.size()) + groups.unlisted;
  for (const NodeFold& fold : groups.folds) shown += fold.nodes;
  EXPECT_EQ(shown, 5000);
  EXPECT_LT(groups.rows.size(), 100u);
}

TEST(CompactNames, MakesRangesOfNumbers) {
  EXPECT_EQ(CompactNames({"a9", "a10", "a11", "b", "a12"}, 9), "a9-a11, b, a12");
  EXPECT_EQ(CompactNames({"n08", "n09", "n10", "n1"}, 9), "n08-n10, n1");
  EXPECT_EQ(CompactNames({"n09", "n010", "7", "8", "99999999999"}, 9),
            "n09, n010, 7-8, 99999999999");
  EXPECT_EQ(CompactNames({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(CompactNames({}, 2), "");
}

TEST(SpanWords, AreWhatPeopleSay) {
  EXPECT_EQ(SpanWords(0), "0 s");
  EXPECT_EQ(SpanWords(40), "0.1 s");
  EXPECT_EQ(SpanWords(990), "0.9 s");
  EXPECT_EQ(SpanWords(7999), "7 s");
  EXPECT_EQ(SpanWords(123000), "2 min 3 s");
  EXPECT_EQ(SpanWords(11520000), "3 h 12 min");
  EXPECT_EQ(SpanWords(187200000), "2 d 4 h");
  EXPECT_EQ(SpanWords(-5), "0 s");
  EXPECT_EQ(ClockWords(kNoon), "08:00:00");
  EXPECT_EQ(DateWords(0), "");
}

}  // namespace
}  // namespace hlaunch
