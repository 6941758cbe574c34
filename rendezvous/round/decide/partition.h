// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/values/round.h"

// Decides what to do if nodes reach the rendezvous but not each other while their workers run.
// Pure.

namespace hlaunch {

// Returns the node ranks that node `rank` of a round of `size` nodes looks at: all others if they
// are few, else those whose distance on the ring of all nodes is a power of two. Either both ends
// of a path look, or neither.
std::vector<int> WaysToLookAt(int rank, int size);

// What one node of the round reports. A value.
struct WaysWord {
  std::string host;
  std::vector<int> unreached = {};  // See NodeUpdate.
  bool heard = true;   // It is connected and not silent; else its report is old and ignored.
  bool stays = false;  // The job cannot go on without it.
};

struct PartitionRule {
  PreflightAction action = PreflightAction::kExclude;
  int standing_by = 0;          // Nodes that could replace others.
  int min_nodes = 1;            // The fewest nodes of a round.
  bool may_restart = false;     // A restart is left.
  bool all_have_spoken = true;  // Waiting is over: a node without a report reaches the others.
};

struct PartitionVerdict {
  enum class Kind {
    kNothing,  // All nodes reach each other.
    kWait,     // One end has reported a cut path and the other has not yet.
    kName,     // People are told `reason`, and the job goes on.
    kExclude,  // The round ends, and the next is without `cut_off`.
    kFail,     // The job ends for `reason`.
  };
  Kind kind = Kind::kNothing;
  std::vector<int> cut_off;  // kExclude: node ranks.
  std::string reason;        // One line.
  std::string of_first;      // The same about the first in `cut_off`: "it is cut off from …".
};

// `nodes` are in rank order. A path between two nodes is cut if both ends say so, else it is open:
// a node that is slow, stopped or wrong proves nothing by itself. Nodes that open paths connect
// form a part. The part with more than half of all nodes stays, and the other nodes are cut off. If
// no part has so many, none is cut off and people are told. People are also told of a cut path
// inside a part, and of what only one end says. With PreflightAction::kFail every cut path ends the
// job.
PartitionVerdict DecidePartition(const std::vector<WaysWord>& nodes, const PartitionRule& rule);

}  // namespace hlaunch
