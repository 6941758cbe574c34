// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/values/seconds.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(ReadSeconds, TakesTheUnitsThatPeopleWrite) {
  const struct {
    const char* text;
    double seconds;
  } rows[] = {{"30", 30},        {"1.5", 1.5},   {"30s", 30},     {"30sec", 30},    {"5m", 300},
              {"5min", 300},     {"5mins", 300}, {"2h", 7200},    {"2hours", 7200}, {"1d", 86400},
              {"2days", 172800}, {"500ms", 0.5}, {"1h30m", 5400}, {"0.5h", 1800},   {"-1", -1}};
  for (const auto& row : rows) {
    ASSERT_TRUE(ReadSeconds(row.text).has_value()) << row.text;
    EXPECT_DOUBLE_EQ(*ReadSeconds(row.text), row.seconds) << row.text;
  }
}

TEST(ReadSeconds, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "s", "soon", "5x", "5 m", "1h30", "-5m", "5M", "nan", "inf", "1..5s", "1e999", "h1"}) {
    EXPECT_FALSE(ReadSeconds(text).has_value()) << text;
  }
}

TEST(ReadWholeSeconds, RoundsUpWithinItsLimits) {
  int seconds = 0;
  EXPECT_TRUE(ReadWholeSeconds("1m", 1, 60, &seconds));
  EXPECT_EQ(seconds, 60);
  EXPECT_TRUE(ReadWholeSeconds("1.2", 1, 60, &seconds));
  EXPECT_EQ(seconds, 2);
  EXPECT_FALSE(ReadWholeSeconds("61", 1, 60, &seconds));
  EXPECT_FALSE(ReadWholeSeconds("0", 1, 60, &seconds));
}

}  // namespace
}  // namespace hlaunch
