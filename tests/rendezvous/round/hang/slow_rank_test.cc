// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/slow_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankShare Seen(Rank rank, int64_t waited, int64_t looks = 100,
               std::vector<std::string> groups = {"0"}, int64_t saved = 0) {
  RankShare share;
  share.rank = rank;
  share.local_rank = rank % 4;
  share.host = absl::StrCat("node", rank / 4);
  share.pid = 1000 + rank;
  share.steps = share.all = {looks, waited, saved};
  share.groups = std::move(groups);
  return share;
}

std::vector<RankShare> AllSeen(const std::vector<int64_t>& waited, int64_t looks = 100) {
  std::vector<RankShare> ranks;
  for (const int64_t one : waited)
    ranks.push_back(Seen(static_cast<Rank>(ranks.size()), one, looks));
  return ranks;
}

struct Case {
  const char* name;
  std::vector<RankShare> ranks;
  std::vector<Rank> slow;
};

TEST(SlowRank, IsTheOneThatIsSeldomSeenInACollectiveWhileHalfOfTheOthersOftenAre) {
  const Case cases[] = {
      {"one of four", AllSeen({47, 52, 3, 50}), {2}},
      {"equal ranks", AllSeen({30, 28, 33, 29}), {}},
      {"equal ranks that do nothing but wait", AllSeen({100, 99, 100, 98}), {}},
      {"a fifth", AllSeen({25, 26, 1, 27}), {2}},
      {"less than a fifth", AllSeen({18, 19, 0, 17}), {}},
      {"one of two", AllSeen({40, 0}), {1}},
      {"all ranks of a host", AllSeen({41, 40, 44, 42, 2, 0, 3, 1}), {4, 5, 6, 7}},
      {"more than half are slow: few wait", AllSeen({0, 1, 2, 40, 41}), {}},
      {"too few looks", AllSeen({12, 11, 0, 12}, 23), {}},
      {"few looks, and it may be chance", AllSeen({9, 8, 1, 10}, 30), {}},
      {"few looks, and it is clear", AllSeen({14, 15, 0, 16}, 30), {2}},
      {"nobody", {}, {}},
      {"one rank", AllSeen({0}), {}},
      {"ranks of no common group",
       {Seen(0, 50, 100, {"a"}), Seen(1, 0, 100, {"b"}), Seen(2, 50, 100, {"a"}),
        Seen(3, 0, 100, {"b"})},
       {}},
      {"the stages of a pipeline, each with a group of its own for the gradients",
       {Seen(0, 40, 100, {"s0"}), Seen(1, 42, 100, {"s0"}), Seen(2, 2, 100, {"s1"}),
        Seen(3, 1, 100, {"s1"})},
       {}},
      {"one in a mesh: its row waits for it, and the other row for them",
       {Seen(0, 40, 100, {"r0", "c0"}), Seen(1, 1, 100, {"r0", "c1"}),
        Seen(2, 41, 100, {"r1", "c0"}), Seen(3, 43, 100, {"r1", "c1"})},
       {1}},
      {"checkpoints of rank 0",
       {Seen(0, 2, 100, {"0"}, 40), Seen(1, 44), Seen(2, 45), Seen(3, 43)},
       {}},
      {"checkpoints of rank 0, which is slow besides",
       {Seen(0, 2, 100, {"0"}, 20), Seen(1, 64), Seen(2, 65), Seen(3, 63)},
       {0}},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(FindSlowRanks(one.ranks).ranks, one.slow) << one.name;
  }
}

TEST(SlowRank, TheRanksThatWaitAreThoseOfAllItsGroups) {
  const SlowRanks slow =
      FindSlowRanks({Seen(0, 40, 100, {"r0", "c0"}), Seen(1, 1, 100, {"r0", "c1"}),
                     Seen(2, 41, 100, {"r1", "c0"}), Seen(3, 43, 100, {"r1", "c1"})});
  EXPECT_EQ(slow.waiting, 2u);
  EXPECT_NEAR(slow.lost, 0.42, 0.001);
}

