// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <span>
#include <vector>

#include "comm/collectives/communicator.h"

// The two halves of most algorithms for large data: each rank reduces one part of all ranks' data,
// and then sends its part to all ranks.

namespace hlaunch {

// Divides `count` elements into a part for each of `size` ranks, as equal as possible. Returns
// where each part begins, and where the last one ends.
SizeList EqualParts(size_t count, int size);
// The same for parts of given sizes, and for `size` parts of `each`.
SizeList Offsets(const std::vector<size_t>& counts);
SizeList Offsets(int size, size_t each);

// into = this rank's part of `from` of all ranks, reduced in the order of ranks and divided by
// `divisor`. `offsets` are in elements. `into` may be the part itself.
//
// Every rank sends each other rank its part directly, in blocks, so that a block is reduced while
// it is in the cache. This is one step with n - 1 messages, and (n-1)/n of the bytes go out of and
// into each rank, which is the minimum (Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, 2005). All terms are added at once, so 16-bit floats are
// rounded once, and the order does not depend on timing.
absl::Status ReduceParts(Communicator& comm, DataType type, ReduceOp op, double divisor,
                         const std::byte* from, std::span<const size_t> offsets, std::byte* into);

// Copies `mine`, this rank's part, to all other ranks and, unless it is there, into `data`.
// `offsets` are in bytes. One step with n - 1 messages for each rank.
absl::Status ShareParts(Communicator& comm, std::span<const std::byte> mine, std::byte* data,
                        std::span<const size_t> offsets);
// The same, where the part is in `data`.
absl::Status ShareParts(Communicator& comm, std::byte* data, std::span<const size_t> offsets);

// The same around a ring: n - 1 steps with one message for each rank.
absl::Status ShareAround(Communicator& comm, std::byte* data, std::span<const size_t> offsets);

}  // namespace hlaunch
