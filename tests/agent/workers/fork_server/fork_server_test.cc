// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
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
    ForkServerPlan plan{rank_, ReadPythonCall(rank_.argv), {false, {"big"}}, {"RANK"}, 2};
    server_.emplace(loop_, plan, folder_ + "/side",
                    ForkServer::Events{[this] { settled_ = true; }, {}});
    AwaitSettled();
    return *server_;
  }

  void AwaitSettled() {
    while (!settled_) loop_.run_one();
    settled_ = false;
  }

  void Await(const std::function<bool()>& what) {
    while (!what()) loop_.run_one();
  }

  // The forks that wait, without the server.
  size_t Waiting() const { return server_->pids().size() - 1; }

  absl::StatusOr<Process> Fork(int rank) {
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
  absl::StatusOr<Process> one = Fork(0), other = Fork(1);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(other.ok()) << other.status();
  const auto entry = ReadProcess(one->pid());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->parent, ::getpid());
  EXPECT_EQ(entry->session, one->pid());
  EXPECT_EQ(Reap(*one).exit_code, 7);
  EXPECT_EQ(Reap(*other).exit_code, 7);
  EXPECT_EQ(Content(OutOf(0)), "0 False True ['word']\n");
  EXPECT_EQ(Content(OutOf(1)), "1 False True ['word']\n");
}

TEST_F(ForkServerOf, LeavesNoForkThatNobodyNeeds) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  EXPECT_EQ(Waiting(), 2U);
  server_.reset();
  EXPECT_FALSE(HasChildren());
}

TEST_F(ForkServerOf, MakesForksForTheNextRoundInAdvance) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  for (int round = 0; round < 3; ++round) {
    absl::StatusOr<Process> one = Fork(0), other = Fork(1);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(Waiting(), 0U);
    EXPECT_TRUE(absl::IsUnavailable(Fork(2).status()));
    server_->MakeSpares();
    Await([this] { return Waiting() == 2; });
    EXPECT_EQ(Reap(*one).exit_code, 7);
    EXPECT_EQ(Reap(*other).exit_code, 7);
    const std::vector<pid_t> spares = server_->pids();
    server_->Renew([this] { settled_ = true; });
    AwaitSettled();
    EXPECT_TRUE(server_->ready());
    EXPECT_EQ(server_->pids(), spares);
  }
}

TEST_F(ForkServerOf, ReplacesAForkThatWasKilled) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  ::kill(server_->pids().front(), SIGKILL);
  Await([this] { return Waiting() == 1; });
  EXPECT_TRUE(server_->ready());
  server_->Renew([this] { settled_ = true; });
  AwaitSettled();
  EXPECT_EQ(Waiting(), 2U);
}

TEST_F(ForkServerOf, PassesOverAForkThatHasJustDied) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  const pid_t dies = server_->pids().front();
  ::kill(dies, SIGKILL);
  siginfo_t info = {};
  ::waitid(P_PID, static_cast<id_t>(dies), &info, WEXITED | WNOWAIT);
  absl::StatusOr<Process> rank = Fork(0);
  ASSERT_TRUE(rank.ok()) << rank.status();
  EXPECT_EQ(Reap(*rank).exit_code, 7);
}

TEST_F(ForkServerOf, RenewsWhileForksAreBeingMade) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  absl::StatusOr<Process> one = Fork(0), other = Fork(1);
  server_->MakeSpares();
  server_->Renew([this] { settled_ = true; });
  AwaitSettled();
  EXPECT_TRUE(server_->ready());
  EXPECT_EQ(Waiting(), 2U);
  Reap(*one);
  Reap(*other);
}

// More variables than a socket holds: such a rank starts in the normal way.
TEST_F(ForkServerOf, DoesNotWaitForAForkThatDoesNotRead) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  for (int i = 0; i < 60; ++i) {
    rank_.env.push_back("BIG" + std::to_string(i) + "=" + std::string(100'000, 'x'));
  }
  for (const pid_t pid : server_->pids()) ::kill(pid, SIGSTOP);
  EXPECT_TRUE(absl::IsUnavailable(Fork(0).status()));
  for (const pid_t pid : server_->pids()) ::kill(pid, SIGCONT);
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
  absl::StatusOr<Process> rank = Fork(0);
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

TEST_F(ForkServerOf, IsGivenUpWithItsForksIfItIsKilled) {
  ASSERT_TRUE(Start("import os; made = os.getpid()").ready());
  ::kill(-server_->pid(), SIGKILL);
  Await([this] { return server_->end() != ForkServer::End::kNone && server_->pids().empty(); });
  EXPECT_EQ(server_->end(), ForkServer::End::kLost);
  EXPECT_TRUE(absl::IsUnavailable(Fork(0).status()));
}

TEST_F(ForkServerOf, PrintsInEachRankWhatTheModulePrinted) {
  ASSERT_TRUE(Start("import os, sys; print('out'); print('err', file=sys.stderr); "
                    "made = os.getpid()")
                  .ready());
  absl::StatusOr<Process> rank = Fork(0);
  Reap(*rank);
  EXPECT_THAT(Content(OutOf(0)), HasSubstr("out\n"));
  EXPECT_THAT(Content(OutOf(0)), HasSubstr("err\n"));
}

}  // namespace
}  // namespace hlaunch
