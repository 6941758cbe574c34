// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/contract/rank_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::ElementsAre;

TEST(RankList, JoinsNeighbours) {
  EXPECT_EQ(RankList({3}), "3");
  EXPECT_EQ(RankList({0, 1}), "0,1");
  EXPECT_EQ(RankList({0, 1, 2, 4, 5, 6, 7, 9}), "0-2,4-7,9");
}

TEST(RankList, IsReadAsItIsWritten) {
  EXPECT_THAT(ParseRankList("0-2,5,7,8"), ElementsAre(0, 1, 2, 5, 7, 8));
  EXPECT_THAT(ParseRankList("[0, 3]"), ElementsAre(0, 3));
  EXPECT_THAT(ParseRankList("x,-1,4"), ElementsAre(4));
  EXPECT_EQ(ParseRankList("0-2147483647").size(), 65536u);
}

}  // namespace
}  // namespace hlaunch
