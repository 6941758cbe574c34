// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/values/round.h"

// Short ways to write nodes and their updates, for tests of the rendezvous. Values.

namespace hlaunch {

// The policy of a job whose rounds start without preflight.
inline JobPolicy Policy(int min_nodes, int max_nodes, int max_restarts = 0) {
  JobPolicy policy;
  policy.min_nodes = min_nodes;
  policy.max_nodes = max_nodes;
  policy.max_restarts = max_restarts;
  policy.preflight = Preflight::kOff;
  return policy;
}

// node<i>, with pid 100 + i, incarnation i + 1 and 2 workers, of job "job".
inline NodeInfo Node(int i, int min_nodes, int max_nodes) {
  NodeInfo info;
  info.job_id = "job";
  info.node_id = absl::StrCat("id", i);
  info.incarnation = i + 1;
  info.host = absl::StrCat("node", i);
  info.pid = 100 + i;
  info.policy = Policy(min_nodes, max_nodes);
  info.nproc = 2;
  info.address = absl::StrCat("10.0.0.", i + 1);
  info.route_address = "10.0.0.100";
  return info;
}

inline NodeUpdate Says(Round round, NodePhase phase) {
  NodeUpdate update;
  update.round = round;
  update.phase = phase;
  if (phase == NodePhase::kReady) update.store_port = 4000;
  if (phase == NodePhase::kLeft) {
    update.left_reason = "SIGINT";
    update.left_exit_code = 130;
  }
  return update;
}

inline WorkerFailure Failure(Rank rank, int exit_code) {
  WorkerFailure failure;
  failure.rank = rank;
  failure.host = absl::StrCat("node", rank / 2);
  failure.pid = 1000 + rank;
  failure.exit_code = exit_code;
  return failure;
}

inline NodeUpdate Failed(Round round, const WorkerFailure& failure) {
  NodeUpdate update = Says(round, NodePhase::kFailed);
  update.failures = {failure};
  return update;
}

}  // namespace hlaunch
