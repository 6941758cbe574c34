// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/line_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

LineMatcher Matcher(const std::vector<std::string>& patterns) {
  auto compiled = LinePatterns::Compile(patterns);
  HLAUNCH_CHECK(compiled.ok());
  return LineMatcher(*compiled);
}

std::vector<std::string> Lines(const std::vector<LineMatch>& matches) {
  std::vector<std::string> lines;
  for (const LineMatch& match : matches) lines.push_back(match.line);
  return lines;
}

TEST(LineMatcher, FindsAPatternAnywhereInALine) {
  LineMatcher matcher = Matcher({"loss=(nan|inf)"});
  EXPECT_THAT(Lines(matcher.Feed("step 1 loss=0.5\nstep 2 loss=nan!\nend\n")),
              ElementsAre("step 2 loss=nan!"));
}

TEST(LineMatcher, TakesALineInPiecesAndLooksOnceItHasEnded) {
  LineMatcher matcher = Matcher({"nan$"});
  EXPECT_THAT(matcher.Feed("loss=n"), IsEmpty());
  EXPECT_THAT(matcher.Feed("an"), IsEmpty());
  EXPECT_THAT(Lines(matcher.Feed("\n")), ElementsAre("loss=nan"));
  EXPECT_THAT(matcher.Feed("\n"), IsEmpty());
}

TEST(LineMatcher, ReadsWhatAProgressBarRewrites) {
  LineMatcher matcher = Matcher({"nan"});
  EXPECT_THAT(Lines(matcher.Feed("\r10% 0.5\r20% nan\r30%")), ElementsAre("20% nan"));
}

TEST(LineMatcher, ReadsNumbersOfNamedGroupsOnly) {
  LineMatcher matcher = Matcher({R"(step (?P<step>\d+) (\d+) loss=(?P<loss>\S+) (?P<word>\w+))"});
  const auto found = matcher.Feed("step 12 7 loss=1.5e-3 fine\nstep 13 7 loss=nan bad\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].values, ElementsAre(Pair("loss", 1.5e-3), Pair("step", 12)));
  EXPECT_TRUE(std::isnan(found[1].values.at("loss")));
}

TEST(LineMatcher, TellsEachPatternThatIsInALine) {
  LineMatcher matcher = Matcher({"a", "b", "c"});
  const auto found = matcher.Feed("cab\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[2].pattern, 2u);
}

TEST(LineMatcher, LooksAtTheBeginningOfALineThatIsFarTooLong) {
  LineMatcher matcher = Matcher({"begin", "end"});
  matcher.Feed("begin");
  for (int i = 0; i < 100; ++i) matcher.Feed(std::string(kMaxMatchedLine, 'x'));
  const auto found = matcher.Feed("end\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pattern, 0u);
  EXPECT_EQ(found[0].line.size(), kMaxMatchedLine);
  EXPECT_EQ(matcher.Feed("the end\n").size(), 1u) << "the next line is whole again";
}

TEST(LineMatcher, TakesBytesThatAreNoText) {
  LineMatcher matcher = Matcher({"b"});
  EXPECT_EQ(matcher.Feed(std::string("\xff\0b\x80\n", 5)).size(), 1u);
}

TEST(LinePatterns, SaysWhatIsWrongWithOne) {
  EXPECT_EQ(LinePatterns::Compile({"a", "("}).status(), absl::InvalidArgumentError("missing ): ("));
}

}  // namespace
}  // namespace hlaunch
