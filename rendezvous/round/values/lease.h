// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Returns `lease` for a job of `nodes` nodes. A large job gets a longer lease, so that all its
// signs of life together stay below 500 a second; but a node still gives at least three of them
// within the loss limit. A paused agent is forgiven one lease, so the margin grows with the lease.
// The loss limit is the user's choice and stays.
Lease LeaseForNodes(const Lease& lease, int nodes);

// What an agent may do, given when it last heard from the rendezvous. A value.
struct Allowance {
  // After this time it starts no worker until it hears from the rendezvous again: another round may
  // have begun.
  Instant starts_until = Instant::max();
  // By this time none of its workers lives if it hears nothing more; max if no other node can take
  // over.
  Instant workers_until = Instant::max();
};

// Returns when an agent gives up the rendezvous. `heard` is when the agent sent the last message
// that the rendezvous answered. Silence until `forgiven_until` is not held against the rendezvous,
// because this process was paused itself. Pure.
Instant GiveUpAt(const Lease& lease, Instant heard, Instant forgiven_until);

// Returns the allowance of the same agent. From GiveUpAt on the agent stops its workers itself; at
// `workers_until` they are ended for it. That time lies within the margin, unless the agent was
// paused for so long that this is impossible. Pure.
Allowance AllowanceAt(const Lease& lease, Instant heard, Instant forgiven_until);

}  // namespace hlaunch
