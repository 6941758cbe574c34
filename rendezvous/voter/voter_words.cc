// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/voter_words.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hlaunch {

std::string SecondsWords(Duration duration) {
  return absl::StrFormat("%.1f s", std::chrono::duration<double>(duration).count());
}

std::string NameOfVoter(const VoterMembers& members, Incarnation incarnation) {
  const VoterMember* member = FindMember(members, incarnation);
  return member == nullptr ? absl::StrCat(absl::Hex(incarnation)) : member->name;
}

std::string NamesOf(const VoterMembers& members, const std::vector<Incarnation>& those) {
  return absl::StrJoin(those, ", ", [&](std::string* out, Incarnation incarnation) {
    out->append(NameOfVoter(members, incarnation));
  });
}

}  // namespace hlaunch
