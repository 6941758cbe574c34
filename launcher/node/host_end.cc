// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/host_end.h"

#include "proto/contract/exit_code.h"

namespace hlaunch {

bool EndsWithHost(int exit_code) { return IsSignalExit(exit_code) || exit_code == kExitTimeout; }

bool IsCutOff(const absl::Status& end, const Allowance& allowance, Instant now) {
  const bool silent = absl::IsOutOfRange(end) && allowance.starts_until <= now;
  return absl::IsDeadlineExceeded(end) || silent;
}

// The last message of this node that was answered is up to half a lease older than the loss. And a
// leader that is cut off leads for nine tenths of a lease longer; its own workers live as long as
// it leads.
Instant NoneLivesFrom(const Lease& lease, const Allowance& allowance) {
  if (allowance.starts_until == Instant::max()) return Instant::min();
  return allowance.starts_until + lease.margin + lease.lease * 3 / 2;
}

}  // namespace hlaunch
