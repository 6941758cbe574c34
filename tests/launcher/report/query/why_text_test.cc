// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/why_text.h"

#include "agent/watch/hang/snapshot_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/report/query/who_answered.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

RankSnapshot Snapshot(Rank rank, int64_t number, bool inside) {
  RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.local_rank = rank % 2;
  snapshot.pid = 100 + rank;
  snapshot.recorded = snapshot.still = true;
  snapshot.state = 'S';
  snapshot.groups = {
      {"0", "default_pg", {0, 1, 2, 3}, {{number, "all_reduce", "[4] Float", inside}}}};
  return snapshot;
}

// A hang: the last rank of node1 has not come to the collective.
JobAnswer Hang() {
  RankSnapshot odd = Snapshot(3, 3, false);
  odd.place = "load (loader.py:88)";
  JobAnswer answer{2, 4, "round 2 runs with 2 nodes and 4 workers", {}};
  answer.nodes = {
      {"node0", 0, 0, 2, SnapshotText({Snapshot(0, 4, true), Snapshot(1, 4, true)}), ""},
      {"node1", 1, 2, 2, SnapshotText({Snapshot(2, 4, true), odd}), ""}};
  return answer;
}

std::string Why(JobAnswer answer, const RankQuestion& question = {}) {
  const auto ranks = TakeSnapshots(answer);
  return WhyText("llama", question, answer, ranks);
}

TEST(WhyText, SaysWhoHoldsUpTheOthersAndWhereEverybodyIs) {
  EXPECT_EQ(Why(Hang()),
            "job llama, round 2: 4 workers\n"
            "no rank has called a collective for 1 s. 3 of 4 ranks are in all_reduce number 4 of "
            "default_pg ([4] Float);\n"
            "  rank 3 (node1, local rank 1, pid 103) has not come to it: it stands in load "
            "(loader.py:88)\n"
            "rank 3 (node1): stands in load (loader.py:88)\n"
            "ranks 0-2 (node0, node1): each is in all_reduce number 4 of default_pg ([4] Float)\n");
}

TEST(WhyText, BlamesNobodyWhereRanksGoOn) {
  JobAnswer answer = Hang();
  std::vector<RankSnapshot> ranks = TakeSnapshots(answer);
  for (RankSnapshot& rank : ranks) rank.still = false;
  EXPECT_EQ(WhyText("llama", {}, answer, ranks),
            "job llama, round 2: 4 workers\n"
            "all 4 ranks go on; default_pg is at all_reduce number 3 to 4\n");
  ranks[0].still = true;
  const std::string text = WhyText("llama", {}, answer, ranks);
  EXPECT_THAT(text, HasSubstr("3 of 4 ranks go on; default_pg is at all_reduce number 3 to 4\n"));
  EXPECT_THAT(text, HasSubstr("rank 0 (node0): is in all_reduce number 4"));
  EXPECT_THAT(text, HasSubstr("ranks 1-3 (node0, node1): each goes on\n"));
  EXPECT_EQ(text.find("has not come"), text.npos);
}

TEST(WhyText, BlamesNobodyWhereSomeRanksWereAsked) {
  RankQuestion question;
  question.ranks = {2, 3};
  EXPECT_EQ(Why(Hang(), question).find("has not come"), std::string::npos);
}

TEST(WhyText, NamesWhoHasNotAnswered) {
  JobAnswer answer = Hang();
  answer.nodes[0].text = "";
  answer.nodes[0].problem = "has not answered for 10 s";
  answer.nodes[1].text = "no JSON";
  const std::string text = Why(answer);
  EXPECT_THAT(text, HasSubstr("\nnode0 (ranks 0,1) has not answered for 10 s\n"));
  EXPECT_THAT(text, HasSubstr("\nnode1 (ranks 2,3) has an answer that cannot be read\n"));
}

TEST(WhyText, SaysWhyNoWorkerRuns) {
  JobAnswer answer;
  answer.explanation = "waiting for 1 of 2 nodes; here: node1";
  EXPECT_EQ(Why(answer), "job llama: no worker runs: waiting for 1 of 2 nodes; here: node1\n");
}

TEST(TakeSnapshots, BelievesANodeOfItsOwnRanksAlone) {
  JobAnswer answer = Hang();
  answer.nodes[1].text = SnapshotText({Snapshot(0, 9, false), Snapshot(2, 4, true)});
  const auto ranks = TakeSnapshots(answer);
  ASSERT_THAT(ranks, SizeIs(3));
  EXPECT_EQ(ranks[0].groups[0].latest.back().sequence, 4);
  EXPECT_EQ(ranks[2].host, "node1");
}

TEST(WhyJson, HoldsAllOfIt) {
  JobAnswer answer = Hang();
  const auto ranks = TakeSnapshots(answer);
  answer.nodes[0].problem = "has left the job";
  const auto json = nlohmann::json::parse(WhyJson("llama", {}, answer, ranks));
  EXPECT_EQ(json["job_id"], "llama");
  EXPECT_EQ(json["round"], 2);
  EXPECT_EQ(json["verdict"]["kind"], "behind");
  EXPECT_EQ(json["verdict"]["culprits"], nlohmann::json({3}));
  EXPECT_EQ(json["ranks"].size(), 4u);
  EXPECT_EQ(json["ranks"][3]["place"], "load (loader.py:88)");
  EXPECT_EQ(json["ranks"][0]["collectives"][0]["number"], 4);
  EXPECT_EQ(json["silent"][0]["ranks"], nlohmann::json({0, 1}));
  EXPECT_EQ(json["silent"][0]["reason"], "has left the job");
}

TEST(CheckRanks, NamesTheRankThatIsNotThere) {
  RankQuestion question;
  EXPECT_TRUE(CheckRanks(question, Hang()).ok());
  question.ranks = {3};
  EXPECT_TRUE(CheckRanks(question, Hang()).ok());
  question.ranks = {0, 4};
  EXPECT_EQ(CheckRanks(question, Hang()).message(), "--rank 4: round 2 has 4 ranks, from 0 on");
  EXPECT_TRUE(CheckRanks(question, {}).ok());
}

TEST(NameOf, ShowsTheFirstFewOfManyHosts) {
  JobAnswer answer;
  std::vector<Rank> ranks;
  for (int i = 0; i < 6; ++i) {
    answer.nodes.push_back({"n" + std::to_string(i), i, i, 1, "", ""});
    ranks.push_back(i);
  }
  EXPECT_EQ(NameOf(ranks, answer), "ranks 0-5 (n0, n1, n2, n3 and 2 more)");
  EXPECT_EQ(NameOf({5}, answer), "rank 5 (n5)");
}

TEST(SilentText, ShowsTheFirstFewOfMany) {
  JobAnswer answer;
  for (int i = 0; i < 20; ++i) answer.nodes.push_back({"n", i, i, 1, "", "has left the job"});
  const std::string text = SilentText(answer);
  EXPECT_THAT(text, StartsWith("n (rank 0) has left the job\n"));
  EXPECT_THAT(text, ::testing::EndsWith("and 4 more nodes have not answered\n"));
  EXPECT_THAT(SilentText({}), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
