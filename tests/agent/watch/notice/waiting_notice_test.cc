// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/waiting_notice.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart = Instant() + seconds(1000);

TEST(WaitingSchedule, IsDueAfterASecondAndThenEverMoreRarely) {
  WaitingSchedule schedule;
  ASSERT_TRUE(schedule.Wait("waiting for 2 nodes", kStart));
  Instant now = kStart;
  for (const int due : {1, 6, 12, 24, 48, 96, 156, 216}) {
    now = schedule.Next(now);
    EXPECT_EQ(now - kStart, seconds(due));
    schedule.Tell(now);
  }
}

TEST(WaitingSchedule, SaysForHowLong) {
  struct Case {
    const char* reason;
    const char* words;
  };
  for (const Case& c :
       {Case{"waiting for 2 nodes", "waiting 7 s for 2 nodes"}, Case{"paused", "paused (7 s)"}}) {
    WaitingSchedule schedule;
    schedule.Wait(c.reason, kStart);
    EXPECT_EQ(schedule.Tell(kStart + milliseconds(7900)), c.words);
  }
}

TEST(WaitingSchedule, CountsOnWhereTheReasonChanges) {
  WaitingSchedule schedule;
  schedule.Wait("waiting for 2 nodes", kStart);
  EXPECT_FALSE(schedule.Wait("waiting for 2 nodes", kStart + seconds(1)));
  EXPECT_TRUE(schedule.Wait("waiting for 1 node", kStart + seconds(3)));
  EXPECT_EQ(schedule.Tell(kStart + seconds(4)), "waiting 4 s for 1 node");
}

TEST(WaitingSchedule, MakesOneLineOfReasonsThatChangeQuickly) {
  WaitingSchedule schedule;
  schedule.Wait("waiting for 2 nodes", kStart);
  const Instant late = kStart + milliseconds(990);
  schedule.Wait("waiting for 1 node", late);
  EXPECT_EQ(schedule.Next(late), late + milliseconds(300));
}

TEST(WaitingSchedule, CountsAnewAfterAStop) {
  WaitingSchedule schedule;
  schedule.Wait("waiting for 2 nodes", kStart);
  schedule.Tell(kStart + seconds(30));
  schedule.Stop();
  EXPECT_FALSE(schedule.waiting());
  const Instant again = kStart + seconds(100);
  EXPECT_TRUE(schedule.Wait("waiting for 2 nodes", again));
  EXPECT_EQ(schedule.Next(again), again + seconds(1));
}

}  // namespace
}  // namespace hlaunch
