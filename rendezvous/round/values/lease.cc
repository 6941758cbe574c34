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

Duration TimeToAsk(const Lease& lease) {
  constexpr Duration kElection = std::chrono::seconds(10);
  return std::max(2 * lease.lease, kElection);
}

Instant ForgivenUntil(const Lease& lease, Instant heard, Instant forgiven_until, Instant begun,
                      Instant now) {
  if (begun >= heard + lease.loss_limit) return forgiven_until;
  return now + TimeToAsk(lease);
}

Instant GiveUpAt(const Lease& lease, Instant heard, Instant forgiven_until) {
  return std::max(heard + lease.loss_limit, forgiven_until);
}

Allowance AllowanceAt(const Lease& lease, Instant heard, Instant forgiven_until) {
  constexpr Duration kStopping = std::chrono::seconds(3);  // SIGTERM, 2 s, SIGKILL.
  constexpr Duration kKilling = std::chrono::milliseconds(500);
  constexpr Duration kAsking = std::chrono::seconds(1);
  const Instant at = heard + lease.loss_limit;
  const Instant stopped = GiveUpAt(lease, heard, forgiven_until) + kStopping;
  const Instant last = at + lease.margin - kKilling;
  // An agent that was paused until then may have lost its place, or the rendezvous was paused, too.
  // Only the rendezvous knows, so the agent may still ask.
  if (forgiven_until - TimeToAsk(lease) + kAsking > last) return {at, stopped};
  return {at, std::min(stopped, std::max(at, last))};
}

}  // namespace hlaunch
