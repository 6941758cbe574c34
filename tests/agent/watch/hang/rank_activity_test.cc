// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/rank_activity.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace hlaunch {
namespace {

TEST(WasBusy, TellsByTheBytesSinceTheLastLook) {
  RankActivity before, now;
  before.moved = 5 << 20;
  now.moved = 6 << 20;
  EXPECT_TRUE(WasBusy(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(WasBusy(before, now, std::chrono::hours(1)));
}

TEST(Spun, KnowsAThreadThatAsksAgainAndAgainFromThreadsThatWakeUp) {
  RankActivity before, now;
  now.computed = std::chrono::milliseconds(80);
  EXPECT_FALSE(Spun(before, now, std::chrono::seconds(1)));
  EXPECT_TRUE(WasBusy(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(MovedMuch(before, now, std::chrono::seconds(1)));
  now.computed = std::chrono::milliseconds(120);
  EXPECT_TRUE(Spun(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(Spun(before, now, Duration::zero()));
  now.computed = std::chrono::milliseconds(5);
  now.state = 'R';
  EXPECT_FALSE(Spun(before, now, std::chrono::seconds(1)));
  before.state = 'R';
  EXPECT_TRUE(Spun(before, now, std::chrono::seconds(1))) << "on a busy machine";
  now.moved = 1 << 20;
  EXPECT_TRUE(MovedMuch(before, now, std::chrono::seconds(1)));
}

TEST(WasBusy, SeesASlowDiskOrLine) {
  RankActivity before, now;
  now.moved = 20000;
  EXPECT_TRUE(WasBusy(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(BytesFlowed(before, now, std::chrono::seconds(1)));
  now.moved = 0;
  now.transferred = 20000;
  EXPECT_TRUE(BytesFlowed(before, now, std::chrono::seconds(1)));
  EXPECT_FALSE(BytesFlowed(before, now, std::chrono::seconds(5)));
}

TEST(ProcessesBelow, AreThoseThatItHasStarted) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::fork();
    const char one = '1';
    if (::write(ready[1], &one, 1) != 1) ::_exit(1);
    volatile uint64_t work = 0;
    while (true) work = work + 1;
  }
  char two[2];
  ASSERT_EQ(::read(ready[0], two, 1) + ::read(ready[0], two, 1), 2);
  const std::vector<pid_t> below = ProcessesBelow(::getpid());
  EXPECT_EQ(below.size(), 2u);
  EXPECT_EQ(std::count(below.begin(), below.end(), child), 1);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const RankActivity before = ReadActivityOf(below, {});
  RankActivity now = before;
  while (now.computed == before.computed && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
    now = ReadActivityOf(below, {});
  }
  EXPECT_TRUE(WasBusy(before, now, std::chrono::milliseconds(100)));
  for (const pid_t pid : below) ::kill(pid, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(ProcessesBelow(-1).empty());
}

TEST(WasBusy, ANewProcessThatHasMovedLessThanTheOldOneWasNot) {
  RankActivity before, now;
  before.moved = before.transferred = 5 << 20;
  before.computed = std::chrono::seconds(5);
  EXPECT_FALSE(WasBusy(before, now, std::chrono::seconds(1)));
}

}  // namespace
}  // namespace hlaunch
