// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The algorithms by which the root gets the reduction of all ranks' data, where s is its size:
//
//   flat    Each rank sends to the root, which reduces n inputs: 1 step; (n - 1) s bytes into the
//           root.
//   direct  Each rank reduces one part (parts.h) and sends it to the root: 2 steps; s (n-1)/n bytes
//           out and in for each rank, and as many into the root.
//
// Both add in the order of ranks and give the same bits.

#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "comm/reduce/reduce_kernels.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

absl::Status Flat(Communicator& comm, const Collective& call, const std::byte* from,
                  double divisor) {
  const size_t bytes = call.from.size();
  if (comm.rank() != call.root) {
    Outgoing out = comm.Out(call.root, {from, bytes});
    comm.Start(&out);
    return comm.Wait(out);
  }
  const std::unique_ptr<std::byte[]> all =
      std::make_unique_for_overwrite<std::byte[]>(bytes * (comm.size() - 1));
  IncomingList received;
  SourceList sources(comm.size());
  sources[comm.rank()] = from;
  for (int step = 1; step < comm.size(); ++step) {
    const Rank rank = comm.Next(step);
    received.push_back(comm.In(rank, {all.get() + (step - 1) * bytes, bytes}));
    sources[rank] = received.back().bytes.data();
  }
  for (Incoming& message : received) comm.Start(&message);
  HLAUNCH_RETURN_IF_ERROR(comm.WaitAll(received));
  Reduce(call.type, call.op, call.into.data(), sources, bytes / ElementSize(call.type), divisor);
  return absl::OkStatus();
}

absl::Status Direct(Communicator& comm, const Collective& call, const std::byte* from,
                    double divisor) {
  const size_t element = ElementSize(call.type);
  const SizeList offsets = EqualParts(call.from.size() / element, comm.size());
  const auto bytes_of = [&](Rank rank) { return (offsets[rank + 1] - offsets[rank]) * element; };
  const bool is_root = comm.rank() == call.root;
  std::unique_ptr<std::byte[]> part;
  if (!is_root) part = std::make_unique_for_overwrite<std::byte[]>(bytes_of(comm.rank()));
  std::byte* const mine = is_root ? call.into.data() + offsets[comm.rank()] * element : part.get();
  HLAUNCH_RETURN_IF_ERROR(ReduceParts(comm, call.type, call.op, divisor, from, offsets, mine));
  if (!is_root) {
    Outgoing out = comm.Out(call.root, {mine, bytes_of(comm.rank())});
    comm.Start(&out);
    return comm.Wait(out);
  }
  IncomingList received;
  for (int step = 1; step < comm.size(); ++step) {
    const Rank rank = comm.Next(step);
    received.push_back(comm.In(rank, {call.into.data() + offsets[rank] * element, bytes_of(rank)}));
  }
  for (Incoming& message : received) comm.Start(&message);
  return comm.WaitAll(received);
}

}  // namespace

absl::Status RunReduce(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  const size_t count = call.from.size() / ElementSize(call.type);
  if (count == 0) return absl::OkStatus();
  const double divisor = call.op == ReduceOp::kAvg ? comm.size() : 1;
  std::unique_ptr<std::byte[]> multiplied;
  const std::byte* from = call.from.data();
  if (call.op == ReduceOp::kPremulSum) {
    multiplied = std::make_unique_for_overwrite<std::byte[]>(call.from.size());
    Multiply(call.type, multiplied.get(), from, count, call.factor);
    from = multiplied.get();
  }
  return task.algorithm == Algorithm::kDirect ? Direct(comm, call, from, divisor)
                                              : Flat(comm, call, from, divisor);
}

}  // namespace hlaunch
