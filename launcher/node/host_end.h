// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "proto/base/clock.h"
#include "rendezvous/round/lease.h"
#include "rendezvous/round/round.h"

// What follows for a job whose own agents keep its record when a node ends that hosts its
// rendezvous, or has lost it. Pure.

namespace hlaunch {

// Whether the job ends with its host, which ends with `exit_code`: somebody has stopped that, or
// the job's time is up. Else the others go on without it.
bool EndsWithHost(int exit_code);

// From when on no worker of the job lives that lived by the rendezvous which this node has lost;
// min(): it never had one. Not before may a process end that its scheduler would start anew: those
// that lose a majority of the witnesses would begin the job anew beside nodes that stop later.
Instant NoneLivesFrom(const Lease& lease, const Allowance& allowance);

}  // namespace hlaunch
