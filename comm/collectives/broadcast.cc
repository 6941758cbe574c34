// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The algorithms by which all ranks get `data` of the root, where s is its size:
//
//   flat            The root sends to every rank: n - 1 messages of s bytes out of the root. Inside
//                   a host all ranks copy out of the root's memory at the same time.
//   tree            A binomial tree: ceil(log2 n) steps; s bytes for each message.
//   scatter_gather  The root sends a part to each rank, then all exchange parts: 2 steps; about 2s
//                   bytes out of the root, in messages of s/n.
//   two_level       The root sends to one rank of each host, which sends to its host.

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
  OutgoingList sent;
  for (int step = 1; step < comm.size(); ++step) sent.push_back(comm.Out(comm.Next(step), data));
  for (Outgoing& message : sent) comm.Start(&message);
  return comm.WaitAll(sent);
}

absl::Status Tree(Communicator& comm, std::span<std::byte> data, Rank root) {
  const int position = (comm.rank() - root + comm.size()) % comm.size();
  const auto rank_at = [&](int at) { return (at + root) % comm.size(); };
  int reach = 1;  // The size of the subtree below this rank.
  while (reach < comm.size() && (position & reach) == 0) reach *= 2;
  if (position != 0) {
    Incoming in = comm.In(rank_at(position - reach), data);
    comm.Start(&in);
    HLAUNCH_RETURN_IF_ERROR(comm.Wait(in));
  }
  OutgoingList sent;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (position + distance < comm.size())
      sent.push_back(comm.Out(rank_at(position + distance), data));
  }
  for (Outgoing& message : sent) comm.Start(&message);
  return comm.WaitAll(sent);
}

absl::Status ScatterGather(Communicator& comm, std::span<std::byte> data, Rank root) {
  const SizeList offsets = EqualParts(data.size(), comm.size());
  const auto part = [&](Rank rank) {
    return data.subspan(offsets[rank], offsets[rank + 1] - offsets[rank]);
  };
  OutgoingList sent;
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
  // The root has all parts already; it receives them again.
  if (comm.size() > 32) {
    HLAUNCH_RETURN_IF_ERROR(ShareAround(comm, data.data(), offsets));
  } else {
    HLAUNCH_RETURN_IF_ERROR(ShareParts(comm, data.data(), offsets));
  }
  return comm.WaitAll(sent);
}

absl::Status TwoLevel(Communicator& comm, std::span<std::byte> data, Rank root,
                      const Hosts& hosts) {
  // One rank of each host: the root for its own host, else the lowest rank.
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
