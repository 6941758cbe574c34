// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker/life_signs.h"

#include <gtest/gtest.h>

#include <thread>

#include "asio/io_context.hpp"
#include "asio/post.hpp"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The loop stands still until after the time that was allowed before. The rendezvous' client,
// another thread, wakes a moment later and then says what is allowed now.
class PausedLoop {
 public:
  // Returns whether the workers were ended although the client allows more.
  bool EndsWorkers(bool client_wakes) {
    const Instant begun = MonotonicClock().Now();
    Instant allowed = begun + milliseconds(1200);
    bool ended = false;
    LifeSigns signs(
        loop_, [&](Instant) { return allowed; }, nullptr,
        [&] {
          ended = true;
          loop_.stop();
        });
    signs.Begin();
    asio::post(loop_, [&] {
      std::this_thread::sleep_for(milliseconds(1800));
      // After this handler the timer's is due.
    });
    std::thread client;
    if (client_wakes) {
      client = std::thread([this, &allowed, begun] {
        std::this_thread::sleep_until(begun + milliseconds(1840));
        asio::post(loop_, [&allowed] { allowed = MonotonicClock().Now() + seconds(60); });
      });
    }
    loop_.run_for(seconds(3));
    if (client.joinable()) client.join();
    return ended;
  }

 private:
  asio::io_context loop_{1};
};

TEST(LifeSigns, AskAfterAPauseOnlyOnceItIsKnownWhatIsAllowedNow) {
  EXPECT_FALSE(PausedLoop().EndsWorkers(/*client_wakes=*/true));
}

TEST(LifeSigns, EndWorkersAfterAPauseIfNoMoreIsAllowed) {
  EXPECT_TRUE(PausedLoop().EndsWorkers(/*client_wakes=*/false));
}

}  // namespace
}  // namespace hlaunch
