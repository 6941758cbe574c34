// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The root's parts, one to each: 1 step, n - 1 messages out of the root.

#include <cstring>

#include "comm/collectives/wire.h"

namespace hlaunch {

absl::Status RunScatter(Wire& wire, const Task& task) {
  const Collective& call = task.call;
  const size_t part = call.into.size();
  if (part == 0) return absl::OkStatus();
  if (wire.rank() != call.root) {
    Incoming in = wire.In(call.root, call.into);
    wire.Start(&in);
    return wire.Wait(in);
  }
  std::vector<Outgoing> sent;
  for (int step = 1; step < wire.size(); ++step) {
    const Rank rank = wire.Next(step);
    sent.push_back(wire.Out(rank, call.from.subspan(rank * part, part)));
  }
  for (Outgoing& message : sent) wire.Start(&message);
  const std::byte* const mine = call.from.data() + call.root * part;
  if (call.into.data() != mine) std::memmove(call.into.data(), mine, part);
  return wire.WaitAll(sent);
}

}  // namespace hlaunch
