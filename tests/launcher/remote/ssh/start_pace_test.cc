// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/start_pace.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::seconds;

const Instant kNow = Instant(seconds(1000));

std::vector<Instant> Starts(size_t count, int seconds_ago) {
  return std::vector<Instant>(count, kNow - seconds(seconds_ago));
}

TEST(RoomForStarts, GivesEachProcessorAFewStarts) {
  EXPECT_EQ(RoomForStarts({}, 1, kNow), 8u);
  EXPECT_EQ(RoomForStarts(Starts(7, 0), 1, kNow), 1u);
  EXPECT_EQ(RoomForStarts(Starts(8, 0), 1, kNow), 0u);
  EXPECT_EQ(RoomForStarts(Starts(8, 0), 2, kNow), 8u);
  EXPECT_EQ(RoomForStarts({}, 0, kNow), 8u);  // The number is not known.
}

TEST(RoomForStarts, CountsNoStartThatLongWaitsForTheOtherEnd) {
  EXPECT_EQ(RoomForStarts(Starts(8, 6), 1, kNow), 8u);
}

TEST(RoomForStarts, LetsNoMoreThanSomeBeOnTheirWay) {
  EXPECT_EQ(RoomForStarts({}, 96, kNow), kMostInFlight);
  EXPECT_EQ(RoomForStarts(Starts(62, 6), 96, kNow), 2u);
  EXPECT_EQ(RoomForStarts(Starts(70, 6), 96, kNow), 0u);
}

TEST(StartPatience, CountsFromTheLastProgressOfAnyHost) {
  StartPatience patience(seconds(20), kNow);
  EXPECT_EQ(patience.ends(), kNow + seconds(20));
  patience.Progress(kNow + seconds(19));
  EXPECT_EQ(patience.ends(), kNow + seconds(39));
}

}  // namespace
}  // namespace hlaunch
