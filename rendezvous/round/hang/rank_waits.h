// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/round/hang/rank_snapshot.h"

// Which rank waits for which, by the calls of all ranks. All are plain values that point into the
// snapshots from which they were made.

namespace hlaunch {

// What all ranks know of one group, by one backend.
struct SharedGroup {
  std::string name;
  std::string description;
  bool on_devices = false;
  std::set<Rank> members;
  std::vector<Rank> order;  // The members as the group counts them; empty if that is not known.
  std::map<Rank, const GroupSnapshot*> snapshots;  // Of ranks that have called a collective of it.
  std::map<Rank, const GroupSnapshot*> messages;   // Of ranks that have called one other rank.

  // Returns a collective that the rank has called; null if it is not known.
  const CollectiveCall* Call(Rank rank, int64_t sequence) const;

  // Returns the number of the last collective that the rank has called; 0 if there is none.
  int64_t LastOf(Rank rank) const;

  // Returns the members that are in that collective.
  std::vector<Rank> Inside(int64_t sequence) const;

  std::string Title() const;  // For people.
};

// The groups of all ranks.
std::vector<SharedGroup> SharedGroups(const std::vector<RankSnapshot>& ranks);

// A rank that waits in a collective, or for a message from or to one other rank. A value.
struct RankWait {
  Rank rank = 0;
  const SharedGroup* group = nullptr;
  const CollectiveCall* call = nullptr;  // Null if it waits for a message:
  Rank peer = 0;                         // of, or to, that rank of the job.
  bool sends = false;
  std::vector<Rank> behind;  // The ranks that it waits for; empty: all have come.
};

// Returns, for each group, the first collective that each rank is in, since the rank's later ones
// wait for that one as well; and each other rank with which it has a message that is not over. Who
// has made the opposite call has come to it: as many calls as are over on this side, and one more.
std::vector<RankWait> RankWaits(const std::vector<SharedGroup>& groups);

// Splits the waits into parts that have no rank, and no group's collectives, in common.
std::vector<std::vector<RankWait>> ConnectedParts(const std::vector<RankWait>& waits);

// "all_reduce number 4 of dp", "recv from rank 1, which has called no send to it". `all` are the
// waits of all ranks.
std::string DescribeWait(const RankWait& wait, const std::vector<RankWait>& all);

}  // namespace hlaunch
