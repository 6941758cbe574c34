// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/collectives/parts.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce/reduce_kernels.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// The blocks that arrive at the same time fit into the L2 cache.
constexpr size_t kInFlight = 512 << 10;
constexpr size_t kLeastBlock = 16 << 10, kMostBlock = 256 << 10;

size_t BlockElements(int size, size_t element) {
  const size_t block = kInFlight / std::max(1, size - 1);
  return std::clamp(block, kLeastBlock, kMostBlock) / element;
}

size_t Blocks(size_t count, size_t block) { return (count + block - 1) / block; }

}  // namespace

SizeList EqualParts(size_t count, int size) {
  // Parts begin on cache lines if there is enough for all.
  const size_t step = count >= static_cast<size_t>(size) * 64 ? 64 : 1;
  const size_t each = (count + size - 1) / size;
  const size_t part = (each + step - 1) / step * step;
  SizeList offsets;
  for (int rank = 0; rank <= size; ++rank) offsets.push_back(std::min(count, rank * part));
  return offsets;
}

SizeList Offsets(const std::vector<size_t>& counts) {
  SizeList offsets{0};
  for (const size_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

SizeList Offsets(int size, size_t each) {
  SizeList offsets;
  for (int rank = 0; rank <= size; ++rank) offsets.push_back(rank * each);
  return offsets;
}

absl::Status ReduceParts(Communicator& comm, DataType type, ReduceOp op, double divisor,
                         const std::byte* from, std::span<const size_t> offsets, std::byte* into) {
  const size_t element = ElementSize(type);
  const int size = comm.size();
  const Rank self = comm.rank();
  const size_t block = BlockElements(size, element);
  const auto count_of = [&](Rank rank) { return offsets[rank + 1] - offsets[rank]; };

  OutgoingList sent;
  for (int step = 1; step < size; ++step) {
    const Rank to = comm.Next(step);
    for (size_t begin = 0; begin < count_of(to); begin += block) {
      const size_t count = std::min(block, count_of(to) - begin);
      sent.push_back(comm.Out(to, {from + (offsets[to] + begin) * element, count * element}));
    }
  }
  for (Outgoing& message : sent) comm.Start(&message);

  // Two blocks are under way: one arrives while the other is reduced.
  const size_t mine = count_of(self), blocks = Blocks(mine, block);
  const size_t room = block * element, others = size - 1;
  const std::span<std::byte> scratch =
      comm.scratch().Get(std::min<size_t>(blocks, 2) * others * room);
  IncomingList received(2 * others);
  const auto receive = [&](size_t i) {
    const size_t bytes = std::min(block, mine - i * block) * element;
    for (size_t step = 1; step <= others; ++step) {
      Incoming& message = received[(i % 2) * others + step - 1];
      const Rank rank = comm.Before(static_cast<int>(step));
      message = comm.In(rank, scratch.subspan(((i % 2) * others + step - 1) * room, bytes));
      comm.Start(&message);
    }
  };
  SourceList sources(size);
  if (blocks > 0) receive(0);
  for (size_t i = 0; i < blocks; ++i) {
    if (i + 1 < blocks) receive(i + 1);
    sources[self] = from + (offsets[self] + i * block) * element;
    for (size_t step = 1; step <= others; ++step) {
      const Incoming& message = received[(i % 2) * others + step - 1];
      HLAUNCH_RETURN_IF_ERROR(comm.Wait(message));
      sources[comm.Before(static_cast<int>(step))] = message.bytes.data();
    }
    Reduce(type, op, into + i * block * element, sources, std::min(block, mine - i * block),
           divisor);
  }
  return comm.WaitAll(sent);
}

// The other ranks read `mine` itself and not its copy: cache lines that a core has just written are
// the most expensive ones for another core to read.
absl::Status ShareParts(Communicator& comm, std::span<const std::byte> mine, std::byte* data,
                        std::span<const size_t> offsets) {
  const auto part = [&](Rank rank) {
    return std::span<std::byte>(data + offsets[rank], offsets[rank + 1] - offsets[rank]);
  };
  OutgoingList sent;
  IncomingList received;
  for (int step = 1; step < comm.size(); ++step) {
    const Rank to = comm.Next(step), from = comm.Before(step);
    if (!mine.empty()) sent.push_back(comm.Out(to, mine));
    if (!part(from).empty()) received.push_back(comm.In(from, part(from)));
  }
  for (Outgoing& message : sent) comm.Start(&message);
  for (Incoming& message : received) comm.Start(&message);
  std::byte* const own = part(comm.rank()).data();
  if (!mine.empty() && own != mine.data()) std::memmove(own, mine.data(), mine.size());
  HLAUNCH_RETURN_IF_ERROR(comm.WaitAll(received));
  return comm.WaitAll(sent);
}

absl::Status ShareParts(Communicator& comm, std::byte* data, std::span<const size_t> offsets) {
  const Rank self = comm.rank();
  return ShareParts(comm, {data + offsets[self], offsets[self + 1] - offsets[self]}, data, offsets);
}

absl::Status ShareAround(Communicator& comm, std::byte* data, std::span<const size_t> offsets) {
  const auto part = [&](Rank rank) {
    return std::span<std::byte>(data + offsets[rank], offsets[rank + 1] - offsets[rank]);
  };
  for (int step = 0; step + 1 < comm.size(); ++step) {
    Outgoing out = comm.Out(comm.Next(1), part(comm.Before(step)));
    Incoming in = comm.In(comm.Before(1), part(comm.Before(step + 1)));
    comm.Start(&out);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
