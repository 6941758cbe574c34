// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The algorithms by which all ranks get the reduction of all ranks' data, where s is its size:
//
//   exchange            Each rank sends its data to every other and reduces n inputs itself:
//                       1 step; n - 1 messages of s bytes.
//   bruck               The same, gathered in ceil(log2 n) steps.
//   direct              Each rank reduces one part of all ranks' data (parts.h), then the parts are
//                       shared: 2 steps; 2 (n - 1) messages of s/n bytes; 2 s (n-1)/n bytes out and
//                       in, which is the minimum. This is Rabenseifner's algorithm with each half
//                       in one step instead of log n; every rank needs a connection to every other.
//   ring                The same bytes in 2 (n - 1) steps between neighbours (Patarasuk, Yuan:
//                       Bandwidth Optimal All-reduce Algorithms, 2009): for more ranks.
//   recursive_doubling  ceil(log2 n) steps of s bytes (2 more where n is no power of two).
//   two_level           direct inside each host; then each part among the ranks of other hosts that
//                       have the same part; direct inside the hosts again. 2 s (h-1)/h bytes go out
//                       of each of h hosts, whatever the number of its ranks.
//
// The first three add all n terms in the order of ranks, so they give the same bits. The others
// pass partial sums; those of 16-bit floats are float32. Each element is computed by one rank, or
// by all in the same order, so all ranks and all runs have the same bits.

#include <algorithm>
#include <cstring>

#include "comm/collectives/bruck.h"
#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "comm/reduce/reduce_kernels.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// One all_reduce; the inputs need no multiplication any more.
struct Sum {
  DataType type;
  ReduceOp op;
  double divisor;
  const std::byte* from;
  std::byte* into;
  size_t count;

  size_t bytes() const { return count * ElementSize(type); }
};

absl::Status Exchange(Communicator& comm, const Sum& sum) {
  const size_t bytes = sum.bytes();
  const int others = comm.size() - 1;
  OutgoingList out(others);
  IncomingList in(others);
  const std::span<std::byte> scratch = comm.scratch().Get(others * bytes);
  for (int i = 0; i < others; ++i) {
    out[i] = comm.Out(comm.Next(i + 1), {sum.from, bytes});
    comm.Start(&out[i]);
  }
  for (int i = 0; i < others; ++i) {
    in[i] = comm.In(comm.Before(i + 1), scratch.subspan(i * bytes, bytes));
    comm.Start(&in[i]);
  }
  HLAUNCH_RETURN_IF_ERROR(comm.WaitAll(in));
  HLAUNCH_RETURN_IF_ERROR(comm.WaitAll(out));
  SourceList sources(comm.size());
  sources[comm.rank()] = sum.from;
  for (int i = 0; i < others; ++i) sources[comm.Before(i + 1)] = in[i].bytes.data();
  Reduce(sum.type, sum.op, sum.into, sources, sum.count, sum.divisor);
  return absl::OkStatus();
}

absl::Status Bruck(Communicator& comm, const Sum& sum) {
  const size_t bytes = sum.bytes();
  std::byte* const all = comm.scratch().Get(bytes * comm.size()).data();
  HLAUNCH_RETURN_IF_ERROR(GatherBruck(comm, {sum.from, bytes}, all));
  SourceList sources;
  for (Rank rank = 0; rank < comm.size(); ++rank) sources.push_back(all + rank * bytes);
  Reduce(sum.type, sum.op, sum.into, sources, sum.count, sum.divisor);
  return absl::OkStatus();
}

absl::Status Direct(Communicator& comm, const Sum& sum) {
  SizeList offsets = EqualParts(sum.count, comm.size());
  const size_t element = ElementSize(sum.type);
  HLAUNCH_RETURN_IF_ERROR(ReduceParts(comm, sum.type, sum.op, sum.divisor, sum.from, offsets,
                                      sum.into + offsets[comm.rank()] * element));
  for (size_t& offset : offsets) offset *= element;
  return ShareParts(comm, sum.into, offsets);
}

// into = into op other, or other op into: the lower rank's data comes first.
void Combine(const Sum& sum, std::byte* into, const std::byte* other, bool other_first,
             size_t count) {
  const std::byte* const sources[2] = {other_first ? other : into, other_first ? into : other};
  Reduce(sum.type, sum.op, into, sources, count);
}

void CopyInput(const Sum& sum) {
  if (sum.into != sum.from && sum.count > 0) std::memcpy(sum.into, sum.from, sum.bytes());
}

absl::Status Ring(Communicator& comm, const Sum& sum) {
  CopyInput(sum);
  const int size = comm.size();
  const size_t element = ElementSize(sum.type);
  SizeList offsets = EqualParts(sum.count, size);
  const auto part = [&](Rank rank) {
    return std::span<std::byte>(sum.into + offsets[rank] * element,
                                (offsets[rank + 1] - offsets[rank]) * element);
  };
  const std::span<std::byte> scratch = comm.scratch().Get(part(0).size());
  // In each step a rank adds its own data to a part that came around; the last one is its own part.
  for (int step = 1; step < size; ++step) {
    const std::span<std::byte> summed = part(comm.Before(step + 1));
    Outgoing out = comm.Out(comm.Next(1), part(comm.Before(step)));
    Incoming in = comm.In(comm.Before(1), scratch.first(summed.size()));
    comm.Start(&out);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
    Combine(sum, summed.data(), scratch.data(), true, summed.size() / element);
  }
  const std::span<std::byte> mine = part(comm.rank());
  if (sum.divisor != 1) {
    Divide(sum.type, mine.data(), mine.data(), mine.size() / element, sum.divisor);
  }
  for (size_t& offset : offsets) offset *= element;
  return ShareAround(comm, sum.into, offsets);
}

