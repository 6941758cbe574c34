// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

// The decision whether a round may start, with whom and in which order. Pure: no clock, no
// lock, no I/O.

namespace hlaunch {

// A node that wants to be in the next round. A view: what it points to outlives the call.
struct Candidate {
  absl::string_view node_id;
  absl::string_view host;
  std::optional<int> node_rank;  // Explicit, or the scheduler's index; unique in the job.
  std::optional<int> held_rank;  // In the round before, if it was in it.
  bool present = true;           // Connected and heard of within the lease.
  Instant since;                 // When it began to wait for this round.
};

struct QuorumRule {
  int min_nodes = 1;
  int max_nodes = 1;
  Duration last_call{};  // From min_nodes present to the start, if fewer than max_nodes.
  int previous_nodes =
      0;  // Size of the round before, 0 if none: once all are back, none is awaited.
  int node_multiple = 1;                // A round has a multiple of so many nodes.
  Instant grows_from = Instant::min();  // No round ends before that for nodes that wait.
};

struct QuorumVerdict {
  // Set iff a round may start: indexes of its candidates, in the order of their node ranks.
  std::optional<std::vector<size_t>> order;
  // Set iff only the last call holds the round back: when that ends.
  std::optional<Instant> last_call_ends;
  // Always set; one line. Without times, so that it changes only when the matter does.
  std::string reason;
};

// Decides whether `candidates` may start a round at `now`.
//
// Node ranks: those held before; then the explicit ones; the rest fills the gaps in natural
// order of host names (node9 before node10), ties by node id. Of too many candidates the first
// max_nodes in that order are taken, and no more than the largest multiple of node_multiple.
QuorumVerdict DecideQuorum(const std::vector<Candidate>& candidates, const QuorumRule& rule,
                           Instant now);

// When the nodes that wait outside a running round get into it, which takes a new round.
struct GrowthVerdict {
  std::optional<Instant> at;  // Unset if nobody waits, there is no room, or they are too few.
  std::string reason;         // Set with `at`, and where they are too few; one line.
  std::string hold;           // Why not at once, in a few words; empty: at once.
};

// Decides for a round of rule.previous_nodes that runs. The ones that wait share a new round:
// it begins once there are enough of them to fill it, or the last call after the first came, and
// not before rule.grows_from.
GrowthVerdict DecideGrowth(const std::vector<Candidate>& waiting, const QuorumRule& rule,
                           Instant now);

// Whether `a` comes before `b` where runs of digits compare as numbers.
bool NaturalLess(absl::string_view a, absl::string_view b);

// "a, b, c and 4 more": lists for people are short and counted.
inline constexpr size_t kNamesShown = 3;
std::string NameSome(const std::vector<std::string>& names);

}  // namespace hlaunch
