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
#include "agent/watch/stall/stack_log.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A stalled worker that is taken for the cause. A value.
struct StalledWorker {
  int local_rank = 0;
  FailureKind kind = FailureKind::kOther;
  std::string reason = {};     // "stalled: no heartbeat for 62 s (limit 60 s), last step 1200"
  std::string traceback = {};  // The main thread's Python traceback; may be empty.
  std::string frames = {};     // The same frames as found, one per line; may be empty.
  bool no_restart = false;     // A new worker on this host would hit the same problem.
};

// Watches the workers of one round by their heartbeats and reports those that stall. If several
// stall together, all but one wait for that one: JudgeStalls says which one it is.
//
// Belongs to the loop thread. Nothing runs while no worker sends heartbeats.
class StallWatch {
 public:
  // Called from the loop; may not destroy the watch.
  struct Events {
    std::function<void(const StalledWorker&)> on_stall;
    std::function<void(int64_t step)> on_step;        // A worker told a step.
    std::function<void(int local_rank)> on_boundary;  // A worker is at a good moment to stop.
  };

  // Errors:
  //   ResourceExhausted - no socket is available.
  static absl::StatusOr<std::unique_ptr<StallWatch>> Open(asio::io_context& loop,
                                                          const WorkerSpec& spec, Rank first_rank,
                                                          StackFiles files, Events events);
  ~StallWatch();

  // The value of HLAUNCH_HEARTBEAT and HLAUNCH_BOUNDARY for that worker.
  const std::string& address(int local_rank) const;

  // Says that process `pid`, a child of this process, is that worker, until Ended is called.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank);

  pid_t tool() const;  // A child process that is not a worker; 0 if none runs.

 private:
  struct State;
  explicit StallWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
