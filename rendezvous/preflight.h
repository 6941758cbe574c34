// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The decision what follows from the checks of a proposed round. Pure.

namespace hlaunch {

// A member's word on the round. A view: what it points to outlives the call.
struct PreflightReport {
  absl::string_view host;
  bool answered = false;
  absl::string_view unfit;  // Why it cannot run the round; empty: it can.
};

struct PreflightVerdict {
  enum class Kind {
    kPass,     // The round may run.
    kExclude,  // Without `excluded` there are still enough nodes: the next round is theirs.
    kFail,     // There are not.
  };
  Kind kind = Kind::kPass;
  std::vector<size_t> excluded;  // Indexes of the nodes at fault, unless kPass.
  std::string reason;            // Set unless kPass; one line.
};

// Decides once all have answered or the time for it is over. `members` are in rank order; the
// first holds the master store, which the others must reach: where none of several does, it is
// at fault and not they. `standing_by` nodes could take places; a round needs `min_nodes`.
PreflightVerdict DecidePreflight(const std::vector<PreflightReport>& members, int standing_by,
                                 int min_nodes);

}  // namespace hlaunch
