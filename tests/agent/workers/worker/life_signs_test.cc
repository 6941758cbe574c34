// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/life_signs.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Stands still in the loop until after the time that was allowed before, so many times in a row,
// and returns whether the workers are ended then. If `client_wakes`, the rendezvous' client says a
// moment later that more is allowed; its word comes on a timer of the loop, so the order does not
// depend on how busy the machine is.
bool EndsWorkersAfterAPause(bool client_wakes, int pauses = 1) {
  asio::io_context loop(1);
  Instant allowed = MonotonicClock().Now() + milliseconds(1200);
  bool woken = false, ended = false;
  LifeSigns signs(
      loop,
      [&](Instant now) {
        if (woken) loop.stop();
        return Allowance{now, allowed, woken ? now : MonotonicClock().Now() - milliseconds(1900)};
      },
      nullptr,
      [&] {
        ended = true;
        loop.stop();
      });
  signs.Begin();
  asio::steady_timer client(loop);
  std::function<void()> pause = [&] {
    std::this_thread::sleep_for(milliseconds(1800));  // This is the pause.
    if (--pauses > 0) {
      client.expires_after(milliseconds(50));
      return client.async_wait([&](const asio::error_code&) { pause(); });
    }
    if (!client_wakes) return;
    client.expires_after(milliseconds(700));  // It is late, since the host is busy.
    client.async_wait([&](const asio::error_code&) {
      allowed = MonotonicClock().Now() + seconds(600);
      woken = true;
    });
  };
  asio::post(loop, pause);
  loop.run_for(seconds(100));
  return ended;
}

TEST(LifeSigns, AskAfterAPauseOnlyOnceItIsKnownWhatIsAllowedNow) {
  EXPECT_FALSE(EndsWorkersAfterAPause(/*client_wakes=*/true));
}

TEST(LifeSigns, AskAfterEachOfSeveralPausesInARow) {
  EXPECT_FALSE(EndsWorkersAfterAPause(/*client_wakes=*/true, /*pauses=*/2));
}

TEST(LifeSigns, EndWorkersAfterAPauseIfNoMoreIsAllowed) {
  EXPECT_TRUE(EndsWorkersAfterAPause(/*client_wakes=*/false));
}

// As soon as the other one of two nodes could go on by proof, the keeper has to know.
TEST(LifeSigns, ShowThatLessIsAllowedSoonAfterTheWorkersHaveBegun) {
  asio::io_context loop(1);
  const Instant begin = MonotonicClock().Now();
  Duration allowed = seconds(600);
  Instant shown = Instant::max();
  LifeSigns signs(
      loop,
      [&](Instant now) {
        return Allowance{now, now + allowed};
      },
      [&](Instant until) {
        shown = until;
        if (allowed < seconds(600)) loop.stop();
        allowed = seconds(20);
      },
      nullptr);
  signs.Begin();
  loop.run_for(seconds(100));
  EXPECT_LT(shown, begin + seconds(60));
}

}  // namespace
}  // namespace hlaunch
