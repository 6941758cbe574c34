// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/call_returns.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace hlaunch {
namespace {

volatile int g_calls = 0;

__attribute__((noinline)) void Called() { g_calls = g_calls + 1; }
__attribute__((noinline)) void NotCalled() { g_calls = g_calls - 1; }

TEST(CallReturns, CountsHowOftenTheProcessComesToAPlace) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) Called();
  }
  const auto called = CallReturns::Open(child, reinterpret_cast<uintptr_t>(&Called));
  const auto other = CallReturns::Open(child, reinterpret_cast<uintptr_t>(&NotCalled));
  if (called && other) {
    while (called->count() == 0) ::usleep(1000);
    EXPECT_EQ(other->count(), 0u);
  }
  EXPECT_FALSE(CallReturns::Open(child, 0));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!called || !other) GTEST_SKIP() << "the kernel may not count here";
}

}  // namespace
}  // namespace hlaunch
