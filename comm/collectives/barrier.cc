// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Dissemination barrier (Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization,
// 1988): in step k every rank tells the one 2^k further on. ceil(log2 n) steps, one empty message
// out and in for each rank and step; any world.

#include "comm/collectives/wire.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunBarrier(Wire& wire) {
  for (int distance = 1; distance < wire.size(); distance *= 2) {
    Outgoing out = wire.Out(wire.Next(distance), {});
    Incoming in = wire.In(wire.Before(distance), {});
    wire.Start(&out);
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(out));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
