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

// Which workers have stalled, by the heartbeats that they send. Values and state; no clock, no I/O.

namespace hlaunch {

// What a worker says of itself. A value.
struct Heartbeat {
  std::optional<int64_t> step = {};  // How far it is, by a number of its own.
  // Until the next one. Unset: the job's; zero: as long as it likes.
  std::optional<Duration> limit = {};
  // Writes the stacks of its threads to this descriptor of its own on this signal; 0: does not.
  int stack_signal = 0;
  int stack_fd = -1;
};

// The datagram of a worker that is at a good moment to stop. It is no heartbeat.
inline constexpr char kBoundaryWord[] = "boundary/1";

// What a longer datagram holds is no heartbeat.
inline constexpr size_t kMaxHeartbeatBytes = 128;

// Reads a datagram, which may hold anything:
//
//   heartbeat/1 step=1200 timeout_ms=600000 stacks=44,5
//
// Words after the first are in any order or not there; those it does not know are passed over. A
// timeout_ms of 0: nobody waits for the next one.
std::optional<Heartbeat> ParseHeartbeat(absl::string_view datagram);

// A worker from which nothing new has come for longer than its limit. A value.
struct Stall {
  int worker = 0;
  Duration silence = {};  // Since the last heartbeat that said something new.
  Duration limit = {};
  std::optional<int64_t> step = {};  // The last that it told.
  bool beats = false;                // It repeats that step.
  Instant news = {};                 // When the last news came.

  // "no heartbeat for 62 s (limit 60 s), last step 1200"
  std::string ToString() const;
};

// Whether `one` is further behind than `other`: by its step where both tell one, else by its last
// news. A strict order of those that all tell steps, or none do.
bool IsBehind(const Stall& one, const Stall& other);

//              first heartbeat            nothing new for the limit
//   unwatched ----------------> watched ----------------------------> stalled
//                                  ^----------- something new -----------+
//
// A heartbeat without a step is news by coming; one with a step unless it says just what the one
// before said. A worker that never sends one is never watched. Belongs to one thread.
class Heartbeats {
 public:
  Heartbeats(int workers, Duration limit);

  // Takes in a heartbeat of `worker` that was read at `now`. True: it had stalled and goes on.
  bool Take(int worker, const Heartbeat& heartbeat, Instant now);

  // The worker has ended: it is not watched any more.
  void Forget(int worker);

  // For `pause` no worker could be heard, by no fault of its own: all have so much longer.
  void Forgive(Duration pause);

  // When the next worker stalls unless it is heard; unset: none is watched.
  std::optional<Instant> Next() const;

  // The workers that have stalled since the last call.
  std::vector<Stall> TakeStalled(Instant now);

  bool IsWatched(int worker) const { return workers_[static_cast<size_t>(worker)].watched; }
  bool HasStalled(int worker) const { return workers_[static_cast<size_t>(worker)].stalled; }
  const Heartbeat& Last(int worker) const { return workers_[static_cast<size_t>(worker)].last; }

 private:
  struct Worker {
    bool watched = false;
    bool stalled = false;
    bool repeats = false;  // The last heartbeat was no news.
    Heartbeat last;
    Instant news;  // When the last news came.
  };

  Duration LimitOf(const Worker& worker) const { return worker.last.limit.value_or(limit_); }
  // Whether time runs against it.
  bool IsTimed(const Worker& worker) const;

  const Duration limit_;
  std::vector<Worker> workers_;
};

}  // namespace hlaunch
