// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/collectives/collective.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/reduce/reduce_kernels.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

Collective Barrier() { return {}; }

Collective Broadcast(DataType type, std::span<std::byte> data, Rank root) {
  return {.verb = Verb::kBroadcast, .type = type, .root = root, .from = data, .into = data};
}

Collective AllReduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                     std::span<std::byte> into, double factor) {
  return {.verb = Verb::kAllReduce,
          .type = type,
          .op = op,
          .factor = factor,
          .from = from,
          .into = into};
}

Collective Reduce(DataType type, ReduceOp op, std::span<const std::byte> from,
                  std::span<std::byte> into, Rank root, double factor) {
  return {.verb = Verb::kReduce,
          .type = type,
          .op = op,
          .root = root,
          .factor = factor,
          .from = from,
          .into = into};
}

Collective AllGather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                     std::vector<size_t> counts) {
  return {
      .verb = Verb::kAllGather, .type = type, .from = from, .into = into, .get = std::move(counts)};
}

Collective Gather(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                  Rank root) {
  return {.verb = Verb::kGather, .type = type, .root = root, .from = from, .into = into};
}

Collective Scatter(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                   Rank root) {
  return {.verb = Verb::kScatter, .type = type, .root = root, .from = from, .into = into};
}

Collective ReduceScatter(DataType type, ReduceOp op, std::span<const std::byte> from,
                         std::span<std::byte> into, std::vector<size_t> counts, double factor) {
  return {.verb = Verb::kReduceScatter,
          .type = type,
          .op = op,
          .factor = factor,
          .from = from,
          .into = into,
          .give = std::move(counts)};
}

Collective AllToAll(DataType type, std::span<const std::byte> from, std::span<std::byte> into,
                    std::vector<size_t> give, std::vector<size_t> get) {
  return {.verb = Verb::kAllToAll,
          .type = type,
          .from = from,
          .into = into,
          .give = std::move(give),
          .get = std::move(get)};
}

namespace {

bool HasRoot(Verb verb) {
  return verb == Verb::kBroadcast || verb == Verb::kReduce || verb == Verb::kGather ||
         verb == Verb::kScatter;
}

bool Reduces(Verb verb) {
  return verb == Verb::kAllReduce || verb == Verb::kReduce || verb == Verb::kReduceScatter;
}

absl::Status Wrong(const Collective& call, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(Name(call.verb), ": ", what));
}

// Checks that `have` bytes are `elements` elements of the call's type.
absl::Status Want(const Collective& call, const char* name, size_t have, size_t elements) {
  const size_t want = elements * ElementSize(call.type);
  if (have == want) return absl::OkStatus();
  return Wrong(call, absl::StrCat("'", name, "' has ", have, " bytes instead of ", want, ", which ",
                                  elements, " x ", Name(call.type), " take"));
}

absl::Status WantCounts(const Collective& call, const std::vector<size_t>& counts, int size) {
  if (counts.empty() || counts.size() == static_cast<size_t>(size)) return absl::OkStatus();
  return Wrong(call, absl::StrCat(counts.size(), " counts in a world of ", size));
}

size_t Total(const std::vector<size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

}  // namespace

absl::Status Check(const Collective& call, Rank rank, int size) {
  if (static_cast<int>(call.type) >= kDataTypes) return Wrong(call, "no such type");
  if (HasRoot(call.verb) && (call.root < 0 || call.root >= size)) {
    return Wrong(call, absl::StrCat("root ", call.root, " is no rank of a world of ", size));
  }
  if (Reduces(call.verb)) HLAUNCH_RETURN_IF_ERROR(CheckReduction(call.op, call.type));
  const size_t element = ElementSize(call.type);
  const bool is_root = !HasRoot(call.verb) || call.root == rank;
  const size_t from = call.from.size() / element, into = call.into.size() / element;
  HLAUNCH_RETURN_IF_ERROR(WantCounts(call, call.give, size));
  HLAUNCH_RETURN_IF_ERROR(WantCounts(call, call.get, size));
  switch (call.verb) {
    case Verb::kSend:
      return Wrong(call, "is no collective");
    case Verb::kBarrier:
      return absl::OkStatus();
    case Verb::kBroadcast:
      return Want(call, "data", call.into.size(), into);
    case Verb::kAllReduce:
      HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), from));
      return Want(call, "into", call.into.size(), from);
    case Verb::kReduce:
      HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), from));
      return is_root ? Want(call, "into", call.into.size(), from) : absl::OkStatus();
    case Verb::kAllGather:
      if (!call.get.empty()) {
        HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), call.get[rank]));
        return Want(call, "into", call.into.size(), Total(call.get));
      }
      [[fallthrough]];
    case Verb::kGather:
      HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), from));
      return is_root ? Want(call, "into", call.into.size(), from * size) : absl::OkStatus();
    case Verb::kScatter:
      HLAUNCH_RETURN_IF_ERROR(Want(call, "into", call.into.size(), into));
      return is_root ? Want(call, "from", call.from.size(), into * size) : absl::OkStatus();
    case Verb::kReduceScatter:
      if (!call.give.empty()) {
        HLAUNCH_RETURN_IF_ERROR(Want(call, "into", call.into.size(), call.give[rank]));
        return Want(call, "from", call.from.size(), Total(call.give));
      }
      HLAUNCH_RETURN_IF_ERROR(Want(call, "into", call.into.size(), into));
      return Want(call, "from", call.from.size(), into * size);
    case Verb::kAllToAll: {
      if (call.give.empty() != call.get.empty()) {
        return Wrong(call, "counts to give and counts to get go together");
      }
      if (!call.give.empty()) {
        if (call.give[rank] != call.get[rank]) {
          return Wrong(call, absl::StrCat("rank ", rank, " gives itself ", call.give[rank],
                                          " elements and gets ", call.get[rank]));
        }
        HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), Total(call.give)));
        return Want(call, "into", call.into.size(), Total(call.get));
      }
      HLAUNCH_RETURN_IF_ERROR(Want(call, "from", call.from.size(), from / size * size));
      return Want(call, "into", call.into.size(), from);
    }
  }
  return Wrong(call, "no such verb");
}

Call Common(const Collective& call, int size) {
  Call common{.verb = call.verb, .type = call.type, .op = call.op};
  if (HasRoot(call.verb)) common.root = call.root;
  const size_t element = ElementSize(call.type);
  switch (call.verb) {
    case Verb::kAllReduce:
    case Verb::kReduce:
    case Verb::kGather:
      common.count = call.from.size() / element;
      break;
    case Verb::kBroadcast:
    case Verb::kScatter:
      common.count = call.into.size() / element;
      break;
    case Verb::kAllGather:
      common.count = call.get.empty() ? call.from.size() / element : call.into.size() / element;
      break;
    case Verb::kReduceScatter:
      common.count = call.give.empty() ? call.into.size() / element : call.from.size() / element;
      break;
    case Verb::kAllToAll:
      common.count = call.give.empty() ? call.from.size() / element / size : 0;
      break;
    default:
      break;
  }
  return common;
}

}  // namespace hlaunch
