// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/goodput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Instant kStart{};

TEST(Goodput, SaysNothingOfAJobWithoutARestart) {
  Goodput goodput(kStart);
  goodput.Count(RoundStarted{}, kStart + seconds(1));
  goodput.Count(RoundStopped{}, kStart + seconds(9));
  EXPECT_EQ(goodput.Ran(kStart + seconds(10)), seconds(8));
  EXPECT_EQ(goodput.Text(kStart + seconds(10)), "");
}

TEST(Goodput, SaysHowMuchOfTheTimeWorkersRanAndWhatRestartsTook) {
  Goodput goodput(kStart);
  Instant now = kStart;
  goodput.Count(RoundStarted{}, now);
  for (const Duration pause : {Duration(seconds(40)), Duration(milliseconds(4500))}) {
    goodput.Count(RoundStopped{}, now += hours(1));
    goodput.Count(JobRestarted{}, now += pause);
    goodput.Count(RoundStarted{}, now);
  }
  EXPECT_THAT(goodput.restarts(), ElementsAre(seconds(40), milliseconds(4500)));
  EXPECT_EQ(goodput.Text(now + minutes(12)),
            "workers ran for 2 h 12 min of 2 h 12 min (99 %); 2 restarts took 40 s and 4.5 s");
}

TEST(Goodput, SumsUpManyRestarts) {
  Goodput goodput(kStart);
  Instant now = kStart;
  goodput.Count(RoundStarted{}, now);
  for (int i = 0; i < 5; ++i) {
    goodput.Count(RoundStopped{}, now += seconds(10));
    goodput.Count(JobRestarted{}, now += seconds(10));
    goodput.Count(RoundStarted{}, now);
  }
  EXPECT_EQ(goodput.Text(now),
            "workers ran for 50 s of 1 min 40 s (50 %); 5 restarts took 10 s, 10 s, 10 s and 2 "
            "more, 50 s in all");
}

TEST(Goodput, SaysBySomeCausesHowMuchTimeWasLost) {
  Goodput goodput(kStart);
  goodput.Count(RoundStarted{}, kStart + seconds(12));
  EXPECT_EQ(goodput.LostText(kStart + minutes(1)), "") << "Every job has a start.";
  goodput.Count(TimeLost{1, seconds(60), seconds(0)}, kStart + minutes(9));
  goodput.Count(TimeLost{1, seconds(122), seconds(20)}, kStart + minutes(10));
  EXPECT_EQ(goodput.LostText(kStart + minutes(20)),
            "time lost: 2 min 34 s of 20 min 0 s: start 12 s, waiting for the slowest rank 2 min 2 "
            "s, checkpoints 20 s");
  goodput.Count(RoundStopped{}, kStart + minutes(20));
  goodput.Count(JobRestarted{}, kStart + minutes(20));
  goodput.Count(RoundStarted{}, kStart + minutes(20) + seconds(36));
  goodput.Count(TimeLost{2, seconds(60), seconds(0)}, kStart + minutes(30));
  EXPECT_EQ(goodput.LostText(kStart + minutes(40)),
            "time lost: 4 min 10 s of 40 min 0 s: start 12 s, waiting for the slowest rank 3 min 2 "
            "s, checkpoints 20 s, restarts 36 s");
  EXPECT_EQ(goodput.Lost().waiting, seconds(182));
}

TEST(Goodput, CountsNoRestartForANodeThatCameAfterIt) {
  Goodput goodput(kStart);
  goodput.Count(JobRestarted{}, kStart + seconds(1));
  goodput.Count(RoundStarted{}, kStart + seconds(1));
  EXPECT_THAT(goodput.restarts(), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
