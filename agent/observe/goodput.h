// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/observe/node_event.h"
#include "proto/base/clock.h"

namespace hlaunch {

// How much of a job's time its workers ran, as one node saw it. A value: events change it.
class Goodput {
 public:
  explicit Goodput(Instant start) : start_(start) {}

  // Takes `event` into account, which happened at `now`.
  void Count(const NodeEvent& event, Instant now);

  Duration Ran(Instant now) const;
  Duration Whole(Instant now) const { return now - start_; }
  // Of each restart: from the end of one round's workers, as they began to be stopped, to the start
  // of the next one's.
  const std::vector<Duration>& restarts() const { return restarts_; }

  // "workers ran for 3 h 12 min of 3 h 40 min (87 %); 2 restarts took 40 s and 55 s". Empty: there
  // was no restart.
  std::string Text(Instant now) const;

 private:
  const Instant start_;
  bool runs_ = false;
  bool restarts_next_ = false;  // The round that stopped does so for a restart.
  // When the workers began to run, or to be stopped; unset: none ran.
  std::optional<Instant> changed_;
  Duration ran_ = {};  // Before that.
  std::vector<Duration> restarts_;
};

}  // namespace hlaunch
