// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/watch/hang/rank_pace.h"
#include "agent/watch/hang/socket_bytes.h"
#include "agent/watch/hang/tap_request.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "rendezvous/round/hang/rank_snapshot.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// How to look at the workers of a node. A value.
struct LookPlan {
  std::string tap;  // HLAUNCH_TAP
  std::string host;
  Rank first_rank = 0;
  int workers = 0;
  Duration patience{};  // A rank that has stood still for this long is asked for its stack.
  std::string tools;    // As in StackDump.
  Duration answer_limit = TapRequest::kLimit;      // For one question to a rank.
  Duration dump_limit = std::chrono::seconds(10);  // For a debugger.
  bool closely = false;  // Also while all ranks go on: a person wants to know.
};

// The plan for the workers of one round. Pure.
LookPlan PlanLook(const Assignment& assignment, const WorkerSpec& spec, const NodeFacts& facts);

// Looks at the workers of this node from time to time and remembers what it saw: their flight
// records from torch, and while they stand still also what the kernel knows of them, whether they
// wait for the master store, and where in the code they are. While all ranks go on, each is asked
// only how far it is.
//
// Belongs to the loop thread. The destructor gives up and calls nothing.
class NodeLook {
 public:
  NodeLook(asio::io_context& loop, LookPlan plan);
  ~NodeLook();

  // Process `pid`, a child of this one, runs that worker until Ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // Looks at all workers. `done` is called once, from the loop: a few seconds later, or half a
  // minute if a rank answers no question and its stack is hard to get. It may destroy this object.
  // Requires: no look is in progress.
  void Begin(std::function<void()> done);

  // True if at the last look some rank had not moved on since the look before, or if all ranks have
  // exited with 0.
  bool still() const;

  // True if a flight recorder of some rank has answered.
  bool recorded() const;

  // Children of this process that are not workers.
  std::vector<pid_t> tools() const;

  // The result of the last look.
  std::vector<RankSnapshot> snapshots() const;
  // What each rank did at that moment, by local rank; also while they go on.
  std::vector<PaceSample> paces() const;

 private:
  class RankLook;
  void LookClosely();
  void Finish();

  const LookPlan plan_;
  std::vector<std::unique_ptr<RankLook>> ranks_;
  HostConnections connections_;  // At the last close look: read once for all ranks.
  int under_way_ = 0;
  std::function<void()> for_all_;  // What follows once all ranks are looked at.
  std::function<void()> done_;
};

}  // namespace hlaunch
