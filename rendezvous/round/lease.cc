// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/lease.h"

#include <algorithm>

namespace hlaunch {

Lease LeaseForNodes(const Lease& lease, int nodes) {
  constexpr Duration kBetweenSigns = std::chrono::microseconds(2500);  // Of all nodes.
  // An agent gives a sign of life at least every half lease.
  const Duration wanted = std::min(2 * nodes * kBetweenSigns, lease.loss_limit * 2 / 3);
  const Duration longer = std::max(wanted - lease.lease, Duration::zero());
  return {lease.lease + longer, lease.loss_limit, lease.margin + longer};
}

}  // namespace hlaunch
