// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Dissemination barrier (Hensgen, Finkel, Manber: Two Algorithms for Barrier Synchronization,
// 1988): in step k every rank sends an empty message to the rank 2^k further on. ceil(log2 n)
// steps; one message out and in for each rank and step; n may be any number.

#include "comm/collectives/communicator.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunBarrier(Communicator& comm) {
  for (int distance = 1; distance < comm.size(); distance *= 2) {
    Outgoing out = comm.Out(comm.Next(distance), {});
    Incoming in = comm.In(comm.Before(distance), {});
    comm.Start(&out);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
