// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/read_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

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

TEST(ReadWords, FindsEveryOptionOfATableByEachSpelling) {
  std::set<std::string> spellings;
  for (const OptionRow& row : OptionTable()) {
    std::set<std::string> own = {row.name, Underscored(row.name)};
    if (row.short_name[0] != '\0') own.insert(row.short_name);
    for (const std::string& spelling : own) {
      EXPECT_TRUE(spellings.insert(spelling).second) << spelling << " is the name of two options";
      std::vector<std::string> words = {spelling};
      if (row.takes_value()) words.push_back("--value");
      words.push_back("rest");
      const auto read = ReadWords("x", OptionTable(), words, OptionPlace::kBeforeScript);
      ASSERT_TRUE(read.ok()) << spelling << ": " << read.status();
      EXPECT_EQ(read->Get(row.name, ""), row.takes_value() ? "--value" : "true") << spelling;
      EXPECT_THAT(read->given, SizeIs(1)) << spelling;
      EXPECT_THAT(read->rest, ElementsAre("rest")) << spelling;
    }
  }
}

TEST(ReadWords, FindsOptionsByLettersOfOneWord) {
  const auto read =
      ReadWords("x", OptionTable(), {"-qvtdir", "-rall", "rest"}, OptionPlace::kBeforeScript);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->Has("--quiet"));
  EXPECT_TRUE(read->Has("--verbose"));
  EXPECT_EQ(read->Get("--tee", ""), "dir");
  EXPECT_EQ(read->Get("--redirects", ""), "all");
  EXPECT_THAT(read->given, SizeIs(4));
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
