// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/command_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/help_text.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Found(const std::vector<const char*>& words) {
  const CommandRow* row = FindCommand(static_cast<int>(words.size()), words.data());
  return row == nullptr ? "" : row->word;
}

TEST(FindCommand, LooksAtTheFirstWordOnly) {
  for (const CommandRow& row : CommandTable()) {
    EXPECT_EQ(Found({"/opt/hlaunch", row.word, "x"}), row.word);
    EXPECT_EQ(Found({"hlaunch", "-v", row.word}), "");
    EXPECT_EQ(Found({"hlaunch", absl::StrCat("./", row.word).c_str()}), "");
  }
  EXPECT_EQ(Found({"hlaunch"}), "");
  EXPECT_EQ(Found({}), "");
}

TEST(FindCommand, TakesStatusForAScriptUnderTorchrunsName) {
  EXPECT_EQ(Found({"/usr/bin/torchrun", "status"}), "");
  EXPECT_EQ(Found({"/usr/bin/torchrun", "devices"}), "devices");
}

TEST(CommandTable, IsShownByHelp) {
  for (const CommandRow& row : CommandTable()) {
    const std::string usage = absl::StrCat(row.usage[0] != '\0' ? " " : "", row.usage);
    const std::string line = absl::StrCat("       hlaunch ", row.word, usage, "\n");
    EXPECT_EQ(HelpText("hlaunch").find(line) == std::string::npos, row.hidden()) << row.word;
    EXPECT_THAT(HelpText("torchrun"), Not(HasSubstr(line)));
  }
}

TEST(ProgramName, IsTorchrunOnlyUnderThatName) {
  EXPECT_EQ(ProgramName("/usr/bin/torchrun"), "torchrun");
  EXPECT_EQ(ProgramName("/opt/hlaunch-agent"), "hlaunch");
}

}  // namespace
}  // namespace hlaunch
