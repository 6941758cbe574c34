// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Each rank sends its part to the root: 1 step; n - 1 messages into the root.

#include <cstring>

#include "comm/collectives/communicator.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunGather(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  const size_t part = call.from.size();
  if (part == 0) return absl::OkStatus();
  if (comm.rank() != call.root) {
    Outgoing out = comm.Out(call.root, call.from);
    comm.Start(&out);
    return comm.Wait(out);
  }
  IncomingList received;
  for (int step = 1; step < comm.size(); ++step) {
    const Rank rank = comm.Next(step);
    received.push_back(comm.In(rank, call.into.subspan(rank * part, part)));
  }
  for (Incoming& message : received) comm.Start(&message);
  std::byte* const mine = call.into.data() + call.root * part;
  if (mine != call.from.data()) std::memmove(mine, call.from.data(), part);
  return comm.WaitAll(received);
}

}  // namespace hlaunch
