// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// How everybody gets the reduction of everybody's data, where s is its size:
//
//   exchange            everyone sends all it has to everyone and reduces n inputs itself: 1 step,
//                       n - 1 messages of s bytes.
//   bruck               the same, gathered in ceil(log2 n) steps.
//   direct              everyone reduces one part of everybody's data (parts.h), then the parts are
//                       shared: 2 steps, 2 (n - 1) messages of s/n bytes, 2 s (n-1)/n bytes out and
//                       in: the least there can be. It is Rabenseifner's algorithm with each half
//                       in one step instead of log n: for it every rank talks to every other.
//   ring                the same bytes in 2 (n - 1) steps among neighbours (Patarasuk, Yuan:
//   Bandwidth
//                       Optimal All-reduce Algorithms, 2009): for worlds too large for that.
//   recursive_doubling  ceil(log2 n) steps (2 more where n is no power of two) of s bytes.
//   two_level           direct inside each host; each part then among the ranks of other hosts that
//                       have the same part; direct inside again. Between hosts go 2 s (h-1)/h bytes
//                       out of each host, whatever the number of its ranks.
//
// The first three add all n terms in the order of ranks, so they give the same bits. The others
// pass partial sums, of 16-bit floats as float32; each element is computed by one rank, or by all
// in the same order, so all ranks have the same bits and every run has.

#include <algorithm>
#include <cstring>

#include "comm/collectives/bruck.h"
#include "comm/collectives/parts.h"
#include "comm/collectives/wire.h"
#include "comm/reduce/reduce_kernels.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// One all_reduce whose inputs are as they are to be added.
struct Sum {
  DataType type;
  ReduceOp op;
  double divisor;
  const std::byte* from;
  std::byte* into;
  size_t count;

  size_t bytes() const { return count * ElementSize(type); }
};

absl::Status Exchange(Wire& wire, const Sum& sum) {
  const size_t bytes = sum.bytes();
  const int others = wire.size() - 1;
  // Few and small: nothing is asked of the heap.
  Outgoing sent[8];
  Incoming received[8];
  std::vector<Outgoing> more_sent;
  std::vector<Incoming> more_received;
  Outgoing* out = sent;
  Incoming* in = received;
  if (others > 8) {
    more_sent.resize(others);
    more_received.resize(others);
    out = more_sent.data();
    in = more_received.data();
  }
  const std::span<std::byte> scratch = wire.scratch().Get(others * bytes);
  for (int i = 0; i < others; ++i) {
    out[i] = wire.Out(wire.Next(i + 1), {sum.from, bytes});
    wire.Start(&out[i]);
  }
  for (int i = 0; i < others; ++i) {
    in[i] = wire.In(wire.Before(i + 1), scratch.subspan(i * bytes, bytes));
    wire.Start(&in[i]);
  }
  HLAUNCH_RETURN_IF_ERROR(wire.WaitAll(std::span(in, others)));
  HLAUNCH_RETURN_IF_ERROR(wire.WaitAll(std::span(out, others)));
  const std::byte* few[9];
  std::vector<const std::byte*> many(others > 8 ? others + 1 : 0);
  const std::byte** const sources = others > 8 ? many.data() : few;
  sources[wire.rank()] = sum.from;
  for (int i = 0; i < others; ++i) sources[wire.Before(i + 1)] = in[i].bytes.data();
  Reduce(sum.type, sum.op, sum.into, std::span(sources, others + 1), sum.count, sum.divisor);
  return absl::OkStatus();
}

absl::Status Bruck(Wire& wire, const Sum& sum) {
  const size_t bytes = sum.bytes();
  std::byte* const all = wire.scratch().Get(bytes * wire.size()).data();
  HLAUNCH_RETURN_IF_ERROR(GatherBruck(wire, {sum.from, bytes}, all));
  std::vector<const std::byte*> sources;
  for (Rank rank = 0; rank < wire.size(); ++rank) sources.push_back(all + rank * bytes);
  Reduce(sum.type, sum.op, sum.into, sources, sum.count, sum.divisor);
  return absl::OkStatus();
}

absl::Status Direct(Wire& wire, const Sum& sum) {
  std::vector<size_t> offsets = EqualParts(sum.count, wire.size());
  const size_t element = ElementSize(sum.type);
  HLAUNCH_RETURN_IF_ERROR(ReduceParts(wire, sum.type, sum.op, sum.divisor, sum.from, offsets,
                                      sum.into + offsets[wire.rank()] * element));
  for (size_t& offset : offsets) offset *= element;
  return ShareParts(wire, sum.into, offsets);
}

// into = into op other, the lower rank's first.
void Combine(const Sum& sum, std::byte* into, const std::byte* other, bool other_first,
             size_t count) {
  const std::byte* const sources[2] = {other_first ? other : into, other_first ? into : other};
  Reduce(sum.type, sum.op, into, sources, count);
}

void CopyInput(const Sum& sum) {
  if (sum.into != sum.from && sum.count > 0) std::memcpy(sum.into, sum.from, sum.bytes());
}

