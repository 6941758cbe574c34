// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_updates.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

class RecordingClient final : public RendezvousClient {
 public:
  void Join(const NodeInfo&, const NodeUpdate&, Listener*) override {}
  void Send(const NodeUpdate& update) override { sent.push_back(update); }
  void Answer(NodeAnswer) override {}
  void Tell(RoundWord) override {}
  Allowance AllowanceNow(Instant) const override { return {}; }
  std::vector<NodeUpdate> sent;
};

WorkerFailure ExitOf(int exit_code, int signal = 0) {
  WorkerFailure failure;
  failure.exit_code = exit_code;
  failure.signal = signal;
  return failure;
}

TEST(NodeUpdates, TellsAFailureWithItsHost) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(3);
  updates.TellFailure(ExitOf(7));
  ASSERT_EQ(client.sent.size(), 1u);
  EXPECT_EQ(client.sent[0].round, 3u);
  EXPECT_EQ(client.sent[0].phase, NodePhase::kFailed);
  ASSERT_EQ(client.sent[0].failures.size(), 1u);
  EXPECT_EQ(client.sent[0].failures[0].host, "here");
}

TEST(NodeUpdates, KeepsTheLastEntryForAFailureOfItsOwn) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(1);
  for (int i = 0; i < 40; ++i) updates.AddFailure(ExitOf(0, SIGPIPE));  // The peer was gone.
  EXPECT_EQ(updates.latest().failures.size(), 15u);
  updates.AddFailure(ExitOf(0, SIGSEGV));
  updates.AddFailure(ExitOf(0, SIGSEGV));
  ASSERT_EQ(updates.latest().failures.size(), 16u);
  EXPECT_EQ(updates.latest().failures.back().signal, SIGSEGV);
}

TEST(NodeUpdates, TellsWhoHasGivenUpWhileWorkersRun) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(3);
  updates.TellGivenUp(std::vector<int>(100, 2));
  updates.TellFailure(ExitOf(7));
  ASSERT_EQ(client.sent.size(), 2u);
  EXPECT_EQ(client.sent[0].given_up.size(), 16u);
  EXPECT_EQ(client.sent[1].given_up.size(), 16u);
  updates.TellSucceeded();
  updates.TellGivenUp({});
  EXPECT_EQ(client.sent.size(), 3u);
  updates.BeginRound(4);
  EXPECT_TRUE(updates.latest().given_up.empty());
}

TEST(NodeUpdates, TellsTheFirstGoodMomentAndThoseThatAreWanted) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(1);
  for (int i = 0; i < 5; ++i) updates.TellBoundary();
  ASSERT_EQ(client.sent.size(), 1u);
  EXPECT_EQ(client.sent[0].boundaries, 1);
  updates.WantBoundary(true);
  updates.TellBoundary();
  ASSERT_EQ(client.sent.size(), 2u);
  EXPECT_EQ(client.sent[1].boundaries, 6);
  updates.WantBoundary(false);
  updates.TellBoundary();
  EXPECT_EQ(client.sent.size(), 2u);
  updates.BeginRound(2);
  EXPECT_EQ(updates.latest().boundaries, 0);
  updates.TellBoundary();
  EXPECT_EQ(client.sent.back().boundaries, 1);
}

TEST(NodeUpdates, SaysThatItIsDrainedFromThenOn) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.TellDrain("the host goes down");
  EXPECT_EQ(client.sent.back().drain_reason, "the host goes down");
  updates.TellPrepared(1, "", {});
  updates.BeginRound(1);
  updates.TellBegun();
  EXPECT_EQ(client.sent.back().drain_reason, "the host goes down");
  updates.TellDrain("");
  EXPECT_EQ(client.sent.back().drain_reason, "");
}

TEST(NodeUpdates, TellsExitsWithTheNextUpdate) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(1);
  for (int i = 0; i < 40; ++i) updates.AddExit(i);
  EXPECT_TRUE(client.sent.empty());
  updates.TellExits();
  ASSERT_EQ(client.sent.size(), 1u);
  EXPECT_EQ(client.sent[0].exited.size(), 16u);
  updates.PassOver(2);
  EXPECT_TRUE(updates.latest().exited.empty());
}

TEST(NodeUpdates, ForgetsFailuresOfARoundThatWasOvertaken) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.BeginRound(1);
  updates.AddFailure(ExitOf(1));
  updates.PassOver(2);
  EXPECT_EQ(updates.latest().round, 2u);
  EXPECT_TRUE(updates.latest().failures.empty());
}

TEST(NodeUpdates, LeavesWithItsReason) {
  RecordingClient client;
  NodeUpdates updates(client, "here");
  updates.TellLeft("SIGINT", 130);
  ASSERT_EQ(client.sent.size(), 1u);
  EXPECT_EQ(client.sent[0].phase, NodePhase::kLeft);
  EXPECT_EQ(client.sent[0].left_reason, "SIGINT");
  EXPECT_EQ(client.sent[0].left_exit_code, 130);
}

TEST(StartFailure, HasTheExitCodeOfAShell) {
  struct Case {
    absl::Status status;
    int exit_code;
  };
  for (const Case& c : {Case{absl::NotFoundError("no"), kExitNotFound},
                        Case{absl::PermissionDeniedError("no"), kExitNotExecutable},
                        Case{absl::InvalidArgumentError("no"), kExitNotExecutable},
                        Case{absl::ResourceExhaustedError("no"), kExitNoResources},
                        Case{absl::AlreadyExistsError("no"), kExitInternal}}) {
    const WorkerFailure failure = StartFailure(c.status, {});
    EXPECT_EQ(failure.exit_code, c.exit_code) << c.status;
    EXPECT_EQ(failure.message, "no");
  }
}

}  // namespace
}  // namespace hlaunch
