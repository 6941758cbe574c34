// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/heartbeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Instant kStart{std::chrono::hours(1)};
constexpr Duration kLimit = seconds(60);

Heartbeat AtStep(int64_t step) { return {.step = step}; }

std::vector<int> Workers(const std::vector<Stall>& stalls) {
  std::vector<int> workers;
  for (const Stall& stall : stalls) workers.push_back(stall.worker);
  return workers;
}

TEST(ParseHeartbeat, ReadsItsWordsInAnyOrder) {
  const auto bare = ParseHeartbeat("heartbeat/1");
  ASSERT_TRUE(bare);
  EXPECT_FALSE(bare->step || bare->limit);
  EXPECT_EQ(bare->stack_signal, 0);
  const auto full = ParseHeartbeat("heartbeat/1 stacks=44,5 timeout_ms=1500 step=-7 new=word\n");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->step, -7);
  EXPECT_EQ(full->limit, milliseconds(1500));
  EXPECT_EQ(full->stack_signal, 44);
  EXPECT_EQ(full->stack_fd, 5);
}

TEST(ParseHeartbeat, RefusesWhatIsNone) {
  for (const char* text :
       {"", " ", "heartbeat", "heartbeat/2", "heartbeat/1x", "step=1",
        "heartbeat/1 step=", "heartbeat/1 step=1.5", "heartbeat/1 step=99999999999999999999",
        "heartbeat/1 timeout_ms=-1", "heartbeat/1 stacks=44", "heartbeat/1 stacks=0,5",
        "heartbeat/1 stacks=65,5", "heartbeat/1 stacks=44,-1", "heartbeat/1 stacks=44,5,6"}) {
    EXPECT_FALSE(ParseHeartbeat(text)) << text;
  }
  EXPECT_FALSE(ParseHeartbeat("heartbeat/1 " + std::string(kMaxHeartbeatBytes, 'x')));
}

TEST(ParseHeartbeat, BoundsATimeThatNoClockHolds) {
  const auto parsed = ParseHeartbeat("heartbeat/1 timeout_ms=9223372036854775807");
  ASSERT_TRUE(parsed);
  EXPECT_LE(*parsed->limit, std::chrono::hours(24 * 366));
}

TEST(ParseHeartbeat, TakesAnyBytes) {
  std::minstd_rand random(1);
  const std::string seed = "heartbeat/1 step=1200 timeout_ms=600000 stacks=44,5";
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seed.substr(0, random() % (seed.size() + 1));
    for (unsigned n = random() % 4; n > 0 && !text.empty(); --n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    const auto heartbeat = ParseHeartbeat(text);
    if (!heartbeat) continue;
    ++read;
    EXPECT_GE(heartbeat->limit.value_or(Duration::zero()), Duration::zero()) << text;
    EXPECT_LE(heartbeat->stack_signal, 64) << text;
  }
  EXPECT_GT(read, 100) << "some are still heartbeats";
}

TEST(Heartbeats, WatchesNobodyWhoNeverSentOne) {
  Heartbeats beats(2, kLimit);
  EXPECT_EQ(beats.Next(), std::nullopt);
  EXPECT_THAT(beats.TakeStalled(kStart + std::chrono::hours(9)), IsEmpty());
  beats.Take(1, {}, kStart);
  EXPECT_FALSE(beats.IsWatched(0));
  EXPECT_TRUE(beats.IsWatched(1));
  EXPECT_THAT(Workers(beats.TakeStalled(kStart + std::chrono::hours(9))), ElementsAre(1));
}

TEST(Heartbeats, TellsAStallOnceAndOnlyAfterTheLimit) {
  Heartbeats beats(1, kLimit);
  beats.Take(0, AtStep(1200), kStart);
  EXPECT_EQ(beats.Next(), kStart + kLimit);
  EXPECT_THAT(beats.TakeStalled(kStart + kLimit - milliseconds(1)), IsEmpty());
  const auto stalls = beats.TakeStalled(kStart + kLimit + seconds(2));
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].ToString(), "no heartbeat for 62 s (limit 60 s), last step 1200");
  EXPECT_TRUE(beats.HasStalled(0));
  EXPECT_THAT(beats.TakeStalled(kStart + std::chrono::hours(1)), IsEmpty());
  EXPECT_EQ(beats.Next(), std::nullopt);
}

