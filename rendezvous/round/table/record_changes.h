// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/preflight.h"

// Write each decision into the record of its job. Pure functions of the record.

namespace hlaunch {

// Begins the next round with the nodes of `order`, and updates their seats. The round is proposed
// if there is something to check, else it runs. Does not change the failures of the previous round.
void BeginRound(JobRecord& record, const std::vector<Seat*>& order, std::string comm_secret);

// Stops the round for this cause; nothing is charged.
void SetStopping(JobRecord& record, std::string cause);

// A restart follows the failure, charged or not, as `verdict` says.
void TakeRestart(JobRecord& record, const FailureEvent& event, const JobVerdict& verdict,
                 Instant now);

// A worker of the last round reported this step.
void TakeStep(JobRecord& record, int64_t step);

// The last round has stopped. If it stopped for a restart, finds out whether the previous restart
// brought the job further: it did if a worker reached a higher step than any before.
void CountStuck(JobRecord& record);

// Returns why no further restart follows, although some are left: too many in a row brought the job
// no further. Empty if one may follow. Requires: CountStuck was called.
std::string WhyStuck(const JobRecord& record);

// Takes back the last restart, which does not begin. Requires: one was taken.
void TakeBackRestart(JobRecord& record);

// The nodes of `verdict` were excluded.
void CountExcluded(JobRecord& record, const PreflightVerdict& verdict);

// Ends the job with this outcome.
void SetOutcome(JobRecord& record, Outcome outcome, Instant now);

}  // namespace hlaunch
