// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// The decision which other ranks a failure's words hold responsible. Pure: text only.

namespace hlaunch {

// Which other ranks a failed worker waited for in vain, or lost. A value.
struct Accusation {
  std::vector<Rank> ranks;
  std::string host;  // Of the rank, if it is one; empty: the words do not name it.
  std::string did;   // "left the group before all_reduce #100", in one line.
};

// What `words` say in the terms of hlaunch's collectives or of c10d's monitored barrier; nothing if
// they name no rank. A rank of a group other than the default one is taken for the job's, so the
// host has to be compared, too.
std::optional<Accusation> AccusationIn(absl::string_view words);

// Whether `accusation` is against the worker of `failure`.
bool Accuses(const Accusation& accusation, const WorkerFailure& failure);

}  // namespace hlaunch
