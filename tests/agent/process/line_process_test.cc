// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/process/line_process.h"

#include <sys/wait.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

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

TEST(LineProcess, TellsItsEndAtOnceWhereThatIsAsked) {
  asio::io_context loop;
  std::vector<std::string> told;
  LineProcess process(loop, {"sh", "-c", "echo one; echo two; exit 3"},
                      {[&](absl::string_view line) { told.emplace_back(line); },
                       [&](const LineProcessEnd& end) { told.push_back(end.why); }});
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  process.TellNow();
  process.TellNow();
  loop.run();
  EXPECT_EQ(told, (std::vector<std::string>{"one", "two", "it ended with exit code 3"}));
}

TEST(LineProcess, OneThatLivesTellsOnlyWhatItHasSaid) {
  asio::io_context loop;
  std::vector<std::string> told;
  LineProcess process(loop, {"sh", "-c", "echo one; read line; echo $line"},
                      {[&](absl::string_view line) { told.emplace_back(line); },
                       [&](const LineProcessEnd& end) { told.push_back(end.why); }});
  while (told.empty()) process.TellNow();
  EXPECT_EQ(told, std::vector<std::string>{"one"});
  process.Say("two");
  loop.run();
  EXPECT_EQ(told, (std::vector<std::string>{"one", "two", "it ended with exit code 0"}));
}

}  // namespace
}  // namespace hlaunch
