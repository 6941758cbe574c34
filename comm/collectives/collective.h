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
// who leaves it alone until the call is over. Elements lie one after another and need not be
// aligned.
struct Collective {
  Verb verb = Verb::kBarrier;
  DataType type = DataType::kByte;
  ReduceOp op = ReduceOp::kNone;
  Rank root = 0;
  double factor = 1;                // kPremulSum: what this rank's elements are multiplied by.
  std::span<const std::byte> from;  // What this rank gives.
  std::span<std::byte> into;        // What it gets.
  // Elements for each rank and from each, where ranks differ; else empty.
  std::vector<size_t> give = {}, get = {};
};

// The verbs. n is the world size, `from` and `into` are counted in elements of `type`; they are the
// same place where the text says so, or do not overlap.
Collective Barrier();
// `data` of `root` is copied to that of all others.
Collective Broadcast(DataType type, std::span<std::byte> data, Rank root);
// into = from of all ranks, reduced; may be the same place.
Collective AllReduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                     std::span<std::byte> into, double factor = 1);
// As AllReduce, at `root` only; `into` of others may be empty and stays as it is.
Collective Reduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                  std::span<std::byte> into, Rank root, double factor = 1);
// into = from of rank 0, from of rank 1, …; `counts` where they differ in size: the same list on
// all ranks.
Collective AllGather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                     std::vector<size_t> counts = {});
// As AllGather, at `root` only.
Collective Gather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                  Rank root);
// into = this rank's part of root's `from`; `from` of others is not looked at.
Collective Scatter(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                   Rank root);
// into = this rank's part of from of all ranks, reduced; `counts`: elements of each rank's part
// where they differ, the same list on all ranks.
Collective ReduceScatter(DataType type, ReduceOp op, std::span<const std::byte> from,
                         std::span<std::byte> into, std::vector<size_t> counts = {},
                         double factor = 1);
// into = this rank's part of from of rank 0, of rank 1, …; where parts differ `give[r]` elements go
// to rank r and `get[r]` come from it.
Collective AllToAll(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                    std::vector<size_t> give = {}, std::vector<size_t> get = {});

// Whether `call` makes sense as that of `rank` in a world of `size`.
//
// Errors:
//   InvalidArgument - a root that is no rank, an op that means nothing for the type, sizes that do
//       not go together; the message names the verb and both figures.
absl::Status Check(const Collective& call, Rank rank, int size);

// As far as all ranks must call the same.
Call Common(const Collective& call, int size);

}  // namespace hlaunch
