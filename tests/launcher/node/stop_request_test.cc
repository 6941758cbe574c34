// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/stop_request.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace hlaunch {
namespace {

constexpr int kPatienceMillis = 100'000;

// Runs `body` in its own process, since it takes the signals of the whole process.
template <typename Body>
void InAProcess(Body body, const testing::ExitedWithCode& ends) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(body(), ends, "");
}

TEST(StopRequest, ASignalIsHeardThoughTheMainThreadIsBusy) {
  InAProcess(
      [] {
        const auto stop = StopRequest::Listen(std::chrono::minutes(10), [] { ::_exit(1); });
        ::kill(::getpid(), SIGTERM);
        pollfd asked = {(*stop)->fd(), POLLIN, 0};
        ::_exit(::poll(&asked, 1, kPatienceMillis) == 1 ? 7 : 1);
      },
      testing::ExitedWithCode(7));
}

TEST(StopRequest, AStopThatHangsIsGivenUp) {
  InAProcess(
      [] {
        const auto stop = StopRequest::Listen(std::chrono::milliseconds(1), [] { ::_exit(8); });
        ::kill(::getpid(), SIGINT);
        for (;;) ::pause();
      },
      testing::ExitedWithCode(8));
}

TEST(StopRequest, AStopThatIsOverIsNotGivenUp) {
  InAProcess(
      [] {
        {
          const auto stop = StopRequest::Listen(std::chrono::minutes(10), [] { ::_exit(1); });
          ::kill(::getpid(), SIGTERM);
          pollfd asked = {(*stop)->fd(), POLLIN, 0};
          ::poll(&asked, 1, kPatienceMillis);
        }
        ::_exit(9);
      },
      testing::ExitedWithCode(9));
}

}  // namespace
}  // namespace hlaunch
