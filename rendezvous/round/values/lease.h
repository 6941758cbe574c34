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
  // When whoever says this has last looked at the clock. If that is before a pause of this process,
  // the pause is not taken into account yet.
  Instant as_of = Instant::max();
};

// Returns how long an agent that was paused may ask the rendezvous before it acts on what was
// allowed before. It is long enough for voters that were paused as well to elect a leader: they may
// read a word of the former one first, and keep to it for a lease. Pure.
Duration TimeToAsk(const Lease& lease);

// This process goes on `now`, after a pause that had begun by `begun`. Returns until when silence
// is not held against the rendezvous; `forgiven_until` is what held before. A pause that begins
// once the loss limit is over is not forgiven: by then time was left only because of a pause
// before, and several in a row would keep workers alive beyond any limit. Pure.
Instant ForgivenUntil(const Lease& lease, Instant heard, Instant forgiven_until, Instant begun,
                      Instant now);

// Returns when an agent gives up the rendezvous. `heard` is when the agent sent the last message
// that the rendezvous answered. Silence until `forgiven_until` is not held against the rendezvous:
// this process stood still itself, until TimeToAsk before that. Pure.
Instant GiveUpAt(const Lease& lease, Instant heard, Instant forgiven_until);

// Returns the allowance of the same agent. From GiveUpAt on the agent stops its workers itself; at
// `workers_until` they are ended for it. That time lies within the margin, unless the agent was
// paused for so long that no second of the margin was left to ask in. Pure.
Allowance AllowanceAt(const Lease& lease, Instant heard, Instant forgiven_until);

}  // namespace hlaunch
