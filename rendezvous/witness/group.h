// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/contract/ids.h"

// What a group of witnesses agrees on: one entry, replaced as a whole. Plain values.

namespace hlaunch {

// Counts the leaders of a group: each term has at most one.
using Term = uint64_t;

// The place of an entry among all that were ever proposed: its leader's term, and how many came
// before it. Of two entries the one with the higher ballot follows from the other, if that one
// was decided.
struct Ballot {
  Term term = 0;
  uint64_t index = 0;
  auto operator<=>(const Ballot&) const = default;
};

// One process of the group. A process that was started anew is another one: it remembers neither
// its votes nor its entry, so it may not stand for the one before.
struct WitnessMember {
  Incarnation incarnation = 0;
  std::string name;     // For people: "node2".
  std::string address;  // Where it answers: "10.0.0.2:29400".
};
using WitnessMembers = std::vector<WitnessMember>;

struct WitnessEntry {
  Ballot ballot;
  uint64_t version = 0;  // Of `record`: counts its changes.
  WitnessMembers members;
  std::string record;
};

// Never changed. Held by the witness and by the messages that carry it.
using SharedEntry = std::shared_ptr<const WitnessEntry>;

// Null if it is none of them.
const WitnessMember* FindMember(const WitnessMembers& members, Incarnation incarnation);
// By incarnation, in any order.
bool SameMembers(const WitnessMembers& a, const WitnessMembers& b);
WitnessMembers Without(const WitnessMembers& members, Incarnation incarnation);

// How many of a group must hold an entry for it to be decided, and vote for a leader.
int Majority(int members);
// How many of a group must withhold their votes for nobody to be elected.
int Blocking(int members);
// How many witnesses a job of so many nodes has: odd, since an even number bears no more losses.
int GroupSize(int nodes);

}  // namespace hlaunch
