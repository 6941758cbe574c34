// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// A part from everyone to everyone: 1 step, n - 1 messages out and in for each, each rank beginning
// with its neighbour so that nobody is the first of all.

#include <cstring>

#include "comm/collectives/parts.h"
#include "comm/collectives/wire.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunAllToAll(Wire& wire, const Task& task) {
  const Collective& call = task.call;
  const size_t element = ElementSize(call.type);
  const auto offsets_of = [&](const std::vector<size_t>& counts, size_t bytes) {
    const size_t each = bytes / element / wire.size();
    std::vector<size_t> offsets =
        counts.empty() ? Offsets(std::vector<size_t>(wire.size(), each)) : Offsets(counts);
    for (size_t& offset : offsets) offset *= element;
    return offsets;
  };
  const std::vector<size_t> give = offsets_of(call.give, call.from.size());
  const std::vector<size_t> get = offsets_of(call.get, call.into.size());
  const auto given = [&](Rank rank) {
    return call.from.subspan(give[rank], give[rank + 1] - give[rank]);
  };
  const auto got = [&](Rank rank) {
    return call.into.subspan(get[rank], get[rank + 1] - get[rank]);
  };
  // Empty parts travel too: the other rank may expect something, and must hear that it is wrong.
  std::vector<Outgoing> sent;
  std::vector<Incoming> received;
  for (int step = 1; step < wire.size(); ++step) {
    sent.push_back(wire.Out(wire.Next(step), given(wire.Next(step))));
    received.push_back(wire.In(wire.Before(step), got(wire.Before(step))));
  }
  for (Outgoing& message : sent) wire.Start(&message);
  for (Incoming& message : received) wire.Start(&message);
  const Rank self = wire.rank();
  if (!got(self).empty()) std::memmove(got(self).data(), given(self).data(), got(self).size());
  HLAUNCH_RETURN_IF_ERROR(wire.WaitAll(received));
  return wire.WaitAll(sent);
}

}  // namespace hlaunch
