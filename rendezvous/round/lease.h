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

}  // namespace hlaunch
