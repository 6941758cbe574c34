// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/worker/worker_spec.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// How long each worker has been waiting in the kernel where signals do not reach it (state D).
// Values and state; no clock, no I/O. Belongs to one thread.
class KernelWaits {
 public:
  KernelWaits(int workers, Duration limit) : limit_(limit), since_(static_cast<size_t>(workers)) {}

  // The worker was in `state`, as in proc(5), at `now`. Set once it has waited for the limit
  // without a break: for so long.
  std::optional<Duration> Take(int worker, char state, Instant now);

 private:
  const Duration limit_;
  std::vector<std::optional<Instant>> since_;  // Unset: it does not wait.
};

// Looks at the workers of one round about once a second, where the user wants it as of torchrun.
//
// Belongs to the loop thread.
class KernelWaitWatch {
 public:
  // The worker is stuck; called once for each, from the loop. May not destroy the watch.
  using OnStuck = std::function<void(int local_rank, std::string reason)>;

  // TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT in seconds. Unset: it is not there, or, as
  // torchrun has it, no number above 0.
  static std::optional<Duration> LimitOf(const WorkerSpec& spec);

  // Null where there is no limit. `loop` outlives the watch.
  static std::unique_ptr<KernelWaitWatch> Open(asio::io_context& loop, const WorkerSpec& spec,
                                               OnStuck on_stuck);
  ~KernelWaitWatch();

  // Process `pid` is that worker, until it has ended.
  void Started(int local_rank, pid_t pid);
  void Ended(int local_rank);

 private:
  struct State;
  explicit KernelWaitWatch(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
