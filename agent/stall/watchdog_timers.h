// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// A time on the wall clock, in seconds since 1970: what torch's clients reckon in.
using WallSeconds = double;

// What a worker armed: unless it takes it back in time, its process is to be ended. A value.
struct WatchdogTimer {
  pid_t pid = 0;
  uint64_t start_time = 0;  // With pid: names one process for ever.
  std::string scope;        // The worker's name for what it is doing.
  WallSeconds expires = 0;
  int signal = 0;  // 0: nothing is to be ended, only said.
};

// The timers that workers have armed, from the bytes that torch's FileTimerClient writes:
//
//   {"version": 1, "pid": 4711, "scope_id": "step", "expiration_time": 1.7e9, "signal": 9}
//
// A line each; a negative time takes the timer back. Belongs to one thread. No clock, no I/O.
class WatchdogTimers {
 public:
  static constexpr size_t kMaxLineBytes = 4096;  // What a pipe takes in one piece.
  static constexpr size_t kMaxTimers = 4096;

  // When process `pid` started; 0: there is none.
  using StartTimeFn = absl::FunctionRef<uint64_t(pid_t pid)>;

  // Takes what came from the pipe; the start of a line is kept until its end has come. `bytes`
  // may be anything: a line that is no timer, and one too many, is dropped and counted.
  void Read(absl::string_view bytes, StartTimeFn start_time);

  // When the next timer expires; unset: none is armed.
  std::optional<WallSeconds> Next() const;

  // Takes all timers of every process of which one has expired. The result is one per process:
  // of those expired, the first that names a signal.
  std::vector<WatchdogTimer> TakeExpired(WallSeconds now);

  // Lines that were dropped so far.
  size_t dropped() const { return dropped_; }

 private:
  void ReadLine(absl::string_view line, StartTimeFn start_time);

  std::map<std::pair<pid_t, std::string>, WatchdogTimer> timers_;
  std::string partial_;    // The start of a line.
  bool too_long_ = false;  // The rest of this line is dropped as well.
  size_t dropped_ = 0;
};

}  // namespace hlaunch
