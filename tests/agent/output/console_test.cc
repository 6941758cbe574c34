// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/console.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(DecideConsoleStyle, IsPlainUnlessATerminalReads) {
  EXPECT_FALSE(DecideConsoleStyle(false, nullptr, "xterm").terminal);
  EXPECT_FALSE(DecideConsoleStyle(false, nullptr, "xterm").colour);
  EXPECT_TRUE(DecideConsoleStyle(true, nullptr, "xterm").terminal);
  EXPECT_TRUE(DecideConsoleStyle(true, nullptr, "xterm").colour);
}

TEST(DecideConsoleStyle, RespectsNoColorAndDumbTerminals) {
  EXPECT_FALSE(DecideConsoleStyle(true, "1", "xterm").colour);
  EXPECT_TRUE(DecideConsoleStyle(true, "1", "xterm").terminal) << "lines can still be erased";
  EXPECT_TRUE(DecideConsoleStyle(true, "", "xterm").colour) << "empty counts as unset";
  EXPECT_FALSE(DecideConsoleStyle(true, nullptr, "dumb").terminal);
  EXPECT_FALSE(DecideConsoleStyle(true, nullptr, "dumb").colour);
  EXPECT_FALSE(DecideConsoleStyle(true, nullptr, nullptr).terminal);
}

// The expected texts are those of Python's Template(…).safe_substitute.
TEST(LinePrefix, SubstitutesAsPythonsTemplate) {
  const auto prefix = [](absl::string_view pattern) {
    return LinePrefix(pattern, {"trainer", "node7", 3, 11});
  };
  EXPECT_EQ(prefix("[${role_name}${local_rank}]:"), "[trainer3]:");
  EXPECT_EQ(prefix("${rank}/$local_rank "), "11/3 ");
  EXPECT_EQ(prefix("${hostname}:${rank}: "), "node7:11: ");
  EXPECT_EQ(prefix("$$ ${node} $ ${rank ${}"), "$ ${node} $ ${rank ${}");
  EXPECT_EQ(prefix("$ranks $rank"), "$ranks 11");
  EXPECT_EQ(prefix(""), "");
}

TEST(FillPrefix, PutsInWhatDiffersFromLineToLine) {
  const std::string prefix = LinePrefix("${time} [1,${rank}]<${stream}>:", {"x", "y", 0, 3});
  EXPECT_TRUE(HasTime(prefix));
  EXPECT_FALSE(HasTime("[3] "));
  EXPECT_EQ(FillPrefix(prefix, "stderr", TimeText(1'700'000'000'042)),
            "2023-11-14T22:13:20.042Z [1,3]<stderr>:");
}

TEST(Coloured, DependsOnTheRankAndEndsWithThePrefix) {
  EXPECT_NE(Coloured("[0] ", 0), Coloured("[0] ", 1));
  EXPECT_EQ(Coloured("[3] ", 3), Coloured("[3] ", 13));
  EXPECT_EQ(Coloured("[0] ", 0), "\x1b[36m[0] \x1b[0m");
}

}  // namespace
}  // namespace hlaunch
