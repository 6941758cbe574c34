// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Plans which nodes measure each other in which round, and judges the results: it tells a bad node
// from a bad link in O(log n) rounds. Pure.

namespace hlaunch {

struct NodePair {
  int a = 0;  // The lower node number.
  int b = 0;
  friend auto operator<=>(const NodePair&, const NodePair&) = default;
};

// What two nodes measured between them.
struct PairResult {
  NodePair pair;
  bool failed = false;    // Nothing arrived, or wrong data did.
  double latency_us = 0;  // Round trip.
  double gbit_s = 0;      // Both directions together.
  bool wrong = false;     // If `failed`: wrong data came, not just no answer.
  std::string why = {};   // If `failed`: the reason, in words.
};

// What a pair sends in one round.
struct PairTest {
  int pings = 200;
  int64_t ping_bytes = 8;
  int blocks = 5;
  int64_t block_bytes = 16 << 20;  // The largest block.
};

// A pair is bad if it failed, or if it is this many times worse than the best quarter of all pairs.
// On a busy host the latency of a short path easily doubles, so latency counts only if it is also
// long in absolute terms.
inline constexpr double kBadPair = 2;
inline constexpr double kLongLatency = 500;  // Microseconds.

// Returns the pairs of the next round after `so_far`. They may all be measured at once: no node is
// in two of them. Empty if nothing more can be learnt.
//
// The first round pairs neighbours. The second pairs all nodes with distant ones; a node that is
// not yet known to be good meets the fastest good ones. Later rounds settle only open questions: a
// node that was in no good pair meets nodes that were, and a bad pair of two good nodes is measured
// once more. Up to four nodes measure all their pairs.
std::vector<NodePair> NextPairs(int nodes, const std::vector<PairResult>& so_far);

struct PairVerdict {
  std::vector<int> bad_nodes;       // Bad with at least two nodes that are good themselves.
  std::vector<NodePair> bad_links;  // Bad twice, while both ends are good with others.
  std::vector<int> open;            // In no good pair, but with too few voters for a verdict.
};

PairVerdict JudgePairs(int nodes, const std::vector<PairResult>& results);

// The result of a whole test.
struct PairReport {
  PairVerdict verdict;
  std::vector<PairResult> results;
  int rounds = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
};

// Measures all pairs of one round and returns a result for each of them.
using MeasurePairs = std::function<std::vector<PairResult>(const std::vector<NodePair>&)>;

// Runs rounds until nothing is open or nothing more can be learnt.
PairReport TestPairs(int nodes, const PairTest& test, const MeasurePairs& measure);

}  // namespace hlaunch
