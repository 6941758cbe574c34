// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/workers/worker/worker_spec.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Serves the timers of torch.distributed.elastic.timer: it reads a named pipe that workers write
// to, and ends processes whose timer has expired. It signals only descendants of this process.
// Workers may write anything; what is not a timer costs a warning.
//
// Belongs to the loop thread. Nothing runs while no timer is armed.
class Watchdog {
 public:
  // A process was sent a signal: `child`, a child of this process, or a descendant of it.
  using OnKill = std::function<void(pid_t child, std::string reason)>;

  // True if the user wants a watchdog: TORCHELASTIC_ENABLE_FILE_TIMER=1.
  static bool IsWanted(const WorkerSpec& spec);

  // Makes the pipe: at TORCHELASTIC_TIMER_FILE if the user named one that no other process serves,
  // else under a new name below the temporary directory. `loop` outlives the watchdog.
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
