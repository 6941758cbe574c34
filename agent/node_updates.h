// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/round_store.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What the rendezvous knows, or will, of this node: its latest NodeUpdate, which is sent whole
// whenever a method whose name begins with Tell changes it. Its phases are drawn at NodePhase.
//
// Belongs to the loop thread.
class NodeUpdates {
 public:
  // `host` is this node's name. `client` must outlive it.
  NodeUpdates(RendezvousClient& client, std::string host)
      : client_(client), host_(std::move(host)) {}

  const NodeUpdate& latest() const { return latest_; }

  // `step` is the highest that a worker of the round told; told once the node is ready.
  void NoteStep(std::optional<int64_t> step) { latest_.step = step; }

  // The node is ready, and offers what `store` says as node rank 0. Failures of the last round
  // stay: an earlier update may have been overtaken.
  void BeReady(const RoundStore& store);
  void TellReady() { client_.Send(latest_); }

  // The checks of `round` are done; `unfit` is empty if it can run here.
  void TellPrepared(Round round, const std::string& unfit, const NodeHealth& health);

  // The workers of `round` are about to start; tell once it is known whether they have.
  void BeginRound(Round round);
  void TellBegun() { client_.Send(latest_); }

  // Rank 0 of the round, which is here, is at a good moment to stop: told the first time, and while
  // the rendezvous asks for that.
  void TellBoundary();
  void WantBoundary(bool wanted) { boundary_wanted_ = wanted; }

  // A worker failed. At most kMaxFailures are kept; the last of them is one that failed by itself,
  // however many failed for it before.
  void AddFailure(WorkerFailure failure);
  void TellFailure(WorkerFailure failure);

  // A worker exited with 0: kept for the next update, since mostly all others do so right after it.
  void AddExit(int local_rank);
  void TellExits() { client_.Send(latest_); }

  // The local ranks of workers that have given up and have not ended, all of them; no effect unless
  // workers of the round run, or have failed. At most kMaxFailures are told.
  void TellGivenUp(std::vector<int> local_ranks);

  // While workers of the round run: the node ranks of those that this node does not reach.
  void TellUnreached(std::vector<int> node_ranks);

  // Why this node will soon be gone or is not to be used any more; empty: it is. All later updates
  // say it too.
  void TellDrain(std::string reason);

  void TellSucceeded();

  // `round` was stopped before this node heard of its start: nothing of it will start here.
  void PassOver(Round round);

  // The node's last word.
  void TellFinished();
  void TellLeft(const std::string& reason, int exit_code);

 private:
  void Renew(Round round, NodePhase phase);

  RendezvousClient& client_;
  const std::string host_;
  NodeUpdate latest_;
  int64_t boundaries_ = 0;  // Of the round, told or not.
  bool boundary_wanted_ = false;
};

// A program that could not be started, told as the failure of this node's first worker, with the
// exit code of a shell where it has one. Pure but for the wall clock.
WorkerFailure StartFailure(const absl::Status& status, const Assignment& assignment);

}  // namespace hlaunch
