// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The root sends a part to each rank: 1 step; n - 1 messages out of the root.

#include <cstring>

#include "comm/collectives/communicator.h"

namespace hlaunch {

absl::Status RunScatter(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  const size_t part = call.into.size();
  if (part == 0) return absl::OkStatus();
  if (comm.rank() != call.root) {
    Incoming in = comm.In(call.root, call.into);
    comm.Start(&in);
    return comm.Wait(in);
  }
  OutgoingList sent;
  for (int step = 1; step < comm.size(); ++step) {
    const Rank rank = comm.Next(step);
    sent.push_back(comm.Out(rank, call.from.subspan(rank * part, part)));
  }
  for (Outgoing& message : sent) comm.Start(&message);
  const std::byte* const mine = call.from.data() + call.root * part;
  if (call.into.data() != mine) std::memmove(call.into.data(), mine, part);
  return comm.WaitAll(sent);
}

}  // namespace hlaunch
