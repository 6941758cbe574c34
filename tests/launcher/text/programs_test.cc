// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::EndsWith;

TEST(PlacesOfProgram, AreTheOwnFolderAndThatOfAnInstallation) {
  EXPECT_THAT(
      PlacesOfProgram("/usr/local/bin/hlaunch", "hlaunch-agent"),
      ElementsAre("/usr/local/bin/hlaunch-agent", "/usr/local/libexec/hlaunch/hlaunch-agent"));
  EXPECT_THAT(PlacesOfProgram("/usr/local/bin/hlaunch", "hlaunchd"),
              ElementsAre("/usr/local/bin/hlaunchd", "/usr/local/sbin/hlaunchd"));
  EXPECT_THAT(PlacesOfProgram("/usr/local/libexec/hlaunch/hlaunch-agent", "hlaunch"),
              ElementsAre("/usr/local/libexec/hlaunch/hlaunch", "/usr/local/bin/hlaunch"));
}

TEST(PathOfThisProgram, IsWhatRuns) {
  EXPECT_THAT(PathOfThisProgram(), EndsWith("/launcher_text_test"));
}

}  // namespace
}  // namespace hlaunch