absl::Status Ring(Wire& wire, const Sum& sum) {
  CopyInput(sum);
  const int size = wire.size();
  const size_t element = ElementSize(sum.type);
  std::vector<size_t> offsets = EqualParts(sum.count, size);
  const auto part = [&](Rank rank) {
    return std::span<std::byte>(sum.into + offsets[rank] * element,
                                (offsets[rank + 1] - offsets[rank]) * element);
  };
  const std::span<std::byte> scratch = wire.scratch().Get(part(0).size());
  // What begins as part r - 1 of this rank ends, summed, as its own part.
  for (int step = 1; step < size; ++step) {
    const std::span<std::byte> summed = part(wire.Before(step + 1));
    Outgoing out = wire.Out(wire.Next(1), part(wire.Before(step)));
    Incoming in = wire.In(wire.Before(1), scratch.first(summed.size()));
    wire.Start(&out);
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(out));
    Combine(sum, summed.data(), scratch.data(), true, summed.size() / element);
  }
  const std::span<std::byte> mine = part(wire.rank());
  if (sum.divisor != 1) {
    Divide(sum.type, mine.data(), mine.data(), mine.size() / element, sum.divisor);
  }
  for (size_t& offset : offsets) offset *= element;
  return ShareAround(wire, sum.into, offsets);
}

absl::Status RecursiveDoubling(Wire& wire, const Sum& sum) {
  CopyInput(sum);
  const std::span<std::byte> mine(sum.into, sum.bytes());
  const std::span<std::byte> theirs = wire.scratch().Get(mine.size());
  int power = 1;
  while (power * 2 <= wire.size()) power *= 2;
  const int extra = wire.size() - power;
  const Rank self = wire.rank();
  // The first 2 * extra ranks form pairs, of which the even one takes part.
  const bool paired = self < 2 * extra;
  if (paired && self % 2 == 1) {
    Outgoing out = wire.Out(self - 1, mine);
    Incoming in = wire.In(self - 1, mine);
    wire.Start(&out);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(out));
    wire.Start(&in);
    return wire.Wait(in);
  }
  if (paired) {
    Incoming in = wire.In(self + 1, theirs);
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
    Combine(sum, sum.into, theirs.data(), false, sum.count);
  }
  const int place = paired ? self / 2 : self - extra;
  for (int distance = 1; distance < power; distance *= 2) {
    const int other = place ^ distance;
    const Rank peer = other < extra ? other * 2 : other + extra;
    Outgoing out = wire.Out(peer, mine);
    Incoming in = wire.In(peer, theirs);
    wire.Start(&out);
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(out));
    Combine(sum, sum.into, theirs.data(), other < place, sum.count);
  }
  if (sum.divisor != 1) Divide(sum.type, sum.into, sum.into, sum.count, sum.divisor);
  if (!paired) return absl::OkStatus();
  Outgoing out = wire.Out(self + 1, mine);
  wire.Start(&out);
  return wire.Wait(out);
}

absl::Status TwoLevel(Wire& wire, const Sum& sum, const Hosts& hosts) {
  const size_t element = ElementSize(sum.type);
  const Rank self = wire.rank();
  const int index = hosts.index_of[self];
  Wire inside = wire.Among(hosts.ranks[hosts.host_of[self]]);
  std::vector<Rank> alike;  // Who has the same part on the other hosts.
  for (const auto& ranks : hosts.ranks) alike.push_back(ranks[index]);
  Wire between = wire.Among(alike);

  std::vector<size_t> offsets = EqualParts(sum.count, hosts.per_host);
  std::byte* const mine = sum.into + offsets[index] * element;
  HLAUNCH_RETURN_IF_ERROR(ReduceParts(inside, sum.type, sum.op, 1, sum.from, offsets, mine));
  const Sum part{sum.type, sum.op, sum.divisor, mine, mine, offsets[index + 1] - offsets[index]};
  HLAUNCH_RETURN_IF_ERROR(between.size() > 32 ? Ring(between, part) : Direct(between, part));
  for (size_t& offset : offsets) offset *= element;
  return ShareParts(inside, sum.into, offsets);
}

absl::Status Run(Wire& wire, const Sum& sum, const Task& task) {
  switch (task.algorithm) {
    case Algorithm::kExchange:
      return Exchange(wire, sum);
    case Algorithm::kBruck:
      return Bruck(wire, sum);
    case Algorithm::kRing:
      return Ring(wire, sum);
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoubling(wire, sum);
    case Algorithm::kTwoLevel:
      return TwoLevel(wire, sum, task.hosts);
    default:
      return Direct(wire, sum);
  }
}

bool PassesPartialSums(Algorithm algorithm) {
  return algorithm == Algorithm::kRing || algorithm == Algorithm::kRecursiveDoubling ||
         algorithm == Algorithm::kTwoLevel;
}

}  // namespace

absl::Status RunAllReduce(Wire& wire, const Task& task) {
  const Collective& call = task.call;
  Sum sum{call.type,
          call.op,
          call.op == ReduceOp::kAvg ? static_cast<double>(wire.size()) : 1,
          call.from.data(),
          call.into.data(),
          call.from.size() / ElementSize(call.type)};
  if (call.op == ReduceOp::kPremulSum) {
    Multiply(call.type, sum.into, sum.from, sum.count, call.factor);
    sum.from = sum.into;
  }
  const bool narrow = call.type == DataType::kFloat16 || call.type == DataType::kBfloat16;
  if (!narrow || !PassesPartialSums(task.algorithm)) return Run(wire, sum, task);

  const auto wide = std::make_unique_for_overwrite<float[]>(sum.count);
  auto* const bytes = reinterpret_cast<std::byte*>(wide.get());
  Widen(call.type, bytes, sum.from, sum.count);
  HLAUNCH_RETURN_IF_ERROR(
      Run(wire, {DataType::kFloat32, sum.op, sum.divisor, bytes, bytes, sum.count}, task));
  Narrow(call.type, call.into.data(), bytes, sum.count);
  return absl::OkStatus();
}

}  // namespace hlaunch
