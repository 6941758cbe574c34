// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/line_folder.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

const Instant kStart = Instant() + std::chrono::seconds(1000);

// The shown blocks, each after its ranks.
std::vector<std::string> Shown(LineFolder& folder) {
  std::vector<std::string> shown;
  for (const LineFolder::Block& block : folder.Take()) {
    shown.push_back(absl::StrCat("[", RankList(block.ranks), "] ", block.text));
  }
  return shown;
}

std::string Traceback(const std::string& error) {
  return absl::StrCat("Traceback (most recent call last):\n  File \"t.py\", line 7, in <module>\n",
                      error, "\n");
}

TEST(LineFolder, EqualLinesOfSeveralRanksAreOne) {
  LineFolder folder;
  for (const int rank : {2, 0, 1}) folder.Add({rank, 1}, "hello\n", kStart);
  folder.Add({3, 1}, "hullo\n", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0-2] hello\n", "[3] hullo\n"));
}

TEST(LineFolder, LinesThatDifferInANumberAreNotEqual) {
  LineFolder folder;
  folder.Add({0, 1}, "loss 0.25\n", kStart);
  folder.Add({1, 1}, "loss 0.26\n", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0] loss 0.25\n", "[1] loss 0.26\n"));
}

TEST(LineFolder, TracebacksThatDifferInNumbersAreOneAndTheCulpritsStandsByItself) {
  LineFolder folder;
  const auto victim = [](int i) {
    return Traceback(absl::StrCat("RuntimeError: Connection closed by peer [10.0.0.1]:", 4000 + i));
  };
  for (int rank = 0; rank < 16; ++rank) {
    folder.Add({rank, 1}, rank == 3 ? Traceback("KeyError: 'x'") : victim(rank), kStart);
  }
  EXPECT_THAT(Shown(folder), ElementsAre(absl::StrCat("[0-2,4-15] ", victim(0)),
                                         absl::StrCat("[3] ", Traceback("KeyError: 'x'"))));
}

TEST(LineFolder, TorchsRankBeforeEachLineIsANumberLikeOthers) {
  LineFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string head = absl::StrCat("[rank", rank, "]: ");
    folder.Add({rank, 1},
               absl::StrCat(head, "Traceback (most recent call last):\n", head,
                            "  File \"t.py\", line 7\n", head, "ValueError: no\n"),
               kStart);
  }
  EXPECT_EQ(Shown(folder).size(), 1u);
}

TEST(LineFolder, WhatDiffersBeforeDoesNotKeepEqualBlocksApart) {
  LineFolder folder;
  for (int rank = 0; rank < 3; ++rank) {
    folder.Add({rank, 1}, absl::StrCat("rank ", rank, " fails\n", Traceback("ValueError: no")),
               kStart);
  }
  EXPECT_THAT(Shown(folder),
              ElementsAre("[0] rank 0 fails\n", "[1] rank 1 fails\n", "[2] rank 2 fails\n",
                          absl::StrCat("[0-2] ", Traceback("ValueError: no"))));
}

TEST(LineFolder, TheOrderOfARanksLinesStays) {
  LineFolder folder;
  folder.Add({0, 1}, "a\nb\n", kStart);
  folder.Add({1, 1}, "b\na\n", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0] a\n", "[0,1] b\n", "[1] a\n"));
}

TEST(LineFolder, ARanksRepeatedLinesStay) {
  LineFolder folder;
  folder.Add({0, 1}, "a\na\n", kStart);
  folder.Add({1, 1}, "a\na\n", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0,1] a\n", "[0,1] a\n"));
}

TEST(LineFolder, HoldsALineForAMomentOnly) {
  LineFolder folder;
  EXPECT_EQ(folder.due(), std::nullopt);
  folder.Add({0, 1}, "a\n", kStart);
  folder.Add({1, 1}, "b\n", kStart + milliseconds(100));
  EXPECT_EQ(folder.due(), kStart + LineFolder::kHold);
  folder.Take();
  EXPECT_EQ(folder.due(), std::nullopt);
}

TEST(LineFolder, HoldsTracebacksUntilNoMoreOfThemCome) {
  LineFolder folder;
  for (int i = 0; i < 4; ++i)
    folder.Add({i, 1}, Traceback("ValueError"), kStart + i * milliseconds(150));
  EXPECT_EQ(folder.due(), kStart + milliseconds(450) + LineFolder::kHold);
  folder.Add({4, 1}, Traceback("ValueError"), kStart + milliseconds(950));
  EXPECT_EQ(folder.due(), kStart + LineFolder::kLongestHold);
  EXPECT_EQ(Shown(folder).size(), 1u);
}

TEST(LineFolder, EqualLinesOfTheTwoStreamsAreTwo) {
  LineFolder folder;
  folder.Add({0, 1}, "a\n", kStart);
  folder.Add({0, 2}, "a\n", kStart);
  folder.Add({1, 2}, "a\n", kStart);
  const std::vector<LineFolder::Block> blocks = folder.Take();
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].fd, 1);
  EXPECT_EQ(blocks[1].fd, 2);
  EXPECT_THAT(blocks[1].ranks, ElementsAre(0, 1));
}

TEST(LineFolder, MuchOutputIsNotHeldAtAll) {
  LineFolder folder;
  folder.Add({0, 1}, std::string(LineFolder::kMaxBytes, 'x') + "\n", kStart);
  EXPECT_LT(*folder.due(), kStart);
}

TEST(LineFolder, ALineWithoutAnEndWaitsForIt) {
  LineFolder folder;
  folder.Add({0, 1}, "a", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre());
  folder.Add({0, 1}, "b\nc", kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0] ab\n"));
  folder.EndLine({0, 1}, kStart);
  EXPECT_THAT(Shown(folder), ElementsAre("[0] c\n"));
}

}  // namespace
}  // namespace hlaunch
