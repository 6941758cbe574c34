// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests the watch on a real process in state D: a process that starts a child with CLONE_VFORK
// waits like that for the child. The test uses the system call, since ThreadSanitizer turns vfork()
// into a fork.

#include "agent/watch/stall/kernel_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr Instant kNow{};

TEST(KernelWaits, CountsFromTheFirstLookOfManyInARow) {
  KernelWaits waits(2, seconds(10));
  EXPECT_EQ(waits.Take(0, 'D', kNow), std::nullopt);
  EXPECT_EQ(waits.Take(1, 'S', kNow + seconds(9)), std::nullopt);
  EXPECT_EQ(waits.Take(0, 'D', kNow + seconds(9)), std::nullopt);
  EXPECT_EQ(waits.Take(0, 'D', kNow + seconds(10)), std::optional<Duration>(seconds(10)));
}

TEST(KernelWaits, BeginsAnewOnceTheProcessWasElsewhere) {
  KernelWaits waits(1, seconds(10));
  waits.Take(0, 'D', kNow);
  EXPECT_EQ(waits.Take(0, 'R', kNow + seconds(9)), std::nullopt);
  EXPECT_EQ(waits.Take(0, 'D', kNow + seconds(11)), std::nullopt);
  EXPECT_NE(waits.Take(0, 'D', kNow + seconds(21)), std::nullopt);
}

WorkerSpec With(const std::string& value) {
  WorkerSpec spec;
  spec.inherited_env = {"A=b", "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT=" + value};
  return spec;
}

TEST(KernelWaitWatch, HasTheLimitThatTorchrunReads) {
  EXPECT_EQ(KernelWaitWatch::LimitOf(WorkerSpec()), std::nullopt);
  EXPECT_EQ(KernelWaitWatch::LimitOf(With("1.5")), std::optional<Duration>(milliseconds(1500)));
  for (const char* none : {"", "0", "-1", "soon", "nan"}) {
    EXPECT_EQ(KernelWaitWatch::LimitOf(With(none)), std::nullopt) << none;
  }
}

TEST(KernelWaitWatch, TellsOnceOfAWorkerThatIsStuck) {
  const pid_t stuck = ::fork();
  if (stuck == 0) {
    ::setpgid(0, 0);  // One signal ends both.
    ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    for (;;) ::pause();
  }
  ASSERT_GT(stuck, 0);
  ::setpgid(stuck, stuck);
  const absl::Cleanup end = [stuck] {
    ::kill(-stuck, SIGKILL);
    ::waitpid(stuck, nullptr, 0);
  };
  asio::io_context loop(1);
  std::vector<std::string> told;
  const auto watch =
      KernelWaitWatch::Open(loop, With("0.1"), [&](int local_rank, std::string reason) {
        EXPECT_EQ(local_rank, 0);
        told.push_back(std::move(reason));
        loop.stop();
      });
  watch->Started(0, stuck);
  loop.run_for(seconds(60));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("is stuck in the kernel: "));
  EXPECT_THAT(told[0], HasSubstr("state D"));
  EXPECT_THAT(told[0], HasSubstr("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT is 0.1"));
  loop.restart();
  loop.run_for(milliseconds(300));
  EXPECT_EQ(told.size(), 1u);
}

}  // namespace
}  // namespace hlaunch
