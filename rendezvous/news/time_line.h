// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// When the rounds of a job began, ran and ended, for people. It is no part of what is decided, and
// is not kept: a rendezvous that was restarted begins it anew, and of a round that was there before
// it does not know when that began.
//
// Belongs to the thread of its RoundTable.
class TimeLine {
 public:
  // What is noted from now on happens at `now`.
  void SetNow(Instant now) { now_ = now; }

  // The first node comes; nothing if one came before.
  void NodeCame();
  // The rendezvous was restarted, and goes on with `record`.
  void Resume(const JobRecord& record);
  // The next round of `record` begins; where nothing is to be checked it runs at once.
  void RoundBegins(const JobRecord& record);
  // Its workers are to start.
  void RoundRuns();
  // They are to stop, for this reason, or the job is over; nothing if that was said before. The
  // first of `failures` is the first cause; empty: no worker is to blame.
  void RoundStops(const std::string& reason, const std::vector<WorkerFailure>& failures);
  // None is left; nothing if that was said before.
  void RoundStopped();

  // Writes what is known into `status`; it is `now`, which people call `wall_ms`.
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
  Duration ran_before_ = Duration::zero();  // Until the last one that has stopped.
  std::optional<WorkerFailure> failure_;    // The last first cause,
  Round failed_round_ = 0;                  // and whose it was.
};

}  // namespace hlaunch
