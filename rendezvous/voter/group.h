// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/contract/ids.h"

// What a group of voters agrees on: one entry, replaced as a whole. Plain values.

namespace hlaunch {

// Counts the leaders of a group: each term has at most one.
using Term = uint64_t;

// The place of an entry among all entries ever proposed: its leader's term, and how many came
// before it. If an entry was decided, all entries with a higher ballot follow from it.
struct Ballot {
  Term term = 0;
  uint64_t index = 0;
  auto operator<=>(const Ballot&) const = default;
};

// One process of the group. A process that was started again is a different member: it remembers
// neither its votes nor its entry, so it must not act for the former one.
struct VoterMember {
  Incarnation incarnation = 0;
  std::string name;     // For people: "node2".
  std::string address;  // Where it answers: "10.0.0.2:29400".
};
using VoterMembers = std::vector<VoterMember>;

struct VoterEntry {
  Ballot ballot;
  uint64_t version = 0;  // Counts the changes of `record`.
  VoterMembers members;
  std::string record;
};

// An entry that never changes. The voter shares it with the messages that carry it.
using SharedEntry = std::shared_ptr<const VoterEntry>;

// Returns null if `members` has no such member.
const VoterMember* FindMember(const VoterMembers& members, Incarnation incarnation);
// Compares incarnations, in any order.
bool SameMembers(const VoterMembers& a, const VoterMembers& b);
VoterMembers Without(const VoterMembers& members, Incarnation incarnation);

// Returns how many of a group must hold an entry to decide it, or must vote to elect a leader.
int Majority(int members);
// Returns how many of a group must withhold their votes to prevent an election.
int Blocking(int members);
// Returns how many voters a job of `nodes` nodes has. It is odd for more than two nodes, since
// an even number would survive no more losses.
int GroupSize(int nodes);

}  // namespace hlaunch
