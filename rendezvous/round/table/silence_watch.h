// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/table/membership.h"

namespace hlaunch {

// Knows which nodes people were told to be silent, and tells people when that changes.
//
// Belongs to the thread of its RoundTable.
class SilenceWatch {
 public:
  // Returns what has changed since the last look, one line each: nodes that have been silent for
  // the lease of `policy`, and nodes that are heard again. O(log n) for each silent node.
  std::vector<std::string> Look(const Membership& membership, const JobPolicy& policy, Instant t);

 private:
  struct Silent {
    std::string host;
    Incarnation incarnation = 0;
    Instant since;
  };
  std::map<std::string, Silent> silent_;  // Nodes that people were told of, by node id.
};

}  // namespace hlaunch
