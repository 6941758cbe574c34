// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/news_board.h"

#include "gtest/gtest.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

NodeInfo OfHost(int i) { return Node(i, 2, 2); }

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

TEST(NewsBoard, AHostThatIsRefusedAgainAndAgainIsNewsOnceInAWhile) {
  NewsBoard board;
  const absl::Status why = absl::FailedPreconditionError("its job is 'b'");
  Instant now = Instant() + seconds(100);
  EXPECT_TRUE(board.SayRefused(OfHost(1), why, now));
  EXPECT_EQ(board.latest().back().text, "node1 was refused: its job is 'b'");
  EXPECT_FALSE(board.SayRefused(OfHost(1), why, now + seconds(1)));
  EXPECT_TRUE(board.SayRefused(OfHost(2), why, now + seconds(1)));
  EXPECT_TRUE(board.SayRefused(OfHost(1), why, now + seconds(11)));
  EXPECT_EQ(board.latest().back().text, "node1 was refused: its job is 'b' (and 1 more)");
}

TEST(NewsBoard, ManyHostsThatAreRefusedShareALine) {
  NewsBoard board;
  int said = 0;
  for (int i = 0; i < 1000; ++i) {
    said +=
        board.SayRefused(OfHost(i), absl::FailedPreconditionError("no"), Instant() + seconds(100));
  }
  EXPECT_EQ(said, 17);
}

}  // namespace
}  // namespace hlaunch
