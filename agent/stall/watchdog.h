// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/worker/worker_spec.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Serves the timers of torch.distributed.elastic.timer: a named pipe that workers write to, and
// the end of those that did not come back in time. Only processes that descend from this one are
// ever signalled. What workers write may be anything; it costs a warning.
//
// Belongs to the loop thread. Nothing runs while no timer is armed.
class Watchdog {
 public:
  // A process was sent `signal`: it is `child`, or descends from that child of ours.
  using OnKill = std::function<void(pid_t child, std::string reason)>;

  // Whether the user wants one: TORCHELASTIC_ENABLE_FILE_TIMER=1.
  static bool IsWanted(const WorkerSpec& spec);

  // Makes the pipe: at TORCHELASTIC_TIMER_FILE if the user named one that nobody else serves,
  // else at a new name below the temporary directory. `loop` outlives the watchdog.
  //
  // Errors:
  //   ResourceExhausted - the pipe cannot be made; the message says what to change.
  static absl::StatusOr<std::unique_ptr<Watchdog>> Open(asio::io_context& loop,
                                                        const WorkerSpec& spec, OnKill on_kill);

  // Removes the pipe.
  ~Watchdog();

  const std::string& path() const;

 private:
  struct State;
  explicit Watchdog(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
