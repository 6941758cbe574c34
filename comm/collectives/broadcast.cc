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

#include "comm/collectives/communicator.h"
#include "comm/collectives/parts.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

absl::Status Flat(Communicator& comm, std::span<std::byte> data, Rank root) {
  if (comm.rank() != root) {
    Incoming in = comm.In(root, data);
    comm.Start(&in);
    return comm.Wait(in);
  }
  std::vector<Outgoing> sent;
  for (int step = 1; step < comm.size(); ++step) sent.push_back(comm.Out(comm.Next(step), data));
  for (Outgoing& message : sent) comm.Start(&message);
  return comm.WaitAll(sent);
}

absl::Status Tree(Communicator& comm, std::span<std::byte> data, Rank root) {
  const int place = (comm.rank() - root + comm.size()) % comm.size();
  const auto rank_at = [&](int at) { return (at + root) % comm.size(); };
  int reach = 1;  // How far this rank's own branch goes.
  while (reach < comm.size() && (place & reach) == 0) reach *= 2;
  if (place != 0) {
    Incoming in = comm.In(rank_at(place - reach), data);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
  }
  std::vector<Outgoing> sent;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance < comm.size()) sent.push_back(comm.Out(rank_at(place + distance), data));
  }
  for (Outgoing& message : sent) comm.Start(&message);
  return comm.WaitAll(sent);
}

absl::Status ScatterGather(Communicator& comm, std::span<std::byte> data, Rank root) {
  const std::vector<size_t> offsets = EqualParts(data.size(), comm.size());
  const auto part = [&](Rank rank) {
    return data.subspan(offsets[rank], offsets[rank + 1] - offsets[rank]);
  };
  std::vector<Outgoing> sent;
  if (comm.rank() == root) {
    for (int step = 1; step < comm.size(); ++step) {
      const Rank to = comm.Next(step);
      sent.push_back(comm.Out(to, part(to)));
    }
    for (Outgoing& message : sent) comm.Start(&message);
  } else {
    Incoming in = comm.In(root, part(comm.rank()));
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
  }
  // The root has all parts already; what comes to it is what it has.
  if (comm.size() > 32) {
    HLAUNCH_RETURN_IF_ERROR(ShareAround(comm, data.data(), offsets));
  } else {
    HLAUNCH_RETURN_IF_ERROR(ShareParts(comm, data.data(), offsets));
  }
  return comm.WaitAll(sent);
}

absl::Status TwoLevel(Communicator& comm, std::span<std::byte> data, Rank root,
                      const Hosts& hosts) {
  // Who speaks for a host: the root for its own, else the lowest rank.
  std::vector<Rank> leaders;
  for (const auto& ranks : hosts.ranks) leaders.push_back(ranks[0]);
  leaders[hosts.host_of[root]] = root;
  const int host = hosts.host_of[comm.rank()];
  if (leaders[host] == comm.rank()) {
    Communicator between = comm.Among(leaders);
    const bool in_parts = leaders.size() > 2 && data.size() >= 64 << 10;
    HLAUNCH_RETURN_IF_ERROR(in_parts ? ScatterGather(between, data, hosts.host_of[root])
                                     : Tree(between, data, hosts.host_of[root]));
  }
  Communicator inside = comm.Among(hosts.ranks[host]);
  return Flat(inside, data, hosts.index_of[leaders[host]]);
}

}  // namespace

absl::Status RunBroadcast(Communicator& comm, const Task& task) {
  const std::span<std::byte> data = task.call.into;
  const Rank root = task.call.root;
  switch (task.algorithm) {
    case Algorithm::kTree:
      return Tree(comm, data, root);
    case Algorithm::kScatterGather:
      return ScatterGather(comm, data, root);
    case Algorithm::kTwoLevel:
      return TwoLevel(comm, data, root, task.hosts);
    default:
      return Flat(comm, data, root);
  }
}

}  // namespace hlaunch
