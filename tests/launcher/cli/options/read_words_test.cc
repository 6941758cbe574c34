// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/read_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<TypedWords> Read(const std::vector<std::string>& words, OptionPlace place) {
  return ReadWords("x", CheckOptionRows(), words, place);
}

TEST(ReadWords, DividesOptionsFromTheRest) {
  const auto anywhere = Read({"a", "--log_dir=b", "--full", "c"}, OptionPlace::kAnywhere);
  ASSERT_TRUE(anywhere.ok()) << anywhere.status();
  EXPECT_EQ(anywhere->Get("--log-dir", ""), "b");
  EXPECT_EQ(anywhere->Get("--master", "none"), "none");
  EXPECT_TRUE(anywhere->Has("--full"));
  EXPECT_FALSE(anywhere->Has("--json"));
  EXPECT_THAT(anywhere->rest, ElementsAre("a", "c"));
  const auto before = Read({"--full", "a", "--json"}, OptionPlace::kBeforeScript);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_THAT(before->rest, ElementsAre("a", "--json"));
  EXPECT_FALSE(before->Has("--json"));
}

TEST(ReadWords, NamesWhatIsWrongInOneLine) {
  for (const OptionPlace place : {OptionPlace::kBeforeScript, OptionPlace::kAnywhere}) {
    EXPECT_EQ(Read({"--log-dir=", "a"}, place).status().message(),
              "--log-dir= has no value; see x --help");
    EXPECT_EQ(Read({"--log-dir"}, place).status().message(),
              "--log-dir needs a value; see x --help");
  }
  EXPECT_EQ(Read({"--ful"}, OptionPlace::kAnywhere).status().message(),
            "unknown option --ful; did you mean --full?");
  EXPECT_EQ(Read({"--zzzzzz"}, OptionPlace::kAnywhere).status().message(),
            "unknown option --zzzzzz; see x --help");
  EXPECT_EQ(Read({"a", ""}, OptionPlace::kAnywhere).status().message(),
            "x got an empty word, as of a variable that is not set; see x --help");
}

TEST(DescribeOptions, HasALineForEveryRowOfACommand) {
  for (const auto table :
       {StatusOptionRows(), DevicesOptionRows(), CheckOptionRows(), ServiceOptionRows()}) {
    for (const OptionRow& row : table) {
      EXPECT_THAT(DescribeOptions(table), HasSubstr(row.name));
      EXPECT_EQ(row.takes_value(), row.value[0] != '\0') << row.name;
    }
  }
}

}  // namespace
}  // namespace hlaunch
