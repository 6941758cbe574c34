// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/hang/tap_request.h"
#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "rendezvous/hang/rank_picture.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The workers of a node, to be looked at. A value.
struct LookPlan {
  std::string tap;  // HLAUNCH_TAP
  std::string host;
  Rank first_rank = 0;
  int workers = 0;
  Duration patience{};  // Who has stood still for so long is asked for its stack.
  std::string tools;    // As StackDump has it.
  Duration answer_limit = TapRequest::kLimit;      // For one question to a rank,
  Duration dump_limit = std::chrono::seconds(10);  // and for a debugger.
};

// Of the workers of one round. Pure.
LookPlan PlanLook(const Assignment& assignment, const WorkerSpec& spec, const NodeFacts& facts);

// Looks at the workers of this node from time to time, and remembers what it has seen: what their
// torch's flight recorders say, and while they stand still what the kernel knows of them, whether
// they wait for the master store, and where they stand. A rank that goes on is asked for nothing
// but its flight record.
//
// Belongs to the loop thread. Destruction gives up without a word.
class NodeLook {
 public:
  NodeLook(asio::io_context& loop, LookPlan plan);
  ~NodeLook();

  // Process `pid`, a child of this one, is that worker, until it has ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // Looks at all of them. `done` is called once, from the loop, a few seconds later at the latest;
  // it may destroy this.
  // Requires: no look is under way.
  void Begin(std::function<void()> done);

  // Whether some rank has not called a collective since the look before the last one, or all have
  // exited with 0.
  bool still() const;

  // Children of this process that are no workers.
  std::vector<pid_t> tools() const;

  // As of the last look.
  std::vector<RankPicture> pictures() const;

 private:
  class RankLook;
  void Finish();

  const LookPlan plan_;
  std::vector<std::unique_ptr<RankLook>> ranks_;
  int under_way_ = 0;
  std::function<void()> done_;
};

}  // namespace hlaunch
