// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/stall/stack_log.h"
#include "agent/worker/worker_spec.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A worker that has stalled and is taken for the cause of it. A value.
struct StalledWorker {
  int local_rank = 0;
  std::string reason;       // "stalled: no heartbeat for 62 s (limit 60 s), last step 1200"
  std::string traceback;    // Where its main thread stands, as Python has it; may be empty,
  std::string frames;       // and as it was found, a line each; may be empty.
  bool no_restart = false;  // A new worker on this host would meet the same.
  bool hangs = true;        // Else it is ended for what it wrote.
};

// Watches the workers of one round by their heartbeats and says what it sees of those that stall.
// Where several stall together, all but one wait for it: JudgeStalls says which one that is.
//
// Belongs to the loop thread. Nothing runs while no worker sends heartbeats.
class StallWatch {
 public:
  // Called from the loop; may not destroy the watch.
  struct Events {
    std::function<void(const StalledWorker&)> on_stall;
    std::function<void(int64_t step)> on_step;        // A worker has told one.
    std::function<void(int local_rank)> on_boundary;  // One is at a good moment to stop.
  };

  // Errors:
  //   ResourceExhausted - no socket can be had.
  static absl::StatusOr<std::unique_ptr<StallWatch>> Open(asio::io_context& loop,
                                                          const WorkerSpec& spec, Rank first_rank,
                                                          StackFiles files, Events events);
  ~StallWatch();

  // HLAUNCH_HEARTBEAT and HLAUNCH_BOUNDARY of that worker.
  const std::string& address(int local_rank) const;

  // Process `pid`, a child of this one, is that worker, until it has ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank);

  pid_t tool() const;  // A child of this process that is none of the workers'; 0: none runs.

 private:
  struct State;
  explicit StallWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
