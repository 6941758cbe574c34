// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/link/host_client.h"

#include <gtest/gtest.h>

#include "proto/contract/exit_code.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

class Silent final : public RendezvousClient::Listener {
 public:
  void OnDirective(const Directive&) override {}
  void OnQuestion(const NodeQuestion&) override {}
  void OnContact(bool, const std::string&) override {}
  void OnEnd(const absl::Status&) override {}
};

// Its keeper was killed, so it goes; other nodes hold the record. Returns those that the job still
// waits for.
std::vector<std::string> AwaitedOnceTheHostGoes(bool over) {
  JobRules rules;
  rules.job_id = "job";
  rules.policy = Policy(1, 2);
  JobRendezvous job(rules, MonotonicClock());
  Silent listener;
  HostClient::Options options;
  options.job = &job;
  options.outlived = [] { return true; };
  HostClient client(std::move(options));
  client.Join(Node(0, 1, 2), Says(0, NodePhase::kReady), &listener);
  if (over) job.End({.exit_code = 3, .reason = "asked to", .failures = {}});
  NodeUpdate leaves = Says(0, NodePhase::kLeft);
  leaves.left_exit_code = kExitAgentLost;
  client.Send(leaves);
  if (!over) job.End({.exit_code = 3, .reason = "asked to", .failures = {}});
  return job.AwaitAllFinished(MonotonicClock().Now());
}

// Else it would wait 12 s for itself before it ends.
TEST(HostClient, LeavesAJobThatIsOver) {
  EXPECT_TRUE(AwaitedOnceTheHostGoes(/*over=*/true).empty());
}

// The others are told of its death instead, and go on.
TEST(HostClient, DoesNotEndAJobThatOthersGoOnWith) {
  EXPECT_FALSE(AwaitedOnceTheHostGoes(/*over=*/false).empty());
}

}  // namespace
}  // namespace hlaunch
