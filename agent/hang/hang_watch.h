// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A rank of this node that holds up the job, or one of those that hold up each other. A value.
struct HangCulprit {
  int local_rank = 0;
  std::string reason;  // "hangs: it has not come to all_reduce number 1204 of …", in one line.
};

// Watches the ranks of one round by what torch's flight recorders say of them, and tells a person
// when they have come to a standstill, who holds them up, and what that rank does. Node rank 0
// judges for all nodes.
//
// Belongs to the loop thread. Costs each rank a question or two every few seconds.
class HangWatch {
 public:
  // Called from the loop with each culprit on this node; may not destroy the watch.
  using OnHang = std::function<void(const HangCulprit&)>;

  // Null where there is nothing to watch: no tap, --hang-timeout off, or a master store that is a
  // worker's.
  static std::unique_ptr<HangWatch> Open(asio::io_context& loop, const Assignment& assignment,
                                         const WorkerSpec& spec, const NodeFacts& facts,
                                         OnHang on_hang);
  ~HangWatch();

  // Process `pid`, a child of this one, is that worker, until it has ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank, bool succeeded);

  // What stands still at this moment, as a person is told of it, if that was not told before.
  // Empty: nothing does, it began just now, or another node judges.
  std::string standstill() const;

  std::vector<pid_t> tools() const;  // Children of this process that are none of the workers'.

 private:
  struct State;
  explicit HangWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
