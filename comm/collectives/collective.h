// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "comm/call/call.h"

namespace hlaunch {

// One call of a collective verb, as one rank makes it. A value; the memory belongs to the caller,
// which must not touch it until the call is over. Elements lie one after another and need not be
// aligned.
struct Collective {
  Verb verb = Verb::kBarrier;
  DataType type = DataType::kByte;
  ReduceOp op = ReduceOp::kNone;
  Rank root = 0;
  double factor = 1;                // kPremulSum: this rank's elements are multiplied by it.
  std::span<const std::byte> from;  // This rank's input.
  std::span<std::byte> into;        // This rank's output.
  // The numbers of elements for each rank and from each rank, where they differ; else empty.
  std::vector<size_t> give = {}, get = {};
};

// The verbs. n is the world size; `from` and `into` are arrays of `type`. They are the same memory
// where a comment permits it, else they do not overlap.
Collective Barrier();
// Copies `data` of `root` to `data` of all other ranks.
Collective Broadcast(DataType type, std::span<std::byte> data, Rank root);
// into = from of all ranks, reduced; both may be the same memory.
Collective AllReduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                     std::span<std::byte> into, double factor = 1);
// As AllReduce, at `root` only; `into` of other ranks may be empty and does not change.
Collective Reduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                  std::span<std::byte> into, Rank root, double factor = 1);
// into = from of rank 0, from of rank 1, …; `counts` gives their sizes where they differ, the same
// list at all ranks.
Collective AllGather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                     std::vector<size_t> counts = {});
// As AllGather, at `root` only.
Collective Gather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                  Rank root);
// into = this rank's part of root's `from`; `from` of other ranks is ignored.
Collective Scatter(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                   Rank root);
// into = this rank's part of `from` of all ranks, reduced; `counts` gives the size of each rank's
// part where they differ, the same list at all ranks.
Collective ReduceScatter(DataType type, ReduceOp op, std::span<const std::byte> from,
                         std::span<std::byte> into, std::vector<size_t> counts = {},
                         double factor = 1);
// into = this rank's part of `from` of rank 0, of rank 1, …; where parts differ in size, `give[r]`
// elements go to rank r and `get[r]` elements come from it.
Collective AllToAll(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                    std::vector<size_t> give = {}, std::vector<size_t> get = {});

// Checks that `call` is valid as a call of `rank` in a world of `size`.
//
// Errors:
//   InvalidArgument - the root is not a rank, the op does not exist for the type, or sizes do not
//       match; the message names the verb and both sizes.
absl::Status Check(const Collective& call, Rank rank, int size);

// Returns the part of `call` that must be the same at all ranks.
Call Common(const Collective& call, int size);

}  // namespace hlaunch
