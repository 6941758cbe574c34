// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "rendezvous/round/round.h"

namespace hlaunch {

// `lease` for a job of `nodes`: longer in a large one, so that all its signs of life together
// stay below 500 a second, but never so long that fewer than three of a node's fall within the
// loss limit. What a paused agent is forgiven is one lease, so the margin grows with it. The
// loss limit is the user's and stays.
Lease LeaseForNodes(const Lease& lease, int nodes);

// What an agent may do by what it has heard of the rendezvous. A value.
struct Allowance {
  // Later it starts no worker until it has heard more: another round may have begun.
  Instant starts_until = Instant::max();
  // None of its workers lives then if it hears no more; max: no other node can take over.
  Instant workers_until = Instant::max();
};

// When an agent gives the rendezvous up. The last word of its own that was taken was sent at
// `heard`; silence until `forgiven_until` is not held against the rendezvous, since this process
// was itself paused. Pure.
Instant GiveUpAt(const Lease& lease, Instant heard, Instant forgiven_until);

// The same agent's allowance. It stops its workers by itself from GiveUpAt on; `workers_until` is
// when they are ended for it. It lies within the margin, unless the agent was paused for so long
// that nothing can. Pure.
Allowance AllowanceAt(const Lease& lease, Instant heard, Instant forgiven_until);

}  // namespace hlaunch
