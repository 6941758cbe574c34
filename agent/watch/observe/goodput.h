// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/watch/observe/node_event.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Time that a job has lost, by its cause. A value.
struct LostTime {
  Duration start{};     // Until the workers of the first round started.
  Duration waiting{};   // The ranks waited for the slowest of them.
  Duration saving{};    // The ranks wrote checkpoints, as far as that is known.
  Duration restarts{};  // No workers ran.
};

// Measures how much of a job's time its workers ran, as this node saw it. A value that events
// change.
class Goodput {
 public:
  explicit Goodput(Instant start) : start_(start) {}

  // Takes `event`, which happened at `now`, into account.
  void Count(const NodeEvent& event, Instant now);

  Duration Ran(Instant now) const;
  Duration Whole(Instant now) const { return now - start_; }
  // The duration of each restart: from the moment the workers of one round began to be stopped to
  // the start of the next round's workers.
  const std::vector<Duration>& restarts() const { return restarts_; }

  LostTime Lost() const;

  // "time lost: 4 min 10 s of 40 min 0 s: start 12 s, waiting for the slowest rank 3 min 2 s,
  // checkpoints 20 s, restarts 36 s". Empty if the workers themselves are known to have lost none.
  std::string LostText(Instant now) const;

  // "workers ran for 3 h 12 min of 3 h 40 min (87 %); 2 restarts took 40 s and 55 s". Empty if
  // there was no restart.
  std::string Text(Instant now) const;

 private:
  const Instant start_;
  bool runs_ = false;
  bool restarts_next_ = false;  // The next round is a restart.
  // When the workers started, or began to be stopped; unset if none ran.
  std::optional<Instant> changed_;
  Duration ran_ = {};  // Time that workers ran before `changed_`.
  std::vector<Duration> restarts_;
  std::optional<Instant> first_;  // When workers started first.
  LostTime before_;               // In the rounds before this one.
  TimeLost now_;                  // In this round.
};

}  // namespace hlaunch
