// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/table/news_board.h"

#include "gtest/gtest.h"

namespace hlaunch {
namespace {

TEST(NewsBoard, KeepsTheLatestAndCounts) {
  NewsBoard board;
  for (int i = 0; i < 6; ++i) board.Say(std::string(1, static_cast<char>('a' + i)));
  ASSERT_EQ(board.latest().size(), kMaxNews);
  EXPECT_EQ(board.latest().front().text, "c");
  EXPECT_EQ(board.latest().back().number, 6u);
  EXPECT_EQ(board.latest().back().text, "f");
}

TEST(NewsBoard, ALineHasAnEnd) {
  NewsBoard board;
  board.Say(std::string(2 * kMaxTextBytes, 'x'));
  EXPECT_EQ(board.latest().back().text.size(), kMaxTextBytes);
}

}  // namespace
}  // namespace hlaunch
