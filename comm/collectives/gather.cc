// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Everyone's part to the root: 1 step, n - 1 messages into the root.

#include <cstring>

#include "comm/collectives/wire.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunGather(Wire& wire, const Task& task) {
  const Collective& call = task.call;
  const size_t part = call.from.size();
  if (part == 0) return absl::OkStatus();
  if (wire.rank() != call.root) {
    Outgoing out = wire.Out(call.root, call.from);
    wire.Start(&out);
    return wire.Wait(out);
  }
  std::vector<Incoming> received;
  for (int step = 1; step < wire.size(); ++step) {
    const Rank rank = wire.Next(step);
    received.push_back(wire.In(rank, call.into.subspan(rank * part, part)));
  }
  for (Incoming& message : received) wire.Start(&message);
  std::byte* const mine = call.into.data() + call.root * part;
  if (mine != call.from.data()) std::memmove(mine, call.from.data(), part);
  return wire.WaitAll(received);
}

}  // namespace hlaunch
