// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_holder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "gtest/gtest.h"
#include "tests/rendezvous/no_descriptors.h"

namespace hlaunch {
namespace {

pid_t StartChild() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  return pid;
}

TEST(PartHolder, TellsOfTheEndByTheLoop) {
  asio::io_context loop;
  const pid_t pid = StartChild();
  int ended = 0;
  PartHolder holder(loop, pid, ReadProcess(pid)->start_time, [&] { ++ended; });
  holder.Signal(SIGKILL);
  loop.run();
  EXPECT_EQ(ended, 1);
  holder.Reap();
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1);
}

TEST(PartHolder, FindsTheEndWhereTheKernelGivesNoDescriptor) {
  asio::io_context loop;
  const pid_t pid = StartChild();
  const uint64_t start_time = ReadProcess(pid)->start_time;
  int ended = 0;
  std::optional<PartHolder> holder;
  {
    const NoDescriptors none;
    holder.emplace(loop, pid, start_time, [&] {
      ++ended;
      holder.reset();
    });
    holder->Look();  // Nothing can be read, so the part still counts as present.
    EXPECT_EQ(ended, 0);
    holder->Signal(SIGKILL);
  }
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  holder->Look();
  EXPECT_EQ(ended, 1);
  ::waitpid(pid, nullptr, 0);
}

TEST(PartHolder, WatchesByTheKernelAgainOnceItCan) {
  asio::io_context loop;
  const pid_t pid = StartChild();
  const uint64_t start_time = ReadProcess(pid)->start_time;
  int ended = 0;
  std::optional<PartHolder> holder;
  {
    const NoDescriptors none;
    holder.emplace(loop, pid, start_time, [&] { ++ended; });
  }
  holder->Look();
  ::kill(pid, SIGKILL);
  loop.run_for(std::chrono::seconds(60));
  EXPECT_EQ(ended, 1);
  holder->Reap();
}

TEST(HasEnded, KnowsAProcessByItsStart) {
  const pid_t pid = StartChild();
  const uint64_t start_time = ReadProcess(pid)->start_time;
  EXPECT_FALSE(HasEnded(pid, start_time));
  EXPECT_TRUE(HasEnded(pid, start_time + 1));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(HasEnded(pid, start_time));
}

}  // namespace
}  // namespace hlaunch
