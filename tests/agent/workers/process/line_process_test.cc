// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/line_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/held_program.h"
#include "asio/io_context.hpp"
#include "gtest/gtest.h"
#include "proto/base/unique_fd.h"
#include "tests/rendezvous/no_descriptors.h"

namespace hlaunch {
namespace {

TEST(LineProcess, OneThatIsDroppedLeavesNoZombie) {
  asio::io_context loop;
  std::optional<LineProcess> process;
  process.emplace(loop, std::vector<std::string>{"sleep", "1000"}, LineProcess::Events{});
  const pid_t pid = process->pid();
  ASSERT_GT(pid, 0);
  process.reset();
  loop.run();  // Runs until there is nothing left to wait for.
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

TEST(LineProcess, RunsAHeldProgramThoughItsFileWasReplacedOrRemoved) {
  const std::string path = absl::StrCat(testing::TempDir(), "/held_program.", ::getpid());
  std::filesystem::copy_file("/bin/echo", path);
  const HeldProgram program(path);
  EXPECT_TRUE(program.IsUnchanged());
  const auto say = [&program] {
    asio::io_context loop;
    std::vector<std::string> told;
    LineProcess process(loop, {program.path(), "as before"},
                        {[&](absl::string_view line) { told.emplace_back(line); },
                         [&](const LineProcessEnd& end) { told.push_back(end.why); }},
                        LineProcess::Stderr::kOurs, program.fd());
    loop.run();
    return told;
  };
  const std::vector<std::string> as_before = {"as before", "it ended with exit code 0"};
  EXPECT_EQ(say(), as_before);
  std::filesystem::remove(path);
  EXPECT_FALSE(program.IsUnchanged());
  EXPECT_EQ(say(), as_before);
  std::filesystem::copy_file("/bin/false", path);
  EXPECT_FALSE(program.IsUnchanged());
  EXPECT_EQ(say(), as_before);
  std::filesystem::remove(path);
  EXPECT_EQ(HeldProgram("").fd(), -1);
  EXPECT_EQ(HeldProgram("/proc/self/exe").fd(), -1);
}

// A reader of a pipe that the process holds wakes up while the process still closes its files.
TEST(LineProcess, TellsTheEndOfOneThatWasKilledToWhoeverLostAConnectionToIt) {
  for (int round = 0; round < 30; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    asio::io_context loop;
    std::vector<std::string> told;
    const std::string held = absl::StrCat("/proc/", ::getpid(), "/fd/", write_end.get());
    LineProcess process(loop, {"sh", "-c", absl::StrCat("exec 9>", held, "; echo >&9; read line")},
                        {nullptr, [&](const LineProcessEnd& end) { told.push_back(end.why); }});
    pollfd opened = {read_end.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&opened, 1, 60'000), 1);
    char byte;
    ASSERT_EQ(::read(read_end.get(), &byte, 1), 1);
    write_end.Close();
    ASSERT_EQ(::kill(process.pid(), SIGKILL), 0);
    ASSERT_EQ(::read(read_end.get(), &byte, 1), 0);  // This reader sees the end of the process.
    process.TellNow();
    EXPECT_EQ(told, std::vector<std::string>{"it ended with killed by SIGKILL"}) << round;
  }
}

TEST(LineProcess, TellsItsEndThoughNoDescriptorIsLeft) {
  asio::io_context loop;
  std::vector<std::string> told;
  LineProcess process(loop, {"sh", "-c", "read line; exit 3"},
                      {nullptr, [&](const LineProcessEnd& end) { told.push_back(end.why); }});
  process.CloseInput();
  const NoDescriptors none;
  loop.run();
  EXPECT_EQ(told, std::vector<std::string>{"it ended with exit code 3"});
}

TEST(LineProcess, ReadsLateWhatItWasToldWhateverThePipeTakes) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]), write_end(ends[1]);
  const std::string held = absl::StrCat("/proc/", ::getpid(), "/fd/", read_end.get());
  asio::io_context loop;
  std::vector<std::string> told;
  LineProcess process(loop, {"sh", "-c", absl::StrCat("read go <", held, "; exec wc -c")},
                      {[&](absl::string_view line) { told.emplace_back(line); },
                       [&](const LineProcessEnd& end) { told.push_back(end.why); }});
  for (int i = 0; i < 40; ++i) process.Say(std::string(4999, 'x'));
  process.CloseInput();
  ASSERT_EQ(::write(write_end.get(), "\n", 1), 1);
  loop.run();
  EXPECT_EQ(told, (std::vector<std::string>{"200000", "it ended with exit code 0"}));
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
