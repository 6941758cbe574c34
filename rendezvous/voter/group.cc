// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/group.h"

#include <algorithm>

namespace hlaunch {

const WitnessMember* FindMember(const WitnessMembers& members, Incarnation incarnation) {
  for (const WitnessMember& member : members) {
    if (member.incarnation == incarnation) return &member;
  }
  return nullptr;
}

bool SameMembers(const WitnessMembers& a, const WitnessMembers& b) {
  const auto in_b = [&](const WitnessMember& m) { return FindMember(b, m.incarnation) != nullptr; };
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), in_b);
}

WitnessMembers Without(const WitnessMembers& members, Incarnation incarnation) {
  WitnessMembers others;
  for (const WitnessMember& member : members) {
    if (member.incarnation != incarnation) others.push_back(member);
  }
  return others;
}

int Majority(int members) { return members / 2 + 1; }

int Blocking(int members) { return members - Majority(members) + 1; }

int GroupSize(int nodes) {
  if (nodes <= 2) return nodes;
  return nodes < 5 ? 3 : 5;
}

}  // namespace hlaunch
