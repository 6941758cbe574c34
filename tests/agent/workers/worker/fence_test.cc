// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/fence.h"

#include <gtest/gtest.h>

#include "agent/workers/worker/standstill.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A keeper that asks the fence when it is due, and an agent that runs or stands still.
class FenceTest : public ::testing::Test {
 protected:
  void Allow(Duration time) { fence_.Allow(now_ + time, now_); }

  // Looks until `time` has passed. Returns the time after which the fence fell, if it did.
  std::optional<Duration> Watch(Duration time) {
    const Instant begin = now_;
    while (true) {
      const std::optional<Instant> next = fence_.NextLook(now_);
      if (!next || *next > begin + time) break;
      now_ = std::max(*next, now_ + milliseconds(1));
      if (fence_.Fallen(now_)) return now_ - begin;
    }
    now_ = begin + time;
    return std::nullopt;
  }

  Fence fence_;
  Instant now_ = Instant() + hours(1);
};

TEST_F(FenceTest, StandsBeforeTheFirstWord) { EXPECT_EQ(Watch(hours(1)), std::nullopt); }

TEST_F(FenceTest, FallsWhenTheTimeIsOver) {
  Allow(seconds(30));
  EXPECT_EQ(Watch(hours(1)), seconds(30));
}

TEST_F(FenceTest, StandsWhileTheAgentGivesSignsOfLife) {
  for (int i = 0; i < 100; ++i) {
    Allow(seconds(30));
    ASSERT_EQ(Watch(NextSignOfLife(now_ + seconds(30), now_)), std::nullopt);
  }
  EXPECT_EQ(Watch(hours(1)), seconds(30) - NextSignOfLife(now_ + seconds(30), now_));
}

TEST_F(FenceTest, ALoopThatTurnsBuysNoTimeThatTheRendezvousDidNotGive) {
  const Instant until = now_ + seconds(30);
  for (int i = 0; i < 10; ++i) {
    fence_.Allow(until, now_);
    ASSERT_EQ(Watch(seconds(2)), std::nullopt);
  }
  EXPECT_EQ(Watch(hours(1)), seconds(10));
}

TEST_F(FenceTest, StandsAfterTheLastWorkerUntilTheNextRound) {
  Allow(seconds(30));
  fence_.Allow(Instant::max(), now_);
  EXPECT_EQ(Watch(hours(1)), std::nullopt);
  Allow(seconds(3));
  EXPECT_EQ(Watch(hours(1)), seconds(3));
}

TEST_F(FenceTest, AFrozenHostLetsTheAgentGoOnFirst) {
  Allow(seconds(30));
  now_ += hours(2);
  EXPECT_FALSE(fence_.Fallen(now_));
  Allow(seconds(8));  // The time that a client forgives itself.
  EXPECT_EQ(Watch(seconds(7)), std::nullopt);
  Allow(seconds(30));
  EXPECT_EQ(Watch(hours(1)), seconds(30));
}

TEST_F(FenceTest, AfterAFreezeAnAgentThatStillStandsIsEndedSoon) {
  Allow(seconds(30));
  now_ += hours(2);
  EXPECT_FALSE(fence_.Fallen(now_));
  const std::optional<Duration> fell = Watch(hours(1));
  ASSERT_TRUE(fell.has_value());
  EXPECT_GE(*fell, seconds(2));
  EXPECT_LE(*fell, seconds(7));
}

TEST_F(FenceTest, AKeeperThatWasStoppedAloneReadsOldWordsAndWaitsForANewOne) {
  Allow(seconds(30));
  const Instant stopped = now_;
  now_ += hours(2);
  for (int i = 1; i < 200; ++i) {  // The messages that the socket held.
    EXPECT_FALSE(fence_.Fallen(now_));
    fence_.Allow(stopped + i * milliseconds(3750) + seconds(30), now_);
  }
  EXPECT_EQ(Watch(milliseconds(3750)), std::nullopt);
  Allow(seconds(30));
  EXPECT_EQ(Watch(seconds(29)), std::nullopt);
}

TEST_F(FenceTest, AKeeperThatWasStoppedBeforeTheWorkersStartedWaitsForANewWordToo) {
  const Instant stopped = now_;
  now_ += hours(2);
  for (int i = 1; i < 200; ++i) {
    fence_.Allow(stopped + i * milliseconds(3750) + seconds(30), now_);
    EXPECT_FALSE(fence_.Fallen(now_));
  }
  EXPECT_EQ(Watch(milliseconds(3750)), std::nullopt);
  Allow(seconds(30));
  EXPECT_EQ(Watch(seconds(29)), std::nullopt);
}

TEST_F(FenceTest, AnAgentThatOnlyRepeatsWhatIsOverIsNotForgiven) {
  Allow(seconds(3));
  const Instant until = now_ + seconds(3);
  ASSERT_EQ(Watch(milliseconds(2900)), std::nullopt);
  fence_.Allow(until, now_);
  EXPECT_EQ(Watch(hours(1)), milliseconds(100));
  fence_.Allow(until, now_ + milliseconds(50));
  EXPECT_TRUE(fence_.Fallen(now_ + milliseconds(50)));
}

TEST_F(FenceTest, TellsALoopThatTurnsFromOneThatStandsStill) {
  Allow(seconds(8));
  ASSERT_EQ(Watch(seconds(8)), seconds(8));
  EXPECT_TRUE(fence_.Overdue(now_));
  EXPECT_EQ(fence_.Silence(now_), seconds(8));
  const Instant until = now_ + seconds(8);
  while (now_ < until) {
    fence_.Allow(until, now_);
    Watch(NextSignOfLife(until, now_));
  }
  EXPECT_FALSE(fence_.Overdue(now_));
}

TEST_F(FenceTest, IsNotLateOnABusyHost) {
  Allow(seconds(30));
  ASSERT_EQ(Watch(seconds(27)), std::nullopt);
  now_ += milliseconds(3600);
  EXPECT_TRUE(fence_.Fallen(now_));
}

TEST(SignOfLife, ComesThroughTheWire) {
  const Instant until = Instant() + hours(5) + milliseconds(7);
  EXPECT_EQ(DecodeSignOfLife(EncodeSignOfLife(until)), until);
  EXPECT_EQ(DecodeSignOfLife(EncodeSignOfLife(Instant::max())), Instant::max());
  for (const char* other : {"", "until", "until ", "until x", "2", "7 until 8"}) {
    EXPECT_EQ(DecodeSignOfLife(other), std::nullopt) << other;
  }
}

TEST(StandstillWords, SayWhatHoldsTheProcess) {
  EXPECT_EQ(StandstillWords('T', "do_signal_stop", ""), "is stopped, as by SIGSTOP");
  EXPECT_EQ(StandstillWords('t', "ptrace_stop", "gdb[12]"), "is held by the debugger gdb[12]");
  EXPECT_EQ(StandstillWords('D', "nfs_wait_bit", ""), "is stuck in the kernel, in nfs_wait_bit");
  EXPECT_EQ(StandstillWords('D', "0", ""), "is stuck in the kernel");
  EXPECT_EQ(StandstillWords('R', "0", ""), "runs, and its loop does not turn");
  EXPECT_EQ(StandstillWords('S', "futex_wait", ""),
            "waits in futex_wait, and its loop does not turn");
  EXPECT_EQ(StandstillWords('?', "", ""), "does not answer");
}

}  // namespace
}  // namespace hlaunch
