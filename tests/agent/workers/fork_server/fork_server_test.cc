// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "agent/workers/fork_server/python_side.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A fork server of Debian's Python with a module of the test's own.
class ForkServerOf : public ::testing::Test {
 protected:
  void SetUp() override {
    BecomeSubreaper();
    std::string name = ::testing::TempDir() + "/fork_server_XXXXXX";
    folder_ = ::mkdtemp(name.data());
    ASSERT_TRUE(WritePythonSide(folder_ + "/side").ok());
    Write("script.py",
          "import big, os, sys; print(os.environ['RANK'], big.made == os.getpid(), "
          "'NOT_SHARED' in os.environ, sys.argv[1:], flush=True); sys.exit(7)\n");
  }

  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }

  // Starts it with `big` as its module, and waits until it is settled.
  ForkServer& Start(const std::string& big) {
    Write("big.py", big);
    rank_.argv = {python_, "-u", folder_ + "/script.py", "word"};
    rank_.env = {"PATH=/usr/bin:/bin"};
    ForkServerPlan plan{rank_, ReadPythonCall(rank_.argv), {false, {"big"}}, {"RANK"}};
    server_.emplace(loop_, plan, folder_ + "/side",
                    ForkServer::Events{[this] { settled_ = true; }, {}});
    AwaitSettled();
    return *server_;
  }

  void AwaitSettled() {
    while (!settled_) loop_.run_one();
    settled_ = false;
  }

  absl::StatusOr<ForkedRank> Fork(int rank) {
    Command command = rank_;
    command.env.push_back("RANK=" + std::to_string(rank));
    command.env.push_back("NOT_SHARED=1");
    const UniqueFd out(::open(OutOf(rank).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    command.stdout_fd = command.stderr_fd = out.get();
    return server_->Fork(command);
  }

  std::string OutOf(int rank) const { return folder_ + "/out" + std::to_string(rank); }

  std::string folder_, python_ = "/usr/bin/python3";
  asio::io_context loop_;
  Command rank_;
  bool settled_ = false;
  std::optional<ForkServer> server_;
};

ExitStatus Reap(Process& process) {
  pollfd exited = {process.pidfd(), POLLIN, 0};
  ::poll(&exited, 1, 20'000);
  return process.Reap();
}

TEST_F(ForkServerOf, BecomesRanksThatAreOurChildrenInSessionsOfTheirOwn) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  absl::StatusOr<ForkedRank> first = Fork(0), second = Fork(1);
  ASSERT_TRUE(first.ok() && second.ok());
  absl::StatusOr<Process> one = first->Await(), other = second->Await();
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(other.ok()) << other.status();
  const auto entry = ReadProcess(one->pid());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, ::getpid());
  EXPECT_EQ(Reap(*one).exit_code, 7);
  EXPECT_EQ(Reap(*other).exit_code, 7);
  EXPECT_EQ(Content(OutOf(0)), "0 False True ['word']\n");
  EXPECT_EQ(Content(OutOf(1)), "1 False True ['word']\n");
}

TEST_F(ForkServerOf, EndsARankThatNobodyLetsGo) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  { absl::StatusOr<ForkedRank> forgotten = Fork(0); }
  absl::StatusOr<ForkedRank> rank = Fork(1);
  absl::StatusOr<Process> process = rank->Await();
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(Reap(*process).exit_code, 7);
  EXPECT_EQ(Content(OutOf(0)), "");
}

TEST_F(ForkServerOf, RefusesWhatIsNotSafeToForkFrom) {
  const std::string unsafe[] = {
      "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
      "import os; os.environ.get('RANK')",
      "import os; os.getenv('RANK')",
      "import os; left = os.pipe()",
      "import os; left = open('/dev/full', 'w')",
      "import sys; sys.exit(0)",
      "import os; os._exit(0)",
      "import no_such_module",
      "import subprocess; left = subprocess.Popen(['sleep', '9'])",
      "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
  };
  for (const std::string& big : unsafe) {
    EXPECT_EQ(Start(big).end(), ForkServer::End::kUseless) << big;
    std::filesystem::remove_all(folder_ + "/__pycache__");
  }
}

TEST_F(ForkServerOf, IsNoneWherePythonIsAScriptThatMightLoseOurVariables) {
  Write("python3", "#!/bin/sh\nunset PYTHONPATH\ntouch ran\n");
  std::filesystem::permissions(folder_ + "/python3", std::filesystem::perms::owner_all);
  python_ = folder_ + "/python3";
  EXPECT_EQ(Start("import os; made = os.getpid()").end(), ForkServer::End::kUseless);
  EXPECT_EQ(server_->pid(), 0);
}

TEST_F(ForkServerOf, GivesUpAModuleThatStandsStill) {
  const std::string path = folder_ + "/side/hlaunch_fork_server.py";
  std::string side = Content(path);
  const std::string limit = "QUIET_LIMIT = 60.0";
  ASSERT_NE(side.find(limit), side.npos);
  std::ofstream(path) << side.replace(side.find(limit), limit.size(), "QUIET_LIMIT = 0.3");
  EXPECT_EQ(Start("import time; time.sleep(600)").end(), ForkServer::End::kUseless);
}

// torch says so where a device was started before the fork.
TEST_F(ForkServerOf, StartsARankAnewIfItsDeviceWouldNotWorkInAFork) {
  ASSERT_TRUE(Start("import os, sys, types; made = os.getpid(); "
                    "torch = sys.modules['torch'] = types.ModuleType('torch'); "
                    "torch._C = types.SimpleNamespace(_cuda_isInBadFork=lambda: True)")
                  .ready());
  absl::StatusOr<Process> rank = Fork(0)->Await();
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_EQ(Reap(*rank).exit_code, 7);
  EXPECT_EQ(Content(OutOf(0)), "0 True True ['word']\n");
}

TEST_F(ForkServerOf, IsReplacedOnceAFileHasChanged) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  server_->Renew([this] { settled_ = true; });
  AwaitSettled();
  EXPECT_TRUE(server_->ready());
  Write("big.py", "import os; made = 12345");
  server_->Renew([this] { settled_ = true; });
  AwaitSettled();
  EXPECT_EQ(server_->end(), ForkServer::End::kChanged);
}

TEST_F(ForkServerOf, IsGivenUpIfItIsKilledOrStandsStill) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
    ::kill(-server_->pid(), signal);
    absl::StatusOr<ForkedRank> rank = Fork(0);
    const absl::Status status = rank.ok() ? rank->Await().status() : rank.status();
    EXPECT_TRUE(absl::IsUnavailable(status));
    EXPECT_EQ(server_->end(), ForkServer::End::kLost);
  }
}

TEST_F(ForkServerOf, PrintsInEachRankWhatTheModulePrinted) {
  ASSERT_TRUE(Start("import os, sys; print('out'); print('err', file=sys.stderr); "
                    "made = os.getpid()")
                  .ready());
  absl::StatusOr<Process> rank = Fork(0)->Await();
  Reap(*rank);
  EXPECT_THAT(Content(OutOf(0)), HasSubstr("out\n"));
  EXPECT_THAT(Content(OutOf(0)), HasSubstr("err\n"));
}

}  // namespace
}  // namespace hlaunch
