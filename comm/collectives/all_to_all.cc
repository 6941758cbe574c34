// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Each rank sends a part to every other: 1 step; n - 1 messages out and in for each. Each rank
// begins with its neighbour, so that not all ranks send to the same one first.

#include <cstring>

#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status RunAllToAll(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  const size_t element = ElementSize(call.type);
  const auto offsets_of = [&](const std::vector<size_t>& counts, size_t bytes) {
    const size_t each = bytes / element / comm.size();
    SizeList offsets = counts.empty() ? Offsets(comm.size(), each) : Offsets(counts);
    for (size_t& offset : offsets) offset *= element;
    return offsets;
  };
  const SizeList give = offsets_of(call.give, call.from.size());
  const SizeList get = offsets_of(call.get, call.into.size());
  const auto given = [&](Rank rank) {
    return call.from.subspan(give[rank], give[rank + 1] - give[rank]);
  };
  const auto got = [&](Rank rank) {
    return call.into.subspan(get[rank], get[rank + 1] - get[rank]);
  };
  // Empty parts are sent, too: a rank that expects a part must learn that the sizes do not match.
  OutgoingList sent;
  IncomingList received;
  for (int step = 1; step < comm.size(); ++step) {
    sent.push_back(comm.Out(comm.Next(step), given(comm.Next(step))));
    received.push_back(comm.In(comm.Before(step), got(comm.Before(step))));
  }
  for (Outgoing& message : sent) comm.Start(&message);
  for (Incoming& message : received) comm.Start(&message);
  const Rank self = comm.rank();
  if (!got(self).empty()) std::memmove(got(self).data(), given(self).data(), got(self).size());
  HLAUNCH_RETURN_IF_ERROR(comm.WaitAll(received));
  return comm.WaitAll(sent);
}

}  // namespace hlaunch
