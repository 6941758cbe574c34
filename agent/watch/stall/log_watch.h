// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Reads what the workers of one round write, by the rules of --watch-log and --watch-log-silence.
// For lines that only warn, each rule names a worker at most every ten seconds.
//
// Belongs to the loop thread and calls its callbacks there. A callback must not destroy it.
class LogWatch {
 public:
  struct Events {
    // A line says that the worker has failed; `reason` quotes it.
    std::function<void(int local_rank, std::string reason)> on_failure;
    // The worker wrote the last line with a pattern, and no worker has written one since for too
    // long.
    std::function<void(int local_rank, std::string reason)> on_silence;
    std::function<void(Rank rank, const std::string& name, double value)> on_value;
    std::function<void(int64_t step)> on_step;  // A value with the name `step`.
  };

  // Returns null if there are no rules. `loop` outlives the watch. Requires: RE2 accepts the
  // patterns.
  static std::unique_ptr<LogWatch> Open(asio::io_context& loop, const WorkerSpec& spec,
                                        Rank first_rank, Events events);
  ~LogWatch();

  // Returns a function that takes the bytes of one stream of that worker. It may outlive the watch.
  // Call this once for each stream.
  std::function<void(absl::string_view)> Reader(int local_rank);

  // The worker has ended, so its next line is not expected any more.
  void Ended(int local_rank);

 private:
  struct State;
  explicit LogWatch(std::shared_ptr<State> state);
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
