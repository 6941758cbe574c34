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

// A time on the wall clock, in seconds since 1970, as torch's clients use it.
using WallSeconds = double;

// A timer that a worker armed: its process is to be ended unless the worker cancels it in time. A
// value.
struct WatchdogTimer {
  pid_t pid = 0;
  uint64_t start_time = 0;  // Together with pid this identifies one process for ever.
  std::string scope;        // The worker's name for its current activity.
  WallSeconds expires = 0;
  int signal = 0;  // 0 if the process is not to be ended; then expiry is only reported.
};

// The timers that workers have armed, from the bytes that torch's FileTimerClient writes:
//
//   {"version": 1, "pid": 4711, "scope_id": "step", "expiration_time": 1.7e9, "signal": 9}
//
// One timer per line; a negative time cancels the timer. Belongs to one thread. No clock, no I/O.
class WatchdogTimers {
 public:
  static constexpr size_t kMaxLineBytes = 4096;  // What a pipe takes in one write.
  static constexpr size_t kMaxTimers = 4096;

  // Returns when process `pid` started; 0 if there is no such process.
  using StartTimeFn = absl::FunctionRef<uint64_t(pid_t pid)>;

  // Takes bytes from the pipe; keeps the start of a line until the rest has come. `bytes` may be
  // anything. A line that is not a timer, or one timer too many, is dropped and counted.
  void Read(absl::string_view bytes, StartTimeFn start_time);

  // When the next timer expires; unset if none is armed.
  std::optional<WallSeconds> Next() const;

  // Removes all timers of every process of which one has expired. Returns one timer per process: of
  // the expired ones, the earliest that names a signal, if one does.
  std::vector<WatchdogTimer> TakeExpired(WallSeconds now);

  // The number of lines dropped so far.
  size_t dropped() const { return dropped_; }

 private:
  void ReadLine(absl::string_view line, StartTimeFn start_time);

  std::map<std::pair<pid_t, std::string>, WatchdogTimer> timers_;
  std::string partial_;    // The start of a line.
  bool too_long_ = false;  // The rest of this line is dropped as well.
  size_t dropped_ = 0;
};

}  // namespace hlaunch
