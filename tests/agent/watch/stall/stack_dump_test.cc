// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with real processes and the tools that are installed here. Scripts that print the same
// output replace missing tools.

#include "agent/watch/stall/stack_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/watch/stall/stack_text.h"
#include "asio/io_context.hpp"
#include "proto/base/status_macros.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRegister[] =
    "import faulthandler, os, signal, sys, time\n"
    "file = os.memfd_create('hlaunch-stacks')\n"
    "faulthandler.register(signal.SIGRTMAX - 7, file=file)\n"
    "def stalls_here():\n"
    "    print('fd', file, flush=True)\n"
    "    time.sleep(600)\n"
    "stalls_here()\n";

class StackDumpTest : public ::testing::Test {
 protected:
  StackDumpTest() { std::filesystem::create_directory(tools_); }
  ~StackDumpTest() override { std::filesystem::remove_all(tools_); }

  // Makes a program in `tools_` that runs `script`.
  void MakeTool(const std::string& name, const std::string& script) {
    const std::string path = absl::StrCat(tools_, "/", name);
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    HLAUNCH_CHECK(::chmod(path.c_str(), 0755) == 0);
  }

  ProcessStacks Dump(pid_t pid, int signal = 0, int fd = -1,
                     Duration limit = std::chrono::seconds(20)) {
    const auto process = ReadProcess(pid);
    HLAUNCH_CHECK(process.has_value());
    std::vector<ProcessStacks> found;
    StackDump dump(loop_, {{*process, signal, fd}}, tools_, limit,
                   [&](std::vector<ProcessStacks> all) { found = std::move(all); });
    const Instant deadline = MonotonicClock().Now() + kPatience;
    loop_.restart();
    while (found.empty() && MonotonicClock().Now() < deadline) {
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    HLAUNCH_CHECK(found.size() == 1);
    EXPECT_THAT(found[0].process, HasSubstr(absl::StrCat("[", pid, "], state ")));
    return found[0];
  }

  static Command Sleep() { return {.argv = {"/bin/sleep", "600"}}; }
  static Command Python(const std::string& code) {
    return {.argv = {"/usr/bin/python3", "-c", code}};
  }

  const std::string tools_ = absl::StrCat(::testing::TempDir(), "/stack_dump", ::getpid());
  asio::io_context loop_{1};
};

TEST_F(StackDumpTest, TakesWhatPySpyShows) {
  MakeTool("py-spy", "echo 'Thread 1 (idle): \"MainThread\"'; echo \"    $3 (train.py:$4)\"");
  Child child(Sleep());
  const ProcessStacks stacks = Dump(child.process().pid());
  EXPECT_THAT(stacks.text, HasSubstr("by py-spy:"));
  EXPECT_EQ(SummarizeStacks(stacks.text).frames,
            std::vector<std::string>{absl::StrCat("--pid (train.py:", child.process().pid(), ")")});
}

TEST_F(StackDumpTest, AsksPySpyForTheWholeNamesOfFiles) {
  MakeTool("py-spy",
           "echo 'Thread 1 (idle): \"MainThread\"'; case \"$*\" in *--full-filenames*) "
           "echo '    match (/usr/lib/python3.11/re/__init__.py:166)';; esac");
  Child child(Sleep());
  EXPECT_EQ(SummarizeStacks(Dump(child.process().pid()).text).frames,
            std::vector<std::string>{"match (/usr/lib/python3.11/re/__init__.py:166)"});
}

TEST_F(StackDumpTest, AsksPySpyWithoutTheFramesOfCWhereThoseCannotBeHad) {
  MakeTool("py-spy",
           "[ $2 = --native ] && exit 1; echo 'Thread 1 (idle): \"MainThread\"'; "
           "echo '    work (train.py:3)'");
  Child child(Sleep());
  EXPECT_THAT(Dump(child.process().pid()).text, HasSubstr("work (train.py:3)"));
}

TEST_F(StackDumpTest, HasFaulthandlerWriteThem) {
  MakeTool("py-spy", "echo 'Error: Permission denied' >&2; exit 1");
  Child child(Python(kRegister));
  const int fd = child.PidAfter("fd ");
  const ProcessStacks stacks = Dump(child.process().pid(), SIGRTMAX - 7, fd);
  EXPECT_THAT(stacks.text, HasSubstr("by faulthandler:"));
  EXPECT_THAT(stacks.text, HasSubstr("in stalls_here"));
  EXPECT_EQ(stacks.problem, "");
  // The second dump has only what is new.
  EXPECT_THAT(SummarizeStacks(Dump(child.process().pid(), SIGRTMAX - 7, fd).text).traceback,
              HasSubstr("in stalls_here"));
}

TEST_F(StackDumpTest, SendsNoSignalThatWouldEndTheProcess) {
  MakeTool("py-spy", "exit 1");
  Child other(
      Python("import os\nprint('fd', os.memfd_create('hlaunch-stacks'), flush=True)\n"
             "import time\ntime.sleep(600)"));
  const int fd = other.PidAfter("fd ");
  Dump(other.process().pid(), SIGRTMAX - 7, fd);  // The process does not catch this signal.
  Dump(other.process().pid(), SIGTERM, 1);        // That is not such a file either.
  pollfd exited = {other.process().pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&exited, 1, 0), 0) << "it lives";
}

TEST_F(StackDumpTest, AsksGdbOfAProgramThatIsNoPython) {
  if (std::system("command -v gdb >/dev/null") != 0) GTEST_SKIP() << "no gdb";
  MakeTool("py-spy", "echo 'Error: Failed to find python version'; exit 1");
  Child child(Sleep());
  const ProcessStacks stacks = Dump(child.process().pid());
  EXPECT_THAT(stacks.text, HasSubstr("by gdb:")) << stacks.problem;
  EXPECT_THAT(stacks.text, HasSubstr("nanosleep"));
}

TEST_F(StackDumpTest, EndsInTimeThoughAToolHangs) {
  MakeTool("py-spy", "exec sleep 600");
  Child child(Sleep());
  const ProcessStacks stacks = Dump(child.process().pid(), 0, -1, std::chrono::milliseconds(200));
  EXPECT_EQ(stacks.text, "");
  EXPECT_THAT(stacks.problem, HasSubstr("py-spy: it did not end within 0."));
}

TEST_F(StackDumpTest, BoundsWhatAToolSays) {
  MakeTool("py-spy", "exec yes");
  Child child(Sleep());
  const ProcessStacks stacks = Dump(child.process().pid(), 0, -1, std::chrono::seconds(1));
  EXPECT_THAT(stacks.text, Not(HasSubstr("by py-spy")));
}

}  // namespace
}  // namespace hlaunch
