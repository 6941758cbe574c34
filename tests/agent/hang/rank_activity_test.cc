// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/rank_activity.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(WasBusy, TellsByTheBytesSinceTheLastLook) {
  RankActivity before, now;
  before.moved = 5 << 20;
  now.moved = 6 << 20;
  EXPECT_TRUE(WasBusy(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(WasBusy(before, now, std::chrono::hours(1)));
}

TEST(WasBusy, ANewProcessThatHasMovedLessThanTheOldOneWasNot) {
  RankActivity before, now;
  before.moved = before.transferred = 5 << 20;
  before.computed = std::chrono::seconds(5);
  EXPECT_FALSE(WasBusy(before, now, std::chrono::seconds(1)));
}

}  // namespace
}  // namespace hlaunch
