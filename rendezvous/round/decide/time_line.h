// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// When the rounds of a job began, ran and ended, for people. No decision depends on it, and it is
// not stored: after a restart the rendezvous begins a new one, which does not know when an earlier
// round began.
//
// Belongs to the thread of its RoundTable.
class TimeLine {
 public:
  // Events that are noted from now on happen at `now`.
  void SetNow(Instant now) { now_ = now; }

  // The first node has come. Later calls do nothing.
  void NodeCame();
  // The rendezvous was restarted, and goes on with `record`.
  void Resume(const JobRecord& record);
  // The next round of `record` begins. If nothing must be checked, it runs at once.
  void RoundBegins(const JobRecord& record);
  // The round's workers should start.
  void RoundRuns();
  // The round's workers must stop for this reason, or the job is over. Later calls do nothing. The
  // first of `failures` is the first cause; if empty, no worker is to blame.
  void RoundStops(const std::string& reason, const std::vector<WorkerFailure>& failures);
  // No worker is left. Later calls do nothing.
  void RoundStopped();

  // Writes what is known into `status`. `now` and `wall_ms` are the same moment on both clocks.
  void Tell(JobStatus& status, Instant now, int64_t wall_ms) const;

 private:
  struct Stage {
    RoundStatus round;  // Without its times.
    std::optional<Instant> began, ran, stopping, stopped;
  };

  void Add(const JobRecord& record);

  Instant now_;
  std::optional<Instant> began_;
  std::deque<Stage> rounds_;                // The last kMaxRoundsShown.
  Duration ran_before_ = Duration::zero();  // How long all rounds ran that have stopped.
  std::optional<WorkerFailure> failure_;    // The first cause of the last failure.
  Round failed_round_ = 0;                  // The round of that failure.
};

}  // namespace hlaunch
