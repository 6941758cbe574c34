// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

// Finds which workers have stalled, by the heartbeats that they send. Values and state; no clock,
// no I/O.

namespace hlaunch {

// What a worker tells about itself in a heartbeat. A value.
struct Heartbeat {
  std::optional<int64_t> step = {};  // Its progress, a number of its own.
  // The longest time until the next heartbeat. If unset, the job's limit holds; zero means no
  // limit.
  std::optional<Duration> limit = {};
  // On this signal the worker writes the stacks of its threads to this descriptor of its own. 0 if
  // it does not.
  int stack_signal = 0;
  int stack_fd = -1;
};

// The datagram of a worker that is at a good moment to stop. It is not a heartbeat.
inline constexpr char kBoundaryWord[] = "boundary/1";

// A longer datagram is not a heartbeat.
inline constexpr size_t kMaxHeartbeatBytes = 128;

// Reads a datagram, which may hold any bytes:
//
//   heartbeat/1 step=1200 timeout_ms=600000 stacks=44,5
//
// The words after the first may come in any order or be missing; unknown words are ignored. A
// timeout_ms of 0 means that there is no limit for the next heartbeat.
std::optional<Heartbeat> ParseHeartbeat(absl::string_view datagram);

// A worker that has sent nothing new for longer than its limit. A value.
struct Stall {
  int worker = 0;
  Duration silence = {};  // Time since the last heartbeat that said something new.
  Duration limit = {};
  std::optional<int64_t> step = {};  // The last step that it told.
  bool beats = false;                // It still sends heartbeats, but repeats that step.
  Instant news = {};                 // When the last news came.

  // "no heartbeat for 62 s (limit 60 s), last step 1200"
  std::string ToString() const;
};

// True if `one` is further behind than `other`: by its step if both tell different steps, else by
// the time of its last news. A strict order among workers that all tell steps, or that all tell
// none.
bool IsBehind(const Stall& one, const Stall& other);

//              first heartbeat            nothing new for the limit
//   unwatched ----------------> watched ----------------------------> stalled
//                                  ^----------- something new -----------+
//
// A heartbeat without a step is always news. A heartbeat with a step is news unless it repeats the
// step and limit of the one before. A worker that never sends a heartbeat is never watched. Belongs
// to one thread.
class Heartbeats {
 public:
  Heartbeats(int workers, Duration limit);

  // Takes a heartbeat of `worker` that was read at `now`. Returns true if the worker had stalled
  // and now continues.
  bool Take(int worker, const Heartbeat& heartbeat, Instant now);

  // The worker has ended and is not watched any more.
  void Forget(int worker);

  // Gives every worker `pause` more time, because until `now` no worker could be heard for so long,
  // through no fault of its own. A worker that was heard after the pause needs none.
  void Forgive(Duration pause, Instant now);

  // When the next worker stalls unless it is heard; unset if no worker is timed.
  std::optional<Instant> Next() const;

  // Returns the workers that have stalled since the last call.
  std::vector<Stall> TakeStalled(Instant now);

  bool IsWatched(int worker) const { return workers_[static_cast<size_t>(worker)].watched; }
  bool HasStalled(int worker) const { return workers_[static_cast<size_t>(worker)].stalled; }
  const Heartbeat& Last(int worker) const { return workers_[static_cast<size_t>(worker)].last; }

 private:
  struct Worker {
    bool watched = false;
    bool stalled = false;
    bool repeats = false;  // The last heartbeat was not news.
    Heartbeat last;
    Instant news;  // When the last news came.
  };

  Duration LimitOf(const Worker& worker) const { return worker.last.limit.value_or(limit_); }
  // True if the worker can stall: it is watched, has a limit and has not stalled yet.
  bool IsTimed(const Worker& worker) const;

  const Duration limit_;
  std::vector<Worker> workers_;
};

}  // namespace hlaunch
