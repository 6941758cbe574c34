// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <optional>

#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

using testing::Contains;
using testing::ElementsAre;

Assignment SomeRound() {
  Assignment assignment;
  assignment.round = 2;
  assignment.node_rank = 3;
  assignment.first_rank = 12;
  return assignment;
}

TEST(WorkerCommand, GivesStdinToLocalRank0OnlyIfTheUserWants) {
  WorkerSpec spec;
  spec.argv = {"train"};
  spec.nproc = 2;
  const WorkerOutput output{UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
                            UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC))};
  EXPECT_EQ(WorkerCommand(spec, SomeRound(), 0, {}, output).stdin_fd, -1);
  spec.stdin_to = StdinTo::kRank0;
  EXPECT_EQ(WorkerCommand(spec, SomeRound(), 0, {}, output).stdin_fd, 0);
  EXPECT_EQ(WorkerCommand(spec, SomeRound(), 1, {}, output).stdin_fd, -1);
}

TEST(WorkerCommand, RunsTheProgramOfTheRank) {
  WorkerSpec spec;
  spec.argv = {"train"};
  spec.directory = "/here";
  spec.nproc = 3;
  spec.others = {{1, {"serve", "$local_rank"}, {}, "/data"}, {1, {"watch"}, {}, ""}};
  Assignment round = SomeRound();
  round.world_size = 15;
  const WorkerOutput output;
  const auto command = [&](int local_rank) {
    return WorkerCommand(spec, round, local_rank, {}, output);
  };
  EXPECT_THAT(command(0).argv, ElementsAre("train"));
  EXPECT_EQ(command(0).working_directory, "/here");
  EXPECT_THAT(command(1).argv, ElementsAre("serve", "1"));
  EXPECT_EQ(command(1).working_directory, "/data");
  EXPECT_THAT(command(2).argv, ElementsAre("watch"));
  EXPECT_EQ(command(2).working_directory, "/here");
}

TEST(WorkerCommand, HasTheStandInRunTheProgramWhereThereIsOne) {
  WorkerSpec spec;
  spec.argv = {"train", "$local_rank"};
  spec.nproc = 3;
  spec.stand_ins = {{}, {"stand-in", "$local_rank"}};
  const WorkerOutput output;
  EXPECT_THAT(WorkerCommand(spec, SomeRound(), 0, {}, output).argv, ElementsAre("train", "0"));
  EXPECT_THAT(WorkerCommand(spec, SomeRound(), 1, {}, output).argv,
              ElementsAre("stand-in", "$local_rank", "train", "1"));
  EXPECT_THAT(WorkerCommand(spec, SomeRound(), 2, {}, output).argv, ElementsAre("train", "2"));
}

TEST(WorkerCommand, BindsTheWorkersThatHaveABinding) {
  WorkerSpec spec;
  spec.argv = {"train"};
  spec.nproc = 2;
  spec.bindings.resize(1);
  spec.bindings[0].cpus = {4, 5};
  spec.bindings[0].memory_node = 1;
  const WorkerOutput output;
  const Command bound = WorkerCommand(spec, SomeRound(), 0, {}, output);
  EXPECT_EQ(bound.cpus, (std::vector<int>{4, 5}));
  EXPECT_EQ(bound.memory_node, 1);
  EXPECT_THAT(bound.env, Contains("RANK=12"));
  const Command free = WorkerCommand(spec, SomeRound(), 1, {}, output);
  EXPECT_TRUE(free.cpus.empty());
  EXPECT_EQ(free.memory_node, -1);
  EXPECT_THAT(free.env, Contains("RANK=13"));
}

class WorkerProcessTest : public testing::Test {
 protected:
  // Runs a worker with `script` and reaps it.
  ExitStatus Run(const std::string& script) {
    Command command;
    command.argv = {"/bin/sh", "-c", script};
    worker_.emplace(Process::Spawn(command).value(), 1, "", "/logs/1");
    pid_ = worker_->pid();
    ExitStatus status;
    EXPECT_TRUE(worker_->Watch(loop_, [&] { status = worker_->Reap(); }).ok());
    loop_.run();
    EXPECT_FALSE(worker_->alive());
    return status;
  }

  WorkerFailure Failure(const ExitStatus& status) {
    return worker_->Failure(SomeRound(), pid_, status, *relay_, {});
  }

  asio::io_context loop_{1};
  const std::unique_ptr<OutputRelay> relay_ = OutputRelay::Make(loop_).value();
  std::optional<WorkerProcess> worker_;
  pid_t pid_ = 0;
};

TEST_F(WorkerProcessTest, IsSeenToExitAndSaysWhichItWas) {
  const WorkerFailure failure = Failure(Run("exit 7"));
  EXPECT_EQ(failure.exit_code, 7);
  EXPECT_EQ(failure.rank, 13);
  EXPECT_EQ(failure.local_rank, 1);
  EXPECT_EQ(failure.node_rank, 3);
  EXPECT_EQ(failure.pid, pid_);
  EXPECT_EQ(failure.log_file, "/logs/1");
}

TEST_F(WorkerProcessTest, SaysWhereAStalledOneStood) {
  const ExitStatus status = Run("kill -KILL $$");
  worker_->Blame(StalledWorker{1, FailureKind::kStalled, "stalled: no heartbeat", "Traceback",
                               "step (train.py:3)"});
  const WorkerFailure failure = Failure(status);
  EXPECT_EQ(failure.signal, SIGKILL);
  EXPECT_EQ(failure.kind, FailureKind::kStalled);
  EXPECT_EQ(failure.evidence, "stalled: no heartbeat");
  EXPECT_EQ(failure.traceback, "Traceback");
  EXPECT_EQ(failure.log_tail, "step (train.py:3)");
}

TEST_F(WorkerProcessTest, TellsItsFailureOnce) {
  Run("exit 1");
  EXPECT_TRUE(worker_->TellsFailure());
  EXPECT_FALSE(worker_->TellsFailure());
}

}  // namespace
}  // namespace hlaunch
