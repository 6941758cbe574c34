// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/group.h"

#include <algorithm>

namespace hlaunch {

const VoterMember* FindMember(const VoterMembers& members, Incarnation incarnation) {
  for (const VoterMember& member : members) {
    if (member.incarnation == incarnation) return &member;
  }
  return nullptr;
}

bool SameMembers(const VoterMembers& a, const VoterMembers& b) {
  const auto in_b = [&](const VoterMember& m) { return FindMember(b, m.incarnation) != nullptr; };
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), in_b);
}

VoterMembers Without(const VoterMembers& members, Incarnation incarnation) {
  VoterMembers others;
  for (const VoterMember& member : members) {
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
