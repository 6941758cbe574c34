// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// The decision what follows from the checks of a proposed round. Pure.

namespace hlaunch {

// A member's word on the round. A view: what it points to outlives the call.
struct PreflightReport {
  absl::string_view host;
  bool answered = false;
  absl::string_view unfit;             // Why it cannot run the round; empty: it can.
  const NodeHealth* health = nullptr;  // Nothing: nothing is known.
  bool suspected = false;              // It was bad in the measurement just before this one.
  bool stays = false;  // Without it there is no job: it is not excluded for being bad.
};

struct PreflightRule {
  int standing_by = 0;  // Nodes that could take places.
  int min_nodes = 1;    // A round needs.
  PreflightAction action = PreflightAction::kExclude;
  int may_exclude = 1;          // Nodes that are bad, and no more.
  bool measured_again = false;  // This is the second measurement.
};

struct PreflightVerdict {
  enum class Kind {
    kPass,     // The round may run.
    kAgain,    // `nodes` may be bad, or had bad luck: another measurement will tell.
    kExclude,  // Without `nodes` there are still enough: the next round is theirs.
    kFail,     // There are not, or the job is not to go on with `nodes`.
  };
  Kind kind = Kind::kPass;
  bool bad = false;           // kExclude: they could run, but not well.
  std::vector<size_t> nodes;  // Indexes of the nodes at fault, unless kPass.
  std::string reason;         // kPass: what is worth a word, or empty; one line.
};

// Decides once all have answered or the time for it is over. `members` are in rank order.
//
// First, who cannot run the round: the first member holds the master store, which the others must
// reach; where none of several does, it is at fault and not they. Then, who would run it badly:
// by their own word (a fault), at once; by comparison with the others of the same hardware, if
// they are bad twice. For that the job never ends by itself, unless it was told to: if the
// job needs all its nodes, or more are bad than may be excluded, it runs, and they are named.
PreflightVerdict DecidePreflight(const std::vector<PreflightReport>& members,
                                 const PreflightRule& rule);

}  // namespace hlaunch
