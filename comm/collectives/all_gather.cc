// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The algorithms by which all ranks get all parts, where s is the size of one part:
//
//   flat   Each rank sends to every other: 1 step; n - 1 messages of s bytes out and in for each.
//   bruck  (Bruck et al.: Efficient Algorithms for All-to-All Communications, 1997) The number of
//          parts that a rank has doubles in each step: ceil(log2 n) messages, (n - 1) s bytes out
//          and in.
//   ring   Neighbours exchange s bytes in each of n - 1 steps.

#include <algorithm>
#include <cstring>

#include "comm/collectives/bruck.h"
#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status GatherBruck(Communicator& comm, std::span<const std::byte> from, std::byte* into) {
  const size_t part = from.size();
  const int size = comm.size();
  if (part == 0) return absl::OkStatus();
  // Rank r holds the parts r, r + 1, … in this order; they are rotated at the end.
  const std::unique_ptr<std::byte[]> rotated =
      std::make_unique_for_overwrite<std::byte[]>(part * size);
  std::memcpy(rotated.get(), from.data(), part);
  for (int have = 1; have < size; have *= 2) {
    const size_t more = std::min(have, size - have) * part;
    Outgoing out = comm.Out(comm.Before(have), {rotated.get(), more});
    Incoming in = comm.In(comm.Next(have), {rotated.get() + have * part, more});
    comm.Start(&out);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
  }
  const size_t tail = (size - comm.rank()) * part;  // From this rank's part to the last.
  std::memcpy(into + comm.rank() * part, rotated.get(), tail);
  std::memcpy(into, rotated.get() + tail, comm.rank() * part);
  return absl::OkStatus();
}

absl::Status RunAllGather(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  std::byte* const into = call.into.data();
  if (task.algorithm == Algorithm::kBruck && call.get.empty()) {
    return GatherBruck(comm, call.from, into);
  }
  const size_t element = ElementSize(call.type);
  SizeList offsets(comm.size() + 1);
  for (Rank rank = 0; rank < comm.size(); ++rank) {
    const size_t part = call.get.empty() ? call.from.size() : call.get[rank] * element;
    offsets[rank + 1] = offsets[rank] + part;
  }
  if (task.algorithm != Algorithm::kRing) return ShareParts(comm, call.from, into, offsets);
  std::byte* const mine = into + offsets[comm.rank()];
  if (!call.from.empty() && mine != call.from.data()) {
    std::memmove(mine, call.from.data(), call.from.size());
  }
  return ShareAround(comm, into, offsets);
}

}  // namespace hlaunch
