// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/accusation.h"

#include <gtest/gtest.h>

#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

TEST(AccusationIn, KnowsWhomTheCollectivesName) {
  const struct {
    const char* words;
    std::vector<Rank> ranks;
    const char* host;
    const char* did;
  } table[] = {
      {"hlaunch.RankLost: rank 2 on node1 left the group before all_reduce #100",
       {2},
       "node1",
       "left the group before all_reduce #100"},
      {"rank 2 on node1 went away during barrier #3\nmore",
       {2},
       "node1",
       "went away during barrier #3"},
      {"hlaunch.TimedOut: rank 0 waited in vain for rank 5 on node2 in broadcast #7",
       {5},
       "node2",
       "did not come to broadcast #7"},
      {"rank 1 has not come to group 'default', missed in all_reduce #1",
       {1},
       "",
       "has not come to group 'default', missed in all_reduce #1"},
      {"monitored_barrier #4: ranks 2, 3 did not come within 5 s",
       {2, 3},
       "",
       "did not come within 5 s"},
      {"RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 3000 ms",
       {1},
       "",
       "failed to pass monitoredBarrier in 3000 ms"},
      {"hlaunch.Cancelled: rank 3 on node1: no more data",
       {3},
       "node1",
       "cancelled the group: no more data"},
  };
  for (const auto& row : table) {
    const auto accusation = AccusationIn(row.words);
    ASSERT_TRUE(accusation) << row.words;
    EXPECT_EQ(accusation->ranks, row.ranks) << row.words;
    EXPECT_EQ(accusation->host, row.host) << row.words;
    EXPECT_EQ(accusation->did, row.did) << row.words;
  }
}

TEST(AccusationIn, IsNothingWhereNobodyIsNamed) {
  for (const char* words :
       {"", "r", "rank", "rank ", "rank 1", "rank x went away", "waited in vain for ",
        "waited in vain for rank 1", "Cancelled: ", "Cancelled: rank", "ValueError: rank 3 is bad",
        "RuntimeError: Connection closed by peer [10.0.0.1]:33", "rank 99999999999999 went away",
        "call #3 does not match: rank 0 calls barrier #3, rank 1 on node1 calls all_reduce #3"}) {
    EXPECT_FALSE(AccusationIn(words)) << words;
  }
}

TEST(Accuses, ComparesRankAndHost) {
  EXPECT_TRUE(Accuses({{2, 3}, "", ""}, Failure(3, 1)));
  EXPECT_TRUE(Accuses({{3}, "node1", ""}, Failure(3, 1)));
  EXPECT_FALSE(Accuses({{3}, "node7", ""}, Failure(3, 1)));
  EXPECT_FALSE(Accuses({{2}, "", ""}, Failure(3, 1)));
}

}  // namespace
}  // namespace hlaunch
