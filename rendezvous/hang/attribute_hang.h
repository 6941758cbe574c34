// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/hang/rank_picture.h"

namespace hlaunch {

// What holds up those who wait.
enum class HangKind {
  kNone,       // Nobody waits, as far as can be seen.
  kBehind,     // Ranks have not come to where the others wait.
  kMismatch,   // Ranks have called different collectives, or with different sizes.
  kCrossed,    // Ranks use groups in different orders: each waits for another.
  kAllInside,  // All ranks of a group have come to the collective, and it does not end.
  kStore,      // All wait for keys in the master store that nobody has set.
  kPeers,      // All wait in calls between two ranks.
};

// Ranks that called the same thing. A value.
struct SameCall {
  std::string call;  // "all_reduce [4] Float"
  std::vector<Rank> ranks;
};

// Who is waited for, and where. A value.
struct HangVerdict {
  HangKind kind = HangKind::kNone;
  std::vector<Rank> culprits;  // In their order. Empty: it is nobody's fault.
  std::vector<Rank> waiting;   // Who is in the collective, in the master store, or in send or recv.
  std::string group;           // Its description, else its name; empty: they wait elsewhere,
  bool for_peers = false;      // in send or recv, else in the master store.
  size_t group_size = 0;
  CollectiveCall collective;    // In which they wait.
  std::vector<SameCall> calls;  // kMismatch: the rarest first. kCrossed: where each of them is.
  std::string wavefront;        // The same for as long as the same ranks hold up the same thing.
  bool busy = false;            // All culprits compute, read or write, or may wait for such a rank.
};

// Finds who holds up the others. A rank that is in a collective waits for those of its group that
// have not come to it; who is waited for and waits for nobody is the cause. Nothing is found where
// all are stopped, or a debugger holds who is waited for. Pure.
HangVerdict AttributeHang(const std::vector<RankPicture>& ranks);

}  // namespace hlaunch
