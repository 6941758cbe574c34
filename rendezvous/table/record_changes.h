// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/restart/restart_policy.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/preflight.h"
#include "rendezvous/table/membership.h"

// What each decision writes into the record of its job. Pure functions of the record.

namespace hlaunch {

// The next round begins with the nodes of `order`, whose seats are told of it: proposed where
// there is something to check, else running. Leaves the failures of the round before alone.
void BeginRound(JobRecord& record, const std::vector<Seat*>& order, std::string comm_secret);

// The round stops, for this cause; nothing is charged.
void SetStopping(JobRecord& record, std::string cause);

// A restart follows the failure, charged or not, as `verdict` says.
void TakeRestart(JobRecord& record, const FailureEvent& event, const JobVerdict& verdict,
                 Instant now);

// A worker of the last round told this step.
void TakeStep(JobRecord& record, int64_t step);

// The last round has stopped. If that was for a restart, the restart before it brought the job
// further or did not: it did if a worker came to a higher step than any before it.
void CountStuck(JobRecord& record);

// Why no further restart follows, though some are left: so many brought the job no further. Empty:
// one may follow. Requires: CountStuck.
std::string WhyStuck(const JobRecord& record);

// The last restart that was taken does not begin. Requires: one was.
void TakeBackRestart(JobRecord& record);

// The preflight excluded the nodes of `verdict`.
void CountExcluded(JobRecord& record, const PreflightVerdict& verdict);

// The job is over like this.
void SetOutcome(JobRecord& record, Outcome outcome);

}  // namespace hlaunch
