// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/host_end.h"

#include "proto/contract/exit_code.h"

namespace hlaunch {

bool EndsWithHost(int exit_code) { return IsSignalExit(exit_code) || exit_code == kExitTimeout; }

// This node's last word that was taken is up to half a lease older than the loss; and a leader
// that is cut off leads for nine tenths of a lease more, by which its own workers live.
Instant NoneLivesFrom(const Lease& lease, const Allowance& allowance) {
  if (allowance.starts_until == Instant::max()) return Instant::min();
  return allowance.starts_until + lease.margin + lease.lease * 3 / 2;
}

}  // namespace hlaunch
