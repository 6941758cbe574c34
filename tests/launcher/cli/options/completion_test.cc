// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/options/option_table.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

TEST(Completion, KnowsEveryOption) {
  for (const std::string& script : {BashCompletion("hlaunch"), ZshCompletion("hlaunch")}) {
    for (const OptionRow& row : OptionTable()) EXPECT_THAT(script, HasSubstr(row.name));
    EXPECT_THAT(script, HasSubstr("--nproc_per_node"));
  }
}

TEST(Completion, IsForTheNameOfTheProgram) {
  EXPECT_THAT(BashCompletion("torchrun"), HasSubstr(" -F _torchrun torchrun\n"));
  EXPECT_THAT(ZshCompletion("torchrun"), HasSubstr("#compdef torchrun\n"));
}

}  // namespace
}  // namespace hlaunch