// Equal ranks are seen at random moments: as many looks as in a month, in jobs of some sizes.
TEST(SlowRank, ChanceNamesNobody) {
  std::mt19937 random(1);
  int named = 0;
  for (const int size : {2, 4, 64, 1024}) {
    for (const double waits : {0.05, 0.3, 0.5, 0.8}) {
      std::binomial_distribution<int64_t> waited(100, waits);
      for (int job = 0; job < (size > 64 ? 20 : 500); ++job) {
        std::vector<int64_t> all;
        for (int rank = 0; rank < size; ++rank) all.push_back(waited(random));
        named += FindSlowRanks(AllSeen(all)).ranks.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_LE(named, 1);
}

TEST(SlowRank, IsToldWithWhatWasSeen) {
  std::vector<RankShare> ranks = AllSeen({47, 52, 3, 50});
  ranks[2].place = "load (train.py:31)";
  ranks[2].at_place = 71;
  ranks[2].ran = 0.30;
  ranks[2].delayed = 0.25;
  EXPECT_EQ(
      DescribeSlow(FindSlowRanks(ranks), ranks, minutes(9)),
      "rank 2 (node0, local rank 2, pid 1002) holds up 3 other ranks, which lose 47 % of their "
      "time. In 9 min these were seen to wait in a collective at 50 of 100 looks, and it at 3 "
      "of 100; it was most often in load (train.py:31), at 71; its main thread ran for 30 % of "
      "the time and would have run for 25 % more, but had no processor");
  ranks = AllSeen({41, 40, 44, 42, 2, 0, 3, 1});
  EXPECT_THAT(
      DescribeSlow(FindSlowRanks(ranks), ranks, seconds(50)),
      HasSubstr("ranks 4-7 (node1) hold up 4 other ranks, which lose 40 % of their time. In "
                "50 s these were seen to wait in a collective at 40 of 100 looks, and rank 4 "
                "at 2 of 100"));
}

TEST(SlowRank, IsToldOnceUntilItsEnd) {
  SlowJudge judge;
  EXPECT_EQ(judge.Look(AllSeen({30, 28, 33, 29}), minutes(5)).text, "");
  const SlowJudge::News news = judge.Look(AllSeen({47, 52, 3, 50}), minutes(5));
  EXPECT_THAT(news.text, HasSubstr("rank 2 (node0, local rank 2, pid 1002) holds up"));
  EXPECT_THAT(news.ranks, ElementsAre(2));
  EXPECT_GT(news.lost, 0.4);
  EXPECT_EQ(judge.Look(AllSeen({46, 51, 3, 50}), minutes(5)).text, "");
  EXPECT_EQ(judge.Look(AllSeen({19, 18, 2, 17}), minutes(5)).text, "") << "It is only better.";
  EXPECT_EQ(judge.Look(AllSeen({1, 1, 0, 1}, 10), minutes(1)).text, "") << "Too little is known.";
  const SlowJudge::News over = judge.Look(AllSeen({9, 10, 8, 10}), minutes(5));
  EXPECT_EQ(over.text, "rank 2 (node0, local rank 2, pid 1002) no longer holds up the others");
  EXPECT_EQ(over.lost, 0);
  EXPECT_EQ(judge.Look(AllSeen({9, 10, 8, 10}), minutes(5)).text, "");
}

TEST(SlowRank, AnotherOneIsToldAsWell) {
  SlowJudge judge;
  EXPECT_THAT(judge.Look(AllSeen({47, 52, 3, 50}), minutes(5)).text, HasSubstr("rank 2 "));
  EXPECT_THAT(judge.Look(AllSeen({47, 2, 53, 50}), minutes(5)).text, HasSubstr("rank 1 "));
}

TEST(SlowRank, ASecondOneThatIsFoundLaterIsToldAsWell) {
  SlowJudge judge;
  const std::vector<RankShare> first = AllSeen({50, 2, 32, 49});
  EXPECT_THAT(judge.Look(first, minutes(3)).text,
              HasSubstr("rank 1 (node0, local rank 1, pid 1001) holds up 3 other"));
  const SlowJudge::News both = judge.Look(AllSeen({50, 2, 3, 49}), minutes(5));
  EXPECT_THAT(both.text, HasSubstr("ranks 1,2 (node0) hold up 2 other ranks"));
  EXPECT_EQ(judge.Look(first, minutes(6)).text, "") << "Both are known.";
}

TEST(SlowRank, WhoIsNearlyAsSlowDoesNotWait) {
  EXPECT_EQ(FindSlowRanks(AllSeen({50, 2, 15, 49})).waiting, 2);
}

TEST(SlowRank, TimeThatIsLostHasACause) {
  EXPECT_NEAR(FindLostShare(AllSeen({47, 52, 3, 50})).waiting, 0.47, 0.001);
  EXPECT_EQ(FindLostShare(AllSeen({30, 28, 33, 29})).waiting, 0);
  const LostShare lost =
      FindLostShare({Seen(0, 0, 100, {"0"}, 30), Seen(1, 31), Seen(2, 30), Seen(3, 32)});
  EXPECT_EQ(lost.waiting, 0);
  EXPECT_NEAR(lost.saving, 0.30, 0.001);
  EXPECT_EQ(FindLostShare({}).waiting, 0);
}

}  // namespace
}  // namespace hlaunch
