// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Which nodes measure each other in which round, and what follows: a bad node is told from a bad
// link in O(log n) rounds. Pure.

namespace hlaunch {

struct NodePair {
  int a = 0;  // The lower one.
  int b = 0;
  friend auto operator<=>(const NodePair&, const NodePair&) = default;
};

// What two nodes measured between them.
struct PairResult {
  NodePair pair;
  bool failed = false;    // Nothing came, or not what was sent.
  double latency_us = 0;  // There and back.
  double gbit_s = 0;      // Both ways together.
  bool wrong = false;     // `failed`, and not for want of an answer.
  std::string why = {};   // `failed`: in words.
};

// What a pair sends in one round.
struct PairTest {
  int pings = 200;
  int64_t ping_bytes = 8;
  int blocks = 5;
  int64_t block_bytes = 16 << 20;  // At most.
};

// A pair is bad if it failed, or is so many times worse than the best quarter of all pairs. On a
// busy host a short way is quickly twice as long, so latency counts only where it is long as well.
inline constexpr double kBadPair = 2;
inline constexpr double kLongLatency = 500;  // In us.

// The pairs of the next round after `so_far`, all of which may be measured at once: no node is in
// two of them. None: nothing more is to be learnt.
//
// First neighbours, then a full round across: the slowest with the fastest that proved good, the
// rest with whom is far away. From then on only what is open: a node that was in no good pair
// meets others that were, and a bad pair of two good nodes is measured once more. Up to four
// nodes measure all their pairs.
std::vector<NodePair> NextPairs(int nodes, const std::vector<PairResult>& so_far);

struct PairVerdict {
  std::vector<int> bad_nodes;       // Bad with two others at least that are good themselves.
  std::vector<NodePair> bad_links;  // Bad twice, and both ends are good with others.
  std::vector<int> open;            // In no good pair, and not enough of it to say more.
};

PairVerdict JudgePairs(int nodes, const std::vector<PairResult>& results);

// What a whole test came to.
struct PairReport {
  PairVerdict verdict;
  std::vector<PairResult> results;
  int rounds = 0;
  int64_t messages = 0;
  int64_t bytes = 0;
};

// Measures all pairs of one round, and returns a result for each of them.
using MeasurePairs = std::function<std::vector<PairResult>(const std::vector<NodePair>&)>;

// Goes from round to round until nothing is open or nothing more can be learnt.
PairReport TestPairs(int nodes, const PairTest& test, const MeasurePairs& measure);

}  // namespace hlaunch
