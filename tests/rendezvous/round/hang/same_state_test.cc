// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/same_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RankSnapshot Snapshot(Rank rank, int64_t number, bool inside) {
  RankSnapshot snapshot;
  snapshot.rank = rank;
  snapshot.host = absl::StrCat("node", rank / 2);
  snapshot.pid = 100 + rank;
  snapshot.recorded = snapshot.still = true;
  snapshot.state = 'S';
  snapshot.groups = {{"0", "default_pg", {}, {{number, "all_reduce", "[4] Float", inside}}}};
  return snapshot;
}

TEST(DescribeState, SaysWhatARankDoes) {
  RankSnapshot rank = Snapshot(0, 4, true);
  EXPECT_EQ(DescribeState(rank), "is in all_reduce number 4 of default_pg ([4] Float)");
  rank.place = "step (train.py:12)";
  EXPECT_EQ(DescribeState(rank),
            "is in all_reduce number 4 of default_pg ([4] Float), in step (train.py:12)");
  rank.still = false;
  EXPECT_EQ(DescribeState(rank), "goes on");
  rank.state = 'T';
  EXPECT_EQ(DescribeState(rank), "is stopped (SIGSTOP, or job control); kill -CONT lets it go on");
  rank = Snapshot(0, 4, true);
  rank.groups[0].backend = "nccl";
  rank.on_device = true;
  EXPECT_EQ(DescribeState(rank),
            "has given its device all_reduce number 4 of default_pg ([4] Float), which is not "
            "over, and waits for its device");
  rank = Snapshot(0, 3, false);
  rank.place = "load (loader.py:88)";
  EXPECT_EQ(DescribeState(rank), "stands in load (loader.py:88)");
  rank.ended = true;
  EXPECT_EQ(DescribeState(rank), "has exited with 0");
  EXPECT_EQ(DescribeState(RankSnapshot()), "has not started");
  rank = Snapshot(0, 3, false);
  rank.state = '?';
  EXPECT_EQ(DescribeState(rank), "is gone");
}

TEST(GroupByState, ShowsTheFewestFirst) {
  const auto states = GroupByState(
      {Snapshot(3, 4, true), Snapshot(1, 4, true), Snapshot(0, 4, true), Snapshot(2, 3, false)});
  ASSERT_THAT(states, SizeIs(2));
  EXPECT_EQ(states[0].text, "sleeps");
  EXPECT_THAT(states[0].ranks, ElementsAre(2));
  EXPECT_THAT(states[0].hosts, ElementsAre("node1"));
  EXPECT_THAT(states[1].ranks, ElementsAre(0, 1, 3));
  EXPECT_THAT(states[1].hosts, ElementsAre("node0", "node1"));
  EXPECT_THAT(GroupByState({}), IsEmpty());
}

TEST(DescribeProgress, SaysHowFarThoseAreThatGoOn) {
  std::vector<RankSnapshot> ranks = {Snapshot(0, 1203, false), Snapshot(1, 1205, false),
                                     Snapshot(2, 9, false)};
  EXPECT_EQ(DescribeProgress(ranks), "");
  ranks[0].still = ranks[1].still = false;
  EXPECT_EQ(DescribeProgress(ranks), "default_pg is at all_reduce number 1203 to 1205");
  ranks[1].still = true;
  EXPECT_EQ(DescribeProgress(ranks), "default_pg is at all_reduce number 1203");
}

}  // namespace
}  // namespace hlaunch
