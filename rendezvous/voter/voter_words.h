// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/voter/group.h"

// Texts of voters for people. Pure.

namespace hlaunch {

// "4.5 s".
std::string SecondsWords(Duration duration);

// Returns "node1, node2". A voter that is not in `members` is named by its incarnation.
std::string NamesOf(const VoterMembers& members, const std::vector<Incarnation>& those);
std::string NameOfVoter(const VoterMembers& members, Incarnation incarnation);

}  // namespace hlaunch