absl::Status RecursiveDoubling(Communicator& comm, const Sum& sum) {
  CopyInput(sum);
  const std::span<std::byte> mine(sum.into, sum.bytes());
  const std::span<std::byte> theirs = comm.scratch().Get(mine.size());
  int power = 1;
  while (power * 2 <= comm.size()) power *= 2;
  const int extra = comm.size() - power;
  const Rank self = comm.rank();
  // The first 2 * extra ranks form pairs; the even rank of a pair takes part for both.
  const bool paired = self < 2 * extra;
  if (paired && self % 2 == 1) {
    Outgoing out = comm.Out(self - 1, mine);
    Incoming in = comm.In(self - 1, mine);
    comm.Start(&out);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
    comm.Start(&in);
    return comm.Wait(in);
  }
  if (paired) {
    Incoming in = comm.In(self + 1, theirs);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    Combine(sum, sum.into, theirs.data(), false, sum.count);
  }
  const int position = paired ? self / 2 : self - extra;
  for (int distance = 1; distance < power; distance *= 2) {
    const int other = position ^ distance;
    const Rank peer = other < extra ? other * 2 : other + extra;
    Outgoing out = comm.Out(peer, mine);
    Incoming in = comm.In(peer, theirs);
    comm.Start(&out);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(out));
    Combine(sum, sum.into, theirs.data(), other < position, sum.count);
  }
  if (sum.divisor != 1) Divide(sum.type, sum.into, sum.into, sum.count, sum.divisor);
  if (!paired) return absl::OkStatus();
  Outgoing out = comm.Out(self + 1, mine);
  comm.Start(&out);
  return comm.Wait(out);
}

absl::Status TwoLevel(Communicator& comm, const Sum& sum, const Hosts& hosts) {
  const size_t element = ElementSize(sum.type);
  const Rank self = comm.rank();
  const int index = hosts.index_of[self];
  Communicator inside = comm.Among(hosts.ranks[hosts.host_of[self]]);
  std::vector<Rank> alike;  // The ranks of the other hosts that have the same part.
  for (const auto& ranks : hosts.ranks) alike.push_back(ranks[index]);
  Communicator between = comm.Among(alike);

  SizeList offsets = EqualParts(sum.count, hosts.per_host);
  std::byte* const mine = sum.into + offsets[index] * element;
  HLAUNCH_RETURN_IF_ERROR(ReduceParts(inside, sum.type, sum.op, 1, sum.from, offsets, mine));
  const Sum part{sum.type, sum.op, sum.divisor, mine, mine, offsets[index + 1] - offsets[index]};
  HLAUNCH_RETURN_IF_ERROR(between.size() > 32 ? Ring(between, part) : Direct(between, part));
  for (size_t& offset : offsets) offset *= element;
  return ShareParts(inside, sum.into, offsets);
}

absl::Status Run(Communicator& comm, const Sum& sum, const Task& task) {
  switch (task.algorithm) {
    case Algorithm::kExchange:
      return Exchange(comm, sum);
    case Algorithm::kBruck:
      return Bruck(comm, sum);
    case Algorithm::kRing:
      return Ring(comm, sum);
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoubling(comm, sum);
    case Algorithm::kTwoLevel:
      return TwoLevel(comm, sum, task.hosts);
    default:
      return Direct(comm, sum);
  }
}

bool PassesPartialSums(Algorithm algorithm) {
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kRecursiveDoubling ||
         algorithm == Algorithm::kTwoLevel;
}

}  // namespace

absl::Status RunAllReduce(Communicator& comm, const Task& task) {
  const Collective& call = task.call;
  Sum sum{call.type,
          call.op,
          call.op == ReduceOp::kAvg ? static_cast<double>(comm.size()) : 1,
          call.from.data(),
          call.into.data(),
          call.from.size() / ElementSize(call.type)};
  if (call.op == ReduceOp::kPremulSum) {
    Multiply(call.type, sum.into, sum.from, sum.count, call.factor);
    sum.from = sum.into;
  }
  const bool narrow = call.type == DataType::kFloat16 || call.type == DataType::kBfloat16;
  if (!narrow || !PassesPartialSums(task.algorithm)) return Run(comm, sum, task);

  const auto wide = std::make_unique_for_overwrite<float[]>(sum.count);
  auto* const bytes = reinterpret_cast<std::byte*>(wide.get());
  Widen(call.type, bytes, sum.from, sum.count);
  HLAUNCH_RETURN_IF_ERROR(
      Run(comm, {DataType::kFloat32, sum.op, sum.divisor, bytes, bytes, sum.count}, task));
  Narrow(call.type, call.into.data(), bytes, sum.count);
  return absl::OkStatus();
}

}  // namespace hlaunch
