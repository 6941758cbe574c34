// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with real workers, which send a heartbeat and stall, and a py-spy that is a script.

#include "agent/watch/stall/stall_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "comm/liveness.h"
#include "proto/base/status_macros.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr Duration kSilence = std::chrono::milliseconds(50);  // A worker has stalled after that.

class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() {
    std::string folder = testing::TempDir() + "/stallsXXXXXX";
    folder_ = ::mkdtemp(folder.data());
    const std::string tool = folder_ + "/py-spy";
    // It records the process that it is asked for, and waits if the test holds that process's tool.
    std::ofstream(tool) << "#!/bin/sh\npid=$(echo $* | tr -dc 0-9)\ncd " << folder_
                        << "\necho $pid >> asked\n[ -p $pid ] && read go < $pid\n"
                           "echo 'Thread 1 (idle): \"MainThread\"'\necho '    work (train.py:3)'\n";
    HLAUNCH_CHECK(::chmod(tool.c_str(), 0755) == 0);
    WorkerSpec spec;
    spec.argv = {folder_ + "/python"};
    spec.nproc = 2;
    spec.heartbeat_timeout = kSilence;
    auto watch = StallWatch::Open(
        loop_, spec, 0, {{"", ""}, nullptr},
        {[this](const StalledWorker& cause) { causes_.push_back(cause.local_rank); },
         [this](int64_t step) { step_ = step; },
         {}});
    HLAUNCH_CHECK(watch.ok());
    watch_ = *std::move(watch);
  }
  ~StallWatchTest() override {
    watch_.reset();
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  // Starts a worker that sends one heartbeat, and returns once it was heard. If `held`, the tool
  // that is to read its stacks waits for LetGo.
  pid_t Worker(int local_rank, bool held) {
    ::setenv("HLAUNCH_HEARTBEAT", watch_->address(local_rank).c_str(), 1);
    int ends[2];
    HLAUNCH_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd wait(ends[0]), go(ends[1]);
    const int64_t step = local_rank + 1;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte;
      HLAUNCH_CHECK(::read(wait.get(), &byte, 1) == 1);
      SendHeartbeat(step, 0);
      for (;;) ::pause();
    }
    children_.push_back(pid);
    const std::string path = absl::StrCat(folder_, "/", pid);
    if (held) HLAUNCH_CHECK(::mkfifo(path.c_str(), 0600) == 0);
    if (held) hold_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    watch_->Started(local_rank, pid);
    HLAUNCH_CHECK(::write(go.get(), "", 1) == 1);
    HLAUNCH_CHECK(Until([&] { return step_ == step; }));
    return pid;
  }
  void LetGo() const { HLAUNCH_CHECK(::write(hold_.get(), "\n", 1) == 1); }

  // The processes whose stacks the tool was asked for.
  std::vector<pid_t> Asked() const {
    std::vector<pid_t> pids;
    std::ifstream file(folder_ + "/asked");
    for (pid_t pid; file >> pid;) pids.push_back(pid);
    return pids;
  }

  // Runs the loop until `done`, or until patience is over.
  template <typename Done>
  bool Until(Done done) {
    const Instant deadline = MonotonicClock().Now() + kPatience;
    while (!done() && MonotonicClock().Now() < deadline) {
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    return done();
  }
  bool IsAsked(pid_t pid) {
    return Until([&] { return ::testing::Matches(Contains(pid))(Asked()); });
  }

  asio::io_context loop_{1};
  std::string folder_;
  std::unique_ptr<StallWatch> watch_;
  std::vector<int> causes_;
  int64_t step_ = 0;
  std::vector<pid_t> children_;
  UniqueFd hold_;
};

TEST_F(StallWatchTest, LooksAtNoProcessForAWorkerThatEndedBeforeItsTurn) {
  const pid_t first = Worker(0, /*held=*/true);
  Worker(1, /*held=*/false);
  ASSERT_TRUE(IsAsked(first));
  // A later timer of the same loop: when it fires, the watch's timers have run.
  bool second_waits = false;
  asio::steady_timer stalled(loop_, 2 * kSilence);
  stalled.async_wait([&](const asio::error_code&) { second_waits = true; });
  ASSERT_TRUE(Until([&] { return second_waits; }));
  watch_->Ended(1);
  LetGo();
  ASSERT_TRUE(Until([&] { return !causes_.empty(); }));
  EXPECT_THAT(causes_, ElementsAre(0));
  EXPECT_THAT(Asked(), Each(first));
}

TEST_F(StallWatchTest, JudgesTheOthersWhereTheOneFurthestBehindHasEnded) {
  const pid_t first = Worker(0, /*held=*/false);
  const pid_t second = Worker(1, /*held=*/true);
  ASSERT_TRUE(IsAsked(first));
  ASSERT_TRUE(IsAsked(second));
  causes_.clear();
  watch_->Ended(0);
  LetGo();
  ASSERT_TRUE(Until([&] { return !causes_.empty(); }));
  EXPECT_THAT(causes_, ElementsAre(1));
}

}  // namespace
}  // namespace hlaunch
