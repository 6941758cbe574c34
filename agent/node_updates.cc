// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_updates.h"

#include <utility>

#include "proto/base/clock.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

int StartExitCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
      return kExitNotExecutable;
    case absl::StatusCode::kResourceExhausted:
      return kExitNoResources;
    default:
      return kExitInternal;
  }
}

}  // namespace

void NodeUpdates::BeReady(const RoundStore& store) {
  latest_.phase = NodePhase::kReady;
  latest_.unreached.clear();
  latest_.workers_lost.clear();
  store.Offer(latest_);
}

void NodeUpdates::TellPrepared(Round round, const std::string& unfit, const NodeHealth& health) {
  Renew(round, NodePhase::kPrepared);
  latest_.unfit = unfit;
  latest_.health = health;
  client_.Send(latest_);
}

void NodeUpdates::BeginRound(Round round) { Renew(round, NodePhase::kRunning); }

// Clears the update, except the reason to drain.
void NodeUpdates::Renew(Round round, NodePhase phase) {
  std::string drain_reason = std::move(latest_.drain_reason);
  latest_ = {};
  latest_.round = round;
  latest_.phase = phase;
  latest_.drain_reason = std::move(drain_reason);
  boundaries_ = 0;
}

void NodeUpdates::TellBoundary() {
  ++boundaries_;
  const bool told = boundaries_ == 1 || boundary_wanted_;
  if (!told || latest_.phase != NodePhase::kRunning) return;
  latest_.boundaries = boundaries_;
  client_.Send(latest_);
}

void NodeUpdates::AddFailure(WorkerFailure failure) {
  latest_.phase = NodePhase::kFailed;
  failure.host = host_;
  const size_t room = kMaxFailures - latest_.failures.size();
  if (room > 1 || (room == 1 && KindOf(failure) == CauseKind::kOriginal)) {
    latest_.failures.push_back(std::move(failure));
  }
}

void NodeUpdates::TellFailure(WorkerFailure failure) {
  AddFailure(std::move(failure));
  client_.Send(latest_);
}

void NodeUpdates::AddExit(int local_rank) {
  if (latest_.exited.size() < kMaxFailures) latest_.exited.push_back(local_rank);
}

void NodeUpdates::TellGivenUp(std::vector<int> local_ranks) {
  if (latest_.phase != NodePhase::kRunning && latest_.phase != NodePhase::kFailed) return;
  if (local_ranks.size() > kMaxFailures) local_ranks.resize(kMaxFailures);
  latest_.given_up = std::move(local_ranks);
  client_.Send(latest_);
}

void NodeUpdates::TellUnreached(std::vector<int> node_ranks) {
  latest_.unreached = std::move(node_ranks);
  client_.Send(latest_);
}

void NodeUpdates::TellDrain(std::string reason) {
  latest_.drain_reason = std::move(reason);
  client_.Send(latest_);
}

void NodeUpdates::TellSucceeded() {
  latest_.phase = NodePhase::kSucceeded;
  client_.Send(latest_);
}

bool NodeUpdates::TellWorkersLost(std::string why) {
  const bool ran = latest_.phase == NodePhase::kRunning || latest_.phase == NodePhase::kFailed;
  if (!ran || !latest_.workers_lost.empty()) return false;
  latest_.workers_lost = std::move(why);
  client_.Send(latest_);
  return true;
}

void NodeUpdates::PassOver(Round round) {
  latest_.round = round;
  latest_.failures.clear();  // They belong to an earlier round.
  latest_.exited.clear();
  latest_.given_up.clear();
  latest_.workers_lost.clear();
  latest_.step.reset();
}

void NodeUpdates::TellFinished() {
  latest_.phase = NodePhase::kFinished;
  client_.Send(latest_);
}

void NodeUpdates::TellLeft(const std::string& reason, int exit_code) {
  latest_.phase = NodePhase::kLeft;
  latest_.left_reason = reason;
  latest_.left_exit_code = exit_code;
  client_.Send(latest_);
}

WorkerFailure StartFailure(const absl::Status& status, const Assignment& assignment) {
  WorkerFailure failure;
  failure.rank = assignment.first_rank;
  failure.node_rank = assignment.node_rank;
  failure.wall_ms = WallMillis();
  failure.message = std::string(status.message());
  failure.exit_code = StartExitCode(status.code());
  return failure;
}

}  // namespace hlaunch