TEST(Heartbeats, AWorkerThatIsHeardAgainGoesOnAndMayStallAgain) {
  Heartbeats beats(1, kLimit);
  EXPECT_FALSE(beats.Take(0, {}, kStart));
  beats.TakeStalled(kStart + kLimit);
  EXPECT_TRUE(beats.Take(0, {}, kStart + 2 * kLimit));
  EXPECT_FALSE(beats.HasStalled(0));
  EXPECT_EQ(beats.Next(), kStart + 3 * kLimit);
  const auto stalls = beats.TakeStalled(kStart + 3 * kLimit);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].ToString(), "no heartbeat for 60 s (limit 60 s)");
}

TEST(Heartbeats, AStepThatDoesNotMoveIsAStall) {
  Heartbeats beats(1, kLimit);
  for (int second = 0; second < 60; ++second) {
    beats.Take(0, AtStep(7), kStart + seconds(second));
  }
  const auto stalls = beats.TakeStalled(kStart + kLimit);
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].ToString(), "at step 7 for 60 s (limit 60 s), though its heartbeats come");
  EXPECT_FALSE(beats.Take(0, AtStep(7), kStart + seconds(61))) << "that is no news";
  EXPECT_TRUE(beats.Take(0, AtStep(6), kStart + seconds(62))) << "back to a checkpoint";
}

TEST(Heartbeats, ATimeOfItsOwnReplacesTheLimitOnce) {
  Heartbeats beats(1, kLimit);
  beats.Take(0, AtStep(7), kStart);
  beats.Take(0, {.step = 7, .limit = seconds(600)}, kStart + seconds(1));
  EXPECT_EQ(beats.Next(), kStart + seconds(601));
  beats.Take(0, {.step = 7, .limit = Duration::zero()}, kStart + seconds(2));
  EXPECT_EQ(beats.Next(), std::nullopt) << "as long as it likes";
  EXPECT_TRUE(beats.IsWatched(0));
  beats.Take(0, AtStep(8), kStart + seconds(3));
  EXPECT_EQ(beats.Next(), kStart + seconds(3) + kLimit);
}

TEST(Heartbeats, WatchesNobodyWhoHasEnded) {
  Heartbeats beats(2, kLimit);
  beats.Take(0, {}, kStart);
  beats.Take(1, {}, kStart);
  beats.Forget(0);
  EXPECT_THAT(Workers(beats.TakeStalled(kStart + kLimit)), ElementsAre(1));
}

TEST(Heartbeats, ForgivesAPauseOfItsOwn) {
  Heartbeats beats(1, kLimit);
  beats.Take(0, {}, kStart);
  beats.Forgive(seconds(100), kStart + seconds(159));
  EXPECT_THAT(beats.TakeStalled(kStart + seconds(159)), IsEmpty());
  EXPECT_THAT(Workers(beats.TakeStalled(kStart + seconds(160))), ElementsAre(0));
}

TEST(Heartbeats, ForgivesNothingToAWorkerThatWasHeardAfterThePause) {
  Heartbeats beats(2, kLimit);
  beats.Take(0, {}, kStart);
  beats.Take(1, {}, kStart + seconds(159));
  beats.Forgive(seconds(100), kStart + seconds(159));
  EXPECT_THAT(Workers(beats.TakeStalled(kStart + seconds(160))), ElementsAre(0));
  EXPECT_EQ(beats.Next(), kStart + seconds(159) + kLimit);
}

TEST(IsBehind, GoesByTheStepThenByTheLastNews) {
  const Stall early{.step = 3, .news = kStart};
  const Stall late{.step = 3, .news = kStart + seconds(1)};
  const Stall back{.step = 2, .news = kStart + seconds(2)};
  EXPECT_TRUE(IsBehind(back, early));
  EXPECT_FALSE(IsBehind(early, back));
  EXPECT_TRUE(IsBehind(early, late));
  EXPECT_FALSE(IsBehind(early, early));
  const Stall without{.news = kStart + seconds(5)};
  EXPECT_TRUE(IsBehind(early, without));
}

}  // namespace
}  // namespace hlaunch
