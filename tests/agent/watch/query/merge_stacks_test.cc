// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/query/merge_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(MergeStacks, HasEachStackOnceTheRarestFirst) {
  const auto merged = MergeStacks({{{3}, {"wait (a.py:1)"}, ""},
                                   {{1}, {"load (b.py:2)"}, ""},
                                   {{0, 2}, {"wait (a.py:1)"}, ""},
                                   {{5}, {}, "is stopped"},
                                   {{4}, {}, "is stopped"}});
  ASSERT_THAT(merged, SizeIs(3));
  EXPECT_THAT(merged[0].ranks, ElementsAre(1));
  EXPECT_THAT(merged[1].ranks, ElementsAre(4, 5));
  EXPECT_EQ(merged[1].problem, "is stopped");
  EXPECT_THAT(merged[2].ranks, ElementsAre(0, 2, 3));
  EXPECT_THAT(merged[2].frames, ElementsAre("wait (a.py:1)"));
}

TEST(MergeStacks, TellsNoStacksApartByAddresses) {
  const auto merged = MergeStacks(
      {{{0}, {"poll (fds=0x7ffd12ab, nfds=1)"}, ""}, {{1}, {"poll (fds=0x55, nfds=1)"}, ""}});
  ASSERT_THAT(merged, SizeIs(1));
  EXPECT_THAT(merged[0].frames, ElementsAre("poll (fds=0x.., nfds=1)"));
}

TEST(StacksText, IsReadAgain) {
  const auto stacks =
      ParseStacks(StacksText({{{0, 1, 7}, {"a (b.py:1)", "c"}, ""}, {{2}, {}, "no"}}, 1000));
  ASSERT_TRUE(stacks);
  ASSERT_THAT(*stacks, SizeIs(2));
  EXPECT_THAT((*stacks)[0].ranks, ElementsAre(0, 1, 7));
  EXPECT_THAT((*stacks)[0].frames, ElementsAre("a (b.py:1)", "c"));
  EXPECT_EQ((*stacks)[1].problem, "no");
}

TEST(StacksText, HasTheInnermostFramesWhereAllAreTooLong) {
  SharedStack deep{{0}, {}, ""};
  for (int i = 0; i < 64; ++i) deep.frames.push_back(absl::StrCat("frame ", i));
  SharedStack other = deep;
  other.ranks = {1};
  other.frames.back() = "the outermost";
  const std::string text = StacksText({deep, other}, 300);
  EXPECT_THAT(text.size(), ::testing::Le(300u));
  const auto stacks = ParseStacks(text);
  ASSERT_THAT(*stacks, SizeIs(1));  // They no longer differ.
  EXPECT_THAT((*stacks)[0].frames, SizeIs(12));
  EXPECT_EQ((*stacks)[0].frames[0], "frame 0");
  EXPECT_EQ(StacksText({deep}, 10), "");
}

TEST(ParseStacks, RefusesWhatIsNoneAndShowsNothingThatDrivesATerminal) {
  EXPECT_FALSE(ParseStacks("{}"));
  EXPECT_FALSE(ParseStacks("["));
  const auto stacks = ParseStacks("[{\"r\": 3, \"f\": [\"a\\u001b[31m\", 7], \"p\": {}}, 1]");
  ASSERT_TRUE(stacks);
  EXPECT_THAT((*stacks)[0].ranks, IsEmpty());
  EXPECT_THAT((*stacks)[0].frames, ElementsAre("a?[31m", ""));
  EXPECT_THAT(*ParseStacks("[{\"r\":\"0-60000\"},{\"r\":\"0\"}]"), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
