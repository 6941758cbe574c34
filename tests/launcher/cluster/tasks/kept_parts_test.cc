// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/kept_parts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PartsToRemove, AreNoneWhereFewAreKept) {
  EXPECT_THAT(PartsToRemove({}, 0), IsEmpty());
  EXPECT_THAT(PartsToRemove({{1, 1001}, {2, 1002}}, 2), IsEmpty());
}

TEST(PartsToRemove, AreTheOldestOfOneUser) {
  EXPECT_THAT(PartsToRemove({{1, 1001}, {2, 1001}, {3, 1001}}, 1), ElementsAre(1, 2));
}

TEST(PartsToRemove, AreOfTheUserWhoHasTheMost) {
  EXPECT_THAT(PartsToRemove({{1, 1001}, {2, 1002}, {3, 1002}, {4, 1002}, {5, 1001}}, 3),
              ElementsAre(2, 1));
  EXPECT_THAT(PartsToRemove({{1, 1001}, {2, 1002}, {3, 1002}, {4, 1002}}, 2), ElementsAre(2, 3));
}

}  // namespace
}  // namespace hlaunch
