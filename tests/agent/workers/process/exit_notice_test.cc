// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/exit_notice.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "agent/workers/process/process.h"

namespace hlaunch {
namespace {

bool IsReadable(const UniqueFd& fd, int milliseconds) {
  pollfd entry = {fd.get(), POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) == 1;
}

TEST(NoticeExit, TellsOfTheEndAndLeavesTheReapingToOthers) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  Command command;
  command.argv = {"/bin/sh", "-c", "read line; exit 7"};
  command.stdin_fd = read_end.get();
  auto process = Process::Spawn(command);
  ASSERT_TRUE(process.ok()) << process.status();
  const UniqueFd exited = NoticeExit(process->pid());
  ASSERT_TRUE(exited.valid());
  EXPECT_FALSE(IsReadable(exited, 0));
  write_end.Close();
  EXPECT_TRUE(IsReadable(exited, -1));
  EXPECT_EQ(process->Reap().exit_code, 7);
  EXPECT_TRUE(IsReadable(exited, 0));
}

TEST(NoticeExit, TellsOfOneThatWasReapedBefore) {
  Command command;
  command.argv = {"/bin/true"};
  auto process = Process::Spawn(command);
  ASSERT_TRUE(process.ok()) << process.status();
  const pid_t pid = process->pid();
  process->Reap();
  EXPECT_TRUE(IsReadable(NoticeExit(pid), -1));
}

}  // namespace
}  // namespace hlaunch
