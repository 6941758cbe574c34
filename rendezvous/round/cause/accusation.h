// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/values/round.h"

// Finds the other ranks that a failure's words hold responsible. Pure: uses only text.

namespace hlaunch {

// The ranks that a failed worker names: it waited for them in vain, or lost them. A value.
struct Accusation {
  std::vector<Rank> ranks;
  std::string host;  // Of the rank, if there is only one; empty if the words do not name it.
  std::string did;   // What they did, in one line: "left the group before all_reduce #100".
};

// Returns the accusation in `words`, a message of hlaunch's collectives or of c10d's monitored
// barrier; nothing if it names no rank. A rank in a group other than the default one looks like a
// rank of the job, so the host has to be compared, too.
std::optional<Accusation> AccusationIn(absl::string_view words);

// Returns whether `accusation` is against the worker of `failure`.
bool Accuses(const Accusation& accusation, const WorkerFailure& failure);

}  // namespace hlaunch
