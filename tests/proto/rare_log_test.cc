// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/rare_log.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::seconds;

TEST(RareLog, TellsHowManyWereLeftOut) {
  const Instant now{std::chrono::hours(1)};
  RareLog log;
  EXPECT_EQ(log.Admit("a", now), "a");
  EXPECT_EQ(log.Admit("b", now + seconds(1)), "");
  EXPECT_EQ(log.Admit("c", now + seconds(9)), "");
  EXPECT_EQ(log.Admit("d", now + seconds(10)), "d (and 2 more)");
  EXPECT_EQ(log.Admit("e", now + seconds(20)), "e");
}

}  // namespace
}  // namespace hlaunch
