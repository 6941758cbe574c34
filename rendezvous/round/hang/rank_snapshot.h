// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/contract/ids.h"

// What is known of the ranks of a round at one moment. All are plain values.

namespace hlaunch {

// One collective of a process group, as a rank has called it.
struct CollectiveCall {
  int64_t sequence = 0;  // Counted by the group's ranks, from 1.
  std::string op;        // "all_reduce"
  std::string sizes;     // "[1024, 8] Float", of the input.
  bool inside = false;   // The call is not over.
};

// The calls of a rank to send messages to one other rank of a group, or to receive them from it.
struct PeerCalls {
  Rank peer = 0;           // The other one, as the group counts its ranks.
  bool sends = false;      // The rank sends; else it receives.
  int64_t calls = 0;       // Since the group was made; -1 if the recorder has forgotten some.
  int64_t unfinished = 0;  // How many of them are not over.
};

// One process group, as a rank sees it.
struct GroupSnapshot {
  std::string name;                    // Torch's, unique in the job.
  std::string description;             // For people; may be empty.
  std::vector<Rank> members;           // In the group's order; empty if the rank does not know.
  std::vector<CollectiveCall> latest;  // In their order; empty if it has called none.
  // Set if a call returns before it is done, because a device does it later: "nccl". A group may
  // have one backend for each kind of device; each numbers its own collectives.
  std::string backend = {};
  std::vector<PeerCalls> peers = {};  // By peer; empty if they are too many, or not recorded.
  int64_t messages = 0;               // Grows with each call to a single rank.
};

inline constexpr size_t kMaxGroupsOfRank = 256;
inline constexpr size_t kMaxPeersOfGroup = 64;

// True if a collective of the group is not over. Pure.
inline bool IsInside(const GroupSnapshot& group) {
  return std::any_of(group.latest.begin(), group.latest.end(),
                     [](const CollectiveCall& call) { return call.inside; });
}

// One rank.
struct RankSnapshot {
  Rank rank = 0;
  int local_rank = 0;
  std::string host;
  int pid = 0;
  bool ended = false;      // It has exited with 0.
  bool died = false;       // It has ended in any other way.
  bool recorded = false;   // Its flight recorder has answered, now or before: `groups` are known.
  bool hidden = false;     // Its record is too long to be read: it may have called anything.
  bool answers = true;     // It has answered this time.
  bool still = false;      // It has called no collective since the look before, as far as is known.
  bool in_store = false;   // It waits for the master store.
  bool in_p2p = false;     // It waits for one other rank; which one, only `peers` may say.
  bool waits = false;      // Its main thread's stack shows that it waits for other ranks.
  bool on_device = false;  // It runs, and its device has calls to complete: it waits for that.
  char state = '?';        // R, S, D, T … as in proc(5).
  std::string kernel;      // The kernel's function in which it waits; may be empty.
  bool traced = false;     // A debugger holds it.
  bool busy = false;       // It, or a process that it started, computes, reads or writes.
  bool child_works = false;            // Such a process does.
  bool flows = false;                  // Bytes pass through its connections.
  uint64_t moved = 0;                  // Grows while it sends, receives, reads or writes.
  bool holds_interpreter = false;      // Its other threads do not get Python's lock.
  std::vector<std::string> addresses;  // Of its host, that its connections use.
  std::vector<std::string> unheard;    // Addresses that acknowledge nothing that it sends them.
  // Of MPI programs without such a recorder, by what the kernel and their stacks tell:
  bool mpi = false;          // It is one.
  bool spins = false;        // It has run since the look before, and has moved no bytes.
  int samples = 0;           // How often in succession its stack was the same,
  std::string mpi_call;      // in this function of MPI; if empty, in none.
  bool in_one_call = false;  // Since then it has not come back from that call.
  std::string place;         // The user's own line: "load (loader.py:88)"; may be empty.
  std::vector<GroupSnapshot> groups;
};

// True if the rank is known to have called a collective between two looks. Pure.
inline bool GoesOn(const RankSnapshot& rank) {
  return rank.recorded && !rank.still && !rank.ended && !rank.died;
}

// True if a control group holds the rank, as with docker pause. Pure.
inline bool IsFrozen(const RankSnapshot& rank) {
  return rank.kernel == "__refrigerator" || rank.kernel == "do_freezer_trap";
}

// True if a person, a debugger or a control group holds the rank: its threads do not run. Pure.
inline bool IsStopped(const RankSnapshot& rank) {
  return rank.state == 'T' || rank.state == 't' || IsFrozen(rank);
}

}  // namespace hlaunch
