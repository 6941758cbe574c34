// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/workers/worker/worker_spec.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Measures how long each worker has been waiting in the kernel, where signals do not reach it
// (state D). Values and state; no clock, no I/O. Belongs to one thread.
class KernelWaits {
 public:
  KernelWaits(int workers, Duration limit) : limit_(limit), since_(static_cast<size_t>(workers)) {}

  // Notes that the worker was in `state`, as in proc(5), at `now`. Once the worker has waited
  // without a break for the limit, returns how long it has waited.
  std::optional<Duration> Take(int worker, char state, Instant now);

 private:
  const Duration limit_;
  std::vector<std::optional<Instant>> since_;  // Unset if the worker does not wait.
};

// Looks at the workers of one round once a second, or more often for a limit below four seconds, if
// the user asked for it by torchrun's variable.
//
// Belongs to the loop thread.
class KernelWaitWatch {
 public:
  // The worker is stuck. Called once for each worker, from the loop. Must not destroy the watch.
  using OnStuck = std::function<void(int local_rank, std::string reason)>;

  // The limit in TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, in seconds. Unset if the variable is
  // missing or, as torchrun has it, not a number above 0.
  static std::optional<Duration> LimitOf(const WorkerSpec& spec);

  // Returns null if there is no limit. `loop` outlives the watch.
  static std::unique_ptr<KernelWaitWatch> Open(asio::io_context& loop, const WorkerSpec& spec,
                                               OnStuck on_stuck);
  ~KernelWaitWatch();

  // Says that process `pid` is that worker, until Ended is called.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank);

 private:
  struct State;
  explicit KernelWaitWatch(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
