// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <span>
#include <vector>

#include "comm/collectives/communicator.h"

// The two halves that most verbs for large data are made of: everyone gets one part of everybody's
// data, and everyone's part goes to everybody.

namespace hlaunch {

// Where the parts of `count` elements begin, and where the last one ends: one for each of `size`
// ranks, as equal as can be.
std::vector<size_t> EqualParts(size_t count, int size);
// The same where the sizes are given.
std::vector<size_t> Offsets(const std::vector<size_t>& counts);

// into = this rank's part of everybody's `from`, reduced in the order of ranks, divided by
// `divisor`. `offsets` are in elements. `into` may be the part itself.
//
// Direct: every rank sends each other its part, in blocks, so that what is reduced is still in the
// cache. One step; n - 1 messages and (n-1)/n of the bytes out and in for each rank: the least
// there can be (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
// MPICH, 2005). All terms are added at once, so 16-bit floats are rounded once, and the order does
// not depend on who comes first.
absl::Status ReduceParts(Communicator& comm, DataType type, ReduceOp op, double divisor,
                         const std::byte* from, std::span<const size_t> offsets, std::byte* into);

// Copies each rank's part of `data` to all others. `offsets` are in bytes. One step, n - 1 messages
// each.
absl::Status ShareParts(Communicator& comm, std::byte* data, std::span<const size_t> offsets);

// The same around a ring: n - 1 steps with one message each.
absl::Status ShareAround(Communicator& comm, std::byte* data, std::span<const size_t> offsets);

}  // namespace hlaunch
