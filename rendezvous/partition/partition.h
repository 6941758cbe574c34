// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/round.h"

// The decision what follows where nodes reach the rendezvous and not each other, while their
// workers run. Pure.

namespace hlaunch {

// The node ranks that node `rank` of a round of `size` looks at: all others if they are few, else
// those that are a power of two away on the ring of all. Either both ends of a way look, or none.
std::vector<int> WaysToLookAt(int rank, int size);

// What one node of the round says. A value.
struct WaysWord {
  std::string host;
  std::vector<int> unreached = {};  // See NodeUpdate.
  bool heard = true;   // It is here and not silent; else its words are old and count for nothing.
  bool stays = false;  // Without it there is no job.
};

struct PartitionRule {
  PreflightAction action = PreflightAction::kExclude;
  int standing_by = 0;          // Nodes that could take places.
  int min_nodes = 1;            // A round needs.
  bool may_restart = false;     // A restart is left.
  bool all_have_spoken = true;  // Who has not yet said that it misses another does not.
};

struct PartitionVerdict {
  enum class Kind {
    kNothing,  // All reach each other.
    kWait,     // One end of a way has spoken and the other has not yet.
    kName,     // People are told `reason`, and the job goes on.
    kExclude,  // The round ends, and the next is without `cut_off`.
    kFail,     // The job ends for `reason`.
  };
  Kind kind = Kind::kNothing;
  std::vector<int> cut_off;  // kExclude: node ranks.
  std::string reason;        // One line.
  std::string of_first;      // The same, of the first in `cut_off`: "it is cut off from …".
};

// `nodes` are in rank order. A way is cut if both of its ends say so, and open if they say nothing:
// a node that is slow, stopped or wrong proves nothing by itself. Nodes between which no way is
// open are parts; the one with more than half of all nodes stays, and the others are cut off. Of
// two equal parts none is: they are named. So is a cut way between nodes of one part, and what
// only one end says.
PartitionVerdict DecidePartition(const std::vector<WaysWord>& nodes, const PartitionRule& rule);

}  // namespace hlaunch
