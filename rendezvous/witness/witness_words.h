// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/witness/group.h"

// What witnesses say to people. Pure.

namespace hlaunch {

// "4.5 s".
std::string SecondsWords(Duration duration);

// "node1, node2"; the incarnation of those that are not among `members`.
std::string NamesOf(const WitnessMembers& members, const std::vector<Incarnation>& those);
std::string NameOfWitness(const WitnessMembers& members, Incarnation incarnation);

}  // namespace hlaunch
