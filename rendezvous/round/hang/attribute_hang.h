// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/round/hang/rank_snapshot.h"

namespace hlaunch {

// What holds up the ranks that wait.
enum class HangKind {
  kNone,       // No rank waits, as far as can be seen.
  kBehind,     // Ranks have not come to where the others wait.
  kMismatch,   // Ranks have called different collectives, or with different sizes.
  kCrossed,    // Ranks use groups in different orders: each waits for another.
  kAllInside,  // All ranks of a group have come to the collective, and it does not end.
  kDevice,     // All have come to it, and it has ended on some of their devices.
  kStore,      // All wait for keys in the master store that no rank has set.
  kPeers,      // All wait in calls between two ranks.
  kMpi,        // Ranks wait in calls of MPI; the culprits, if any, are in none.
  kLeft,       // The others have exited with 0, and what is left does nothing that can be seen.
};

// Ranks that called the same thing. A value.
struct SameCall {
  std::string call;  // "all_reduce [4] Float"
  std::vector<Rank> ranks;
};

// The verdict: which ranks hold up the others, and where. A value.
struct HangVerdict {
  HangKind kind = HangKind::kNone;
  std::vector<Rank> culprits;  // The dead first, then in rank order. Empty if none is to blame.
  std::vector<Rank> waiting;   // Ranks in the collective, in the master store, or in send or recv;
                               // kLeft: those that have exited.
  std::string group;           // Its description, else its name. If empty, they wait elsewhere:
  bool for_peers = false;      // in the master store. If true, they wait in send or recv.
  size_t group_size = 0;
  CollectiveCall collective;    // The collective in which they wait.
  bool on_devices = false;      // Their devices do; the ranks themselves may have gone on.
  std::vector<SameCall> calls;  // kMismatch: the rarest first. Else where the ranks are, if known.
  std::string wavefront;        // Unchanged for as long as the same ranks hold up the same thing.
  // If not zero, it is only suspected: so many samples of the ranks' stacks are there, of so many
  // that are needed.
  int samples_needed = 0;
  int samples = 0;
  bool busy = false;  // All culprits compute, read or write, or may wait for such a rank.
};

// Finds which ranks hold up the others, in each part of the job that waits for no other part; the
// part with the most waiting ranks comes first. A rank in a collective waits for the ranks of its
// group that have not come to it, and a rank in send or recv for the one that has not made the
// opposite call. A rank that is waited for and waits for no other is a culprit. If
// devices do the collectives, a rank that has handed them to its device and is elsewhere now waits
// for nobody: a device's wait excuses only a rank that is seen to wait for it. Finds
// nothing if all ranks are stopped, or if a debugger holds a culprit. Unless `ranks` is the
// `whole` job, the other ranks go on, as far as is known, and so does what waits for them. Pure.
std::vector<HangVerdict> AttributeHangs(const std::vector<RankSnapshot>& ranks, bool whole);

// Returns the first of them; of kind kNone if there is none. Requires: `ranks` is the whole job.
HangVerdict AttributeHang(const std::vector<RankSnapshot>& ranks);

}  // namespace hlaunch
