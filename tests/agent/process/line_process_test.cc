// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/process/line_process.h"

#include <sys/wait.h>

#include <cerrno>
#include <optional>

#include "asio/io_context.hpp"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

TEST(LineProcess, OneThatIsDroppedLeavesNoZombie) {
  asio::io_context loop;
  std::optional<LineProcess> process;
  process.emplace(loop, std::vector<std::string>{"sleep", "1000"}, LineProcess::Events{});
  const pid_t pid = process->pid();
  ASSERT_GT(pid, 0);
  process.reset();
  loop.run();  // Until there is nothing left to wait for.
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace hlaunch
