// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// How `data` of the root gets to all, where s is its size:
//
//   flat            the root sends to everybody: n - 1 messages at the root, s bytes in for each.
//                   Inside a host each rank copies out of the root's memory by itself, all at once.
//   tree            binomial: ceil(log2 n) steps; s bytes for each message.
//   scatter_gather  the root sends each a part, all exchange parts: 2 steps; about 2s bytes out of
//                   the root, and 2s/n of them at any time for each.
//   two_level       to one rank of each host, then inside hosts.

#include "comm/collectives/parts.h"
#include "comm/collectives/wire.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

absl::Status Flat(Wire& wire, std::span<std::byte> data, Rank root) {
  if (wire.rank() != root) {
    Incoming in = wire.In(root, data);
    wire.Start(&in);
    return wire.Wait(in);
  }
  std::vector<Outgoing> sent;
  for (int step = 1; step < wire.size(); ++step) sent.push_back(wire.Out(wire.Next(step), data));
  for (Outgoing& message : sent) wire.Start(&message);
  return wire.WaitAll(sent);
}

absl::Status Tree(Wire& wire, std::span<std::byte> data, Rank root) {
  const int place = (wire.rank() - root + wire.size()) % wire.size();
  const auto rank_at = [&](int at) { return (at + root) % wire.size(); };
  int reach = 1;  // How far this rank's own branch goes.
  while (reach < wire.size() && (place & reach) == 0) reach *= 2;
  if (place != 0) {
    Incoming in = wire.In(rank_at(place - reach), data);
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
  }
  std::vector<Outgoing> sent;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance < wire.size()) sent.push_back(wire.Out(rank_at(place + distance), data));
  }
  for (Outgoing& message : sent) wire.Start(&message);
  return wire.WaitAll(sent);
}

absl::Status ScatterGather(Wire& wire, std::span<std::byte> data, Rank root) {
  const std::vector<size_t> offsets = EqualParts(data.size(), wire.size());
  const auto part = [&](Rank rank) {
    return data.subspan(offsets[rank], offsets[rank + 1] - offsets[rank]);
  };
  std::vector<Outgoing> sent;
  if (wire.rank() == root) {
    for (int step = 1; step < wire.size(); ++step) {
      const Rank to = wire.Next(step);
      sent.push_back(wire.Out(to, part(to)));
    }
    for (Outgoing& message : sent) wire.Start(&message);
  } else {
    Incoming in = wire.In(root, part(wire.rank()));
    wire.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(wire.Wait(in));
  }
  // The root has all parts already; what comes to it is what it has.
  if (wire.size() > 32) {
    HLAUNCH_RETURN_IF_ERROR(ShareAround(wire, data.data(), offsets));
  } else {
    HLAUNCH_RETURN_IF_ERROR(ShareParts(wire, data.data(), offsets));
  }
  return wire.WaitAll(sent);
}

absl::Status TwoLevel(Wire& wire, std::span<std::byte> data, Rank root, const Hosts& hosts) {
  // Who speaks for a host: the root for its own, else the lowest rank.
  std::vector<Rank> leaders;
  for (const auto& ranks : hosts.ranks) leaders.push_back(ranks[0]);
  leaders[hosts.host_of[root]] = root;
  const int host = hosts.host_of[wire.rank()];
  if (leaders[host] == wire.rank()) {
    Wire between = wire.Among(leaders);
    const bool in_parts = leaders.size() > 2 && data.size() >= 64 << 10;
    HLAUNCH_RETURN_IF_ERROR(in_parts ? ScatterGather(between, data, hosts.host_of[root])
                                     : Tree(between, data, hosts.host_of[root]));
  }
  Wire inside = wire.Among(hosts.ranks[host]);
  return Flat(inside, data, hosts.index_of[leaders[host]]);
}

}  // namespace

absl::Status RunBroadcast(Wire& wire, const Task& task) {
  const std::span<std::byte> data = task.call.into;
  const Rank root = task.call.root;
  switch (task.algorithm) {
    case Algorithm::kTree:
      return Tree(wire, data, root);
    case Algorithm::kScatterGather:
      return ScatterGather(wire, data, root);
    case Algorithm::kTwoLevel:
      return TwoLevel(wire, data, root, task.hosts);
    default:
      return Flat(wire, data, root);
  }
}

}  // namespace hlaunch
