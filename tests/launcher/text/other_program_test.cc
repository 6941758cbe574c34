// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/other_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/text/shell_words.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseOtherProgram, ReadsWhatStandsBeforeTheProgram) {
  const auto wish =
      ParseOtherProgram("-n 2 -x A=1 -x 'B=x y' --wdir /data \"./my server\" -n 'a b' --wdir");
  ASSERT_TRUE(wish.ok()) << wish.status();
  EXPECT_EQ(wish->ranks, 2);
  EXPECT_THAT(wish->variables, ElementsAre("A=1", "B=x y"));
  EXPECT_EQ(wish->directory, "/data");
  EXPECT_THAT(wish->command, ElementsAre("./my server", "-n", "a b", "--wdir"));
  EXPECT_EQ(OtherProgramText(*wish),
            "-n 2 -x A=1 -x 'B=x y' --wdir /data './my server' -n 'a b' --wdir");
}

TEST(ParseOtherProgram, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* says;
  } rows[] = {
      {"", "expected '-n N PROGRAM"},
      {"./a", "expected '-n N PROGRAM"},
      {"-n 2", "expected '-n N PROGRAM"},
      {"-n 2 ''", "expected '-n N PROGRAM"},
      {"-n 0 ./a", "-n '0': expected a number"},
      {"-n 2 -x A ./a", "-x 'A': expected NAME=VALUE"},
      {"-n 2 -x 1A=2 ./a", "-x '1A=2': expected NAME=VALUE"},
      {"-n 2 --host a ./a", "'--host': before the program only"},
      {"-n 2 -x", "'-x' needs a value"},
      {"-n 2 'a", "a quote (') is open"},
  };
  for (const auto& row : rows) {
    const auto wish = ParseOtherProgram(row.text);
    ASSERT_FALSE(wish.ok()) << row.text;
    EXPECT_THAT(std::string(wish.status().message()), HasSubstr(row.says)) << row.text;
  }
}

TEST(JoinWords, IsReadBackAsItWas) {
  const std::vector<std::string> words = {"a", "", "it's", "\"", "a b\n", "'\"'", "$x", "-"};
  const auto read = SplitWords(JoinWords(words));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, words);
}

}  // namespace
}  // namespace hlaunch
