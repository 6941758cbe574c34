// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/voter/group.h"

namespace hlaunch {

// A group as its leader sees it while its lease holds.
struct GroupView {
  struct Lapsed {
    Incarnation incarnation = 0;
    bool dead = false;  // By proof.
    std::string why;    // For people: "is dead", "has not answered for 15.0 s".
  };
  Incarnation leader = 0;
  VoterMembers members;             // As proposed last.
  VoterMembers decided;             // As decided last.
  std::vector<VoterMembers> open;   // All other groups that were proposed since.
  std::vector<Lapsed> lapsed;       // Members of all these groups that must go, the worst first.
  std::set<Incarnation> answering;  // The leader and those that have answered lately.
  VoterMembers ready;               // Candidates that answer, the best first.
  int size = 1;                     // How many voters there should be.
};

struct MembersVerdict {
  std::optional<VoterMembers> members;  // Set if a change must be proposed.
  std::string reason;                   // Set together with `members`: one line for people.
};

// Decides on the next group. It has one member less or one more, so that each majority of the old
// group shares a member with each of the new one, and it comes only after the former change is
// decided. A change that cannot be decided, since its members do not answer, is taken back, to the
// group before and to no other.
//
// There are two exceptions. If so many members are dead that no majority can answer, all dead ones
// go at once: they elect no leader, and the living ones have promised their votes to this leader.
// And a lapsed member of a group of two goes even if it has just been added: it cannot be elected
// without this leader. Pure.
MembersVerdict DecideMembers(const GroupView& view);

}  // namespace hlaunch
