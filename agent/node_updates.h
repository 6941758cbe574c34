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
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// This node's latest NodeUpdate: what the rendezvous knows of the node, or will soon. It is sent as
// a whole by the methods whose names begin with Tell. The diagram of its phases is at NodePhase.
//
// Belongs to the loop thread.
class NodeUpdates {
 public:
  // `host` is this node's name. `client` must outlive it.
  NodeUpdates(RendezvousClient& client, std::string host)
      : client_(client), host_(std::move(host)) {}

  const NodeUpdate& latest() const { return latest_; }

  // Notes the highest step that a worker of the round told. It is sent when the node is ready.
  void NoteStep(std::optional<int64_t> step) { latest_.step = step; }

  // The node is ready and offers, as node rank 0, the ports of `store`. Failures of the last round
  // stay, because an earlier update may never have been sent.
  void BeReady(const RoundStore& store);
  void TellReady() { client_.Send(latest_); }

  // The checks of `round` are done; `unfit` is empty if the round can run here.
  void TellPrepared(Round round, const std::string& unfit, const NodeHealth& health);

  // The workers of `round` are about to start. Call TellBegun once it is known whether they have
  // started.
  void BeginRound(Round round);
  void TellBegun() { client_.Send(latest_); }

  // Rank 0 of the round, which runs here, is at a good moment to stop. The first time is sent;
  // later ones are sent only while the rendezvous wants them.
  void TellBoundary();
  void WantBoundary(bool wanted) { boundary_wanted_ = wanted; }

  // A worker failed. At most kMaxFailures are kept. The last place is kept for a worker that failed
  // by itself, however many workers failed before because of others.
  void AddFailure(WorkerFailure failure);
  void TellFailure(WorkerFailure failure);

  // A worker exited with 0. This is kept for the next update, because usually all other workers
  // exit right after it.
  void AddExit(int local_rank);
  void TellExits() { client_.Send(latest_); }

  // Sends the local ranks of all workers that have given up and have not ended, at most
  // kMaxFailures. No effect unless workers of the round run or have failed.
  void TellGivenUp(std::vector<int> local_ranks);

  // Sends the node ranks of the nodes that this node does not reach while workers of the round run.
  void TellUnreached(std::vector<int> node_ranks);

  // Sends why this node will soon be gone or must not be used any more; an empty `reason` ends the
  // drain. All later updates repeat it.
  void TellDrain(std::string reason);

  void TellSucceeded();

  // No worker of the round lives here, although none ended by itself; `why` is one line. Returns
  // false, and tells nothing, unless workers of the round were running.
  bool TellWorkersLost(std::string why);

  // `round` was stopped before this node heard of its start, so it will not start here.
  void PassOver(Round round);

  // The last update of the node.
  void TellFinished();
  void TellLeft(const std::string& reason, int exit_code);

 private:
  void Renew(Round round, NodePhase phase);

  RendezvousClient& client_;
  const std::string host_;
  NodeUpdate latest_;
  int64_t boundaries_ = 0;  // Good moments of this round, sent or not.
  bool boundary_wanted_ = false;
};

// Describes a program that could not be started as the failure of this node's first worker, with
// the exit code that a shell would give, if there is one. Pure but for the wall clock.
WorkerFailure StartFailure(const absl::Status& status, const Assignment& assignment);

}  // namespace hlaunch
