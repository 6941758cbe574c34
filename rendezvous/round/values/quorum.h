// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

// Decides whether a round may start, with which nodes and in which order. Pure: no clock, no lock,
// no I/O.

namespace hlaunch {

// A node that wants to be in the next round. A view: what it points to must outlive the call.
struct Candidate {
  absl::string_view node_id;
  absl::string_view host;
  std::optional<int> node_rank;  // Explicit, or the scheduler's index; unique in the job.
  std::optional<int> held_rank;  // Its node rank in the previous round, if it was in it.
  bool present = true;           // Connected and heard of within the lease.
  Instant since;                 // When it began to wait for this round.
};

struct QuorumRule {
  int min_nodes = 1;
  int max_nodes = 1;
  Duration last_call{};  // From min_nodes present to the start, if there are fewer than max_nodes.
  // Size of the previous round, 0 if none. Once all its nodes are back, no other is awaited.
  int previous_nodes = 0;
  int node_multiple = 1;                // The number of nodes in a round is a multiple of this.
  Instant grows_from = Instant::min();  // No round ends for waiting nodes before this.
  // No more nodes than these can come: once they are here, there is no last call.
  int expected_nodes = std::numeric_limits<int>::max();
};

struct QuorumVerdict {
  // Set iff a round may start: indexes of its candidates, in the order of their node ranks.
  std::optional<std::vector<size_t>> order;
  // Set iff only the last call holds the round back: when the last call ends.
  std::optional<Instant> last_call_ends;
  // Always set; one line. It contains no times, so that it changes only when the situation does.
  std::string reason;
};

// Decides whether `candidates` may start a round at `now`.
//
// Nodes keep the node ranks that they held before; then come explicit node ranks; the other nodes
// fill the gaps in natural order of host names (node9 before node10), ties by node id. If there are
// too many candidates, the first max_nodes in that order are taken, and no more than the largest
// multiple of node_multiple.
QuorumVerdict DecideQuorum(const std::vector<Candidate>& candidates, const QuorumRule& rule,
                           Instant now);

// When a new round begins for the nodes that wait outside a running round.
struct GrowthVerdict {
  std::optional<Instant> at;  // Unset if no node waits, there is no room, or too few wait.
  std::string reason;         // Set with `at`, and if too few wait; one line.
  std::string hold;  // Why the round does not begin at once, in a few words; empty if it does.
};

// Decides this for a running round of rule.previous_nodes nodes. The waiting nodes share one new
// round. It begins once they are enough to fill it, or a last call after the first of them came;
// but not before rule.grows_from.
GrowthVerdict DecideGrowth(const std::vector<Candidate>& waiting, const QuorumRule& rule,
                           Instant now);

// Returns whether `a` comes before `b` if runs of digits compare as numbers.
bool NaturalLess(absl::string_view a, absl::string_view b);

// Lists at most kNamesShown names for people, and counts the rest: "a, b, c and 4 more".
inline constexpr size_t kNamesShown = 3;
std::string NameSome(const std::vector<std::string>& names);

}  // namespace hlaunch
