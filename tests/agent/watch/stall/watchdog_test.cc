// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with a real pipe, a real loop and real processes. tests/end_to_end/watchdog_test.py tests
// torch's own client.

#include "agent/watch/stall/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kArm[] =
    R"(printf '{"version": 1, "pid": %s, "scope_id": "%s", "expiration_time": %s, "signal": %s}\n')";

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() { spec_.inherited_env = {"TORCHELASTIC_ENABLE_FILE_TIMER=1"}; }
  ~WatchdogTest() override { ::unlink(named_.c_str()); }

  std::unique_ptr<Watchdog> Open() {
    auto watchdog = Watchdog::Open(loop_, spec_, [this](pid_t child, std::string reason) {
      child_ = child;
      reason_ = std::move(reason);
    });
    HLAUNCH_CHECK(watchdog.ok());
    return *std::move(watchdog);
  }

  // Runs `script` until it has ended. It may use `arm PID SCOPE TIME SIGNAL` and $PIPE.
  ExitStatus Run(const Watchdog& watchdog, const std::string& script) {
    Command command{.argv = {"/bin/sh", "-c",
                             absl::StrCat("arm() { ", kArm, " $1 $2 $3 $4 > $PIPE; }; ", script)}};
    command.env = {absl::StrCat("PIPE=", watchdog.path()), "PATH=/usr/bin:/bin"};
    Child child(command);
    const Instant deadline = MonotonicClock().Now() + kPatience;
    pollfd exited = {child.process().pidfd(), POLLIN, 0};
    while (::poll(&exited, 1, 0) == 0 && MonotonicClock().Now() < deadline) {
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    pid_ = child.process().pid();
    return child.Wait();
  }

  const std::string named_ = absl::StrCat(::testing::TempDir(), "/watchdog", ::getpid());
  asio::io_context loop_{1};
  WorkerSpec spec_;
  pid_t child_ = 0;
  pid_t pid_ = 0;
  std::string reason_;
};

TEST_F(WatchdogTest, IsWantedOnlyWhereTheUserSaysSo) {
  EXPECT_TRUE(Watchdog::IsWanted(spec_));
  spec_.inherited_env = {"TORCHELASTIC_ENABLE_FILE_TIMER=0"};
  EXPECT_FALSE(Watchdog::IsWanted(spec_));
  spec_.inherited_env = {};
  EXPECT_FALSE(Watchdog::IsWanted(spec_));
}

TEST_F(WatchdogTest, EndsAProcessThatIsLate) {
  const auto watchdog = Open();
  EXPECT_EQ(Run(*watchdog, "arm $$ step 1.5 15; exec sleep 1000").signal, SIGTERM);
  EXPECT_EQ(child_, pid_);
  EXPECT_THAT(reason_, StartsWith("the watchdog sent SIGTERM to "));
  EXPECT_THAT(reason_, HasSubstr("its timer 'step' has expired"));
}

TEST_F(WatchdogTest, NamesTheChildWhoseDescendantIsLate) {
  const auto watchdog = Open();
  const ExitStatus exit =
      Run(*watchdog, "setsid sh -c 'exec sleep 1000' & arm $! inner 1 9; wait $!; exit 3");
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_EQ(child_, pid_) << "not the one that was killed";
  EXPECT_THAT(reason_, HasSubstr("'inner'"));
}

TEST_F(WatchdogTest, SparesWhoTookItsTimerBackOrNamedNoSignal) {
  const auto watchdog = Open();
  EXPECT_EQ(Run(*watchdog,
                "arm $$ step $(($(date +%s) + 1000)) 9; arm $$ step -1 0; arm $$ said 1 0; "
                "arm $$ stop 1 15; exec sleep 1000")
                .signal,
            SIGTERM);
  EXPECT_THAT(reason_, HasSubstr("'stop'"));
}

TEST_F(WatchdogTest, NeverEndsAStranger) {
  const auto watchdog = Open();
  // This process and pid 1 are no descendants of it. The last line ends the writer itself.
  EXPECT_EQ(Run(*watchdog, absl::StrCat("arm ", ::getpid(), " us 1 9; arm 1 init 1 9; ",
                                        "arm $$ me 1 15; exec sleep 1000"))
                .signal,
            SIGTERM);
  EXPECT_EQ(child_, pid_);
}

TEST_F(WatchdogTest, OutlastsWhatIsNoTimer) {
  const auto watchdog = Open();
  EXPECT_EQ(Run(*watchdog,
                "head -c 1000000 /dev/zero > $PIPE; echo > $PIPE; echo '{}' > $PIPE; "
                "arm $$ step 1 15; exec sleep 1000")
                .signal,
            SIGTERM);
}

TEST_F(WatchdogTest, RestsWhileNothingIsArmed) {
  const auto watchdog = Open();
  loop_.restart();
  asio::steady_timer end(loop_, std::chrono::milliseconds(300));
  bool over = false;
  end.async_wait([&](const asio::error_code&) { over = true; });
  int turns = 0;
  while (!over) turns += static_cast<int>(loop_.run_one());
  EXPECT_EQ(turns, 1) << "the test's own timer";
}

TEST_F(WatchdogTest, UsesThePipeThatTheUserNamed) {
  spec_.inherited_env.push_back("TORCHELASTIC_TIMER_FILE=" + named_);
  for (int round = 0; round < 2; ++round) {
    const auto watchdog = Open();
    EXPECT_EQ(watchdog->path(), named_);
    struct stat st = {};
    ASSERT_EQ(::stat(named_.c_str(), &st), 0);
    EXPECT_TRUE(S_ISFIFO(st.st_mode));
    EXPECT_EQ(st.st_mode & 0777, 0600u);
    const auto other = Open();
    EXPECT_NE(other->path(), named_) << "an agent that lives serves there";
    EXPECT_EQ(::access(named_.c_str(), F_OK), 0);
  }
  EXPECT_NE(::access(named_.c_str(), F_OK), 0) << "it is gone with the watchdog";
  ASSERT_EQ(::mkfifo(named_.c_str(), 0600), 0);
  EXPECT_EQ(Open()->path(), named_) << "what a killed agent left there";
}

TEST_F(WatchdogTest, RefusesAFileInItsPlace) {
  spec_.inherited_env.push_back("TORCHELASTIC_TIMER_FILE=" + named_);
  std::ofstream(named_) << "precious";
  auto refused = Watchdog::Open(loop_, spec_, nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("is there and is no pipe"));
  EXPECT_EQ(::access(named_.c_str(), F_OK), 0);
  spec_.inherited_env.back() = "TORCHELASTIC_TIMER_FILE=/no/such/place";
  refused = Watchdog::Open(loop_, spec_, nullptr);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("/no/such/place"));
}

}  // namespace
}  // namespace hlaunch
