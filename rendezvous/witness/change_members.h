// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/witness/group.h"

namespace hlaunch {

// A group as its leader sees it while its lease holds.
struct GroupView {
  struct Lapsed {
    Incarnation incarnation = 0;
    bool dead = false;  // By proof.
    std::string why;    // For people: "is dead", "has not answered for 15.0 s".
  };
  Incarnation leader = 0;
  WitnessMembers members;            // As they were proposed last,
  WitnessMembers decided;            // and as they were decided last.
  std::vector<WitnessMembers> open;  // All other groups that were proposed since.
  std::vector<Lapsed> lapsed;        // Those of all these that are to go, the worst first.
  std::set<Incarnation> answering;   // The leader and those that have answered of late.
  WitnessMembers ready;              // Others that answer, the best first.
  int size = 1;                      // How many there should be.
};

struct MembersVerdict {
  std::optional<WitnessMembers> members;  // Set iff a change is to be proposed.
  std::string reason;                     // Then set: one line for people.
};

// The next group: one member less or one more, so that each majority of the one meets each of the
// other, and only once the former change is decided. A change that cannot be decided, since those
// who should do not answer, is taken back: to the group before and to no other.
//
// There are two exceptions. Where too many are dead for a majority to answer, all of these go at
// once: the dead elect nobody, and whoever lives had promised its vote to this leader. And one of
// two that has lapsed goes though it may just have been added: it is elected by nobody without this
// leader. Pure.
MembersVerdict DecideMembers(const GroupView& view);

}  // namespace hlaunch
