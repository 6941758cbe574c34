// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/lease.h"

#include <algorithm>

namespace hlaunch {

Lease LeaseForNodes(const Lease& lease, int nodes) {
  constexpr Duration kBetweenSigns = std::chrono::microseconds(2500);  // Of all nodes together.
  // An agent gives a sign of life at least every half lease.
  const Duration wanted = std::min(2 * nodes * kBetweenSigns, lease.loss_limit * 2 / 3);
  const Duration longer = std::max(wanted - lease.lease, Duration::zero());
  return {lease.lease + longer, lease.loss_limit, lease.margin + longer};
}

Instant GiveUpAt(const Lease& lease, Instant heard, Instant forgiven_until) {
  const Instant at = heard + lease.loss_limit;
  // The rest of the margin is for stopping. An agent that was paused for longer has lost its place,
  // unless the rendezvous was paused, too. So the agent may still ask.
  const Instant last = at + lease.margin / 2;
  if (forgiven_until - lease.lease >= last) return forgiven_until;
  return std::max(at, std::min(forgiven_until, last));
}

Allowance AllowanceAt(const Lease& lease, Instant heard, Instant forgiven_until) {
  constexpr Duration kStopping = std::chrono::seconds(3);  // SIGTERM, 2 s, SIGKILL.
  constexpr Duration kKilling = std::chrono::milliseconds(500);
  const Instant at = heard + lease.loss_limit;
  const Instant give_up = GiveUpAt(lease, heard, forgiven_until);
  if (give_up > at + lease.margin / 2) return {at, give_up + kStopping};
  return {at, std::min(give_up + kStopping, std::max(at, at + lease.margin - kKilling))};
}

}  // namespace hlaunch
