// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/round/values/round.h"

// Decisions about a job whose record is kept by its own agents, when a node ends that hosts the
// rendezvous or has lost it. Pure.

namespace hlaunch {

// Returns whether the job ends with its host, which ends with `exit_code`: because a signal stopped
// the host, or because the job's time is up. Else the other nodes continue without this host.
bool EndsWithHost(int exit_code);

// Returns whether a node that ends at `now` for the reason `end` has lost its job's rendezvous by
// silence: what it was allowed is over. Another one, in the place of the lost one, may have
// answered meanwhile.
bool IsCutOff(const absl::Status& end, const Allowance& allowance, Instant now);

// Returns the time from which no worker of the job is left that the rendezvous lost by this node
// allowed to run; min() if this node has no such limit. A process that its scheduler would start
// again must not end before this time: nodes that lose a majority of the voters would begin the
// job again while workers of nodes that stop later still live.
Instant NoneLivesFrom(const Lease& lease, const Allowance& allowance);

}  // namespace hlaunch
