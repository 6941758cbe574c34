// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/values/round.h"

// Decides what follows from the checks of a proposed round. Pure.

namespace hlaunch {

// What a member answered about the round. A view: what it points to must outlive the call.
struct PreflightReport {
  absl::string_view host;
  bool answered = false;
  absl::string_view unfit;             // Why it cannot run the round; empty if it can.
  const NodeHealth* health = nullptr;  // Null if nothing is known.
  bool suspected = false;              // It was bad in the measurement just before this one.
  // The job cannot do without it: it is not excluded for being bad.
  bool stays = false;
};

struct PreflightRule {
  int standing_by = 0;  // Nodes outside the round that could take a place in it.
  int min_nodes = 1;    // Nodes that a round needs.
  PreflightAction action = PreflightAction::kExclude;
  int may_exclude = 1;          // At most this many bad nodes are excluded.
  bool measured_again = false;  // This is the second measurement.
};

struct PreflightVerdict {
  enum class Kind {
    kPass,     // The round may run.
    kAgain,    // `nodes` may be bad, or had bad luck: another measurement will tell.
    kExclude,  // Enough nodes remain without `nodes`: they form the next round.
    kFail,     // Too few remain, or the policy ends the job because of `nodes`.
  };
  Kind kind = Kind::kPass;
  bool bad = false;           // kExclude: `nodes` could run the round, but not well.
  std::vector<size_t> nodes;  // Indexes of the nodes at fault, unless kPass.
  std::string reason;         // One line. kPass: what is worth reporting, or empty.
};

// Decides once all members have answered, or their time is over. `members` are in rank order.
//
// First, it looks for members that cannot run the round. The first member holds the master store,
// which the others must reach: if there are several others and none of them reaches it, or if it
// and all of them are silent, the first member is at fault. Then it looks for members that would
// run the round badly. One that names a fault of its own, or that most members found to be wrong,
// counts at once. One that is bad compared with others of the same hardware, or that most members
// found slow or missing, must be bad twice. Bad members do not end the job unless the policy says
// so: if the job needs all its nodes, or if more are bad than may be excluded, the round runs and
// they are named.
PreflightVerdict DecidePreflight(const std::vector<PreflightReport>& members,
                                 const PreflightRule& rule);

}  // namespace hlaunch
