// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/pair_plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace hlaunch {
namespace {

constexpr int kSmall = 4;      // Up to this many nodes measure all pairs.
constexpr size_t kVoters = 2;  // Good nodes that must have found a node bad.
constexpr int kLeastRounds = 4;

NodePair Pair(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

// The value that the best quarter of the pairs reaches. `better` sorts the better value first.
template <typename Better>
double Reference(std::vector<double> values, Better better) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end(), better);
  return values[(values.size() - 1) / 4];
}

// What the results say about nodes and pairs.
class Evidence {
 public:
  Evidence(int nodes, const std::vector<PairResult>& results) : nodes_(nodes), speed_(Size(), 0) {
    std::vector<double> latencies, speeds;
    for (const PairResult& result : results) {
      if (result.failed) continue;
      latencies.push_back(result.latency_us);
      speeds.push_back(result.gbit_s);
    }
    const double latency = Reference(latencies, std::less<>());
    const double speed = Reference(speeds, std::greater<>());
    good_.assign(Size(), false);
    for (const PairResult& result : results) {
      const bool bad = result.failed || result.gbit_s * kBadPair < speed ||
                       result.latency_us > std::max(latency * kBadPair, kLongLatency);
      auto& [times_bad, times] = tried_[result.pair];
      times_bad += bad ? 1 : 0;
      ++times;
      for (const int node : {result.pair.a, result.pair.b}) {
        if (!bad) good_[Index(node)] = true;
        speed_[Index(node)] = std::max(speed_[Index(node)], bad ? 0 : result.gbit_s);
      }
    }
  }

  bool Good(int node) const { return good_[Index(node)]; }
  double Speed(int node) const { return speed_[Index(node)]; }
  bool Tried(int a, int b) const { return tried_.contains(Pair(a, b)); }

  // Links that were bad at least `times` times and never good, while both ends are good with
  // others.
  std::vector<NodePair> BadLinks(int times) const {
    std::vector<NodePair> links;
    for (const auto& [pair, tries] : tried_) {
      const bool bad = tries.first == tries.second;
      if (bad && tries.second >= times && Good(pair.a) && Good(pair.b)) links.push_back(pair);
    }
    return links;
  }

  // Nodes in no good pair: with enough good nodes as voters if `proven`, else with too few.
  std::vector<int> NotGood(bool proven) const {
    std::vector<size_t> voters(Size(), 0);
    for (const auto& [pair, tries] : tried_) {
      if (Good(pair.b)) ++voters[Index(pair.a)];
      if (Good(pair.a)) ++voters[Index(pair.b)];
    }
    std::vector<int> found;
    for (int node = 0; node < nodes_; ++node) {
      const bool enough = voters[Index(node)] >= kVoters;
      if (!Good(node) && enough == proven) found.push_back(node);
    }
    return found;
  }

 private:
  static size_t Index(int node) { return static_cast<size_t>(node); }
  size_t Size() const { return static_cast<size_t>(nodes_); }

  const int nodes_;
  std::vector<bool> good_;     // The node was in a good pair, so a bad pair is not its fault.
  std::vector<double> speed_;  // Speed in its best good pair.
  std::map<NodePair, std::pair<int, int>> tried_;  // Times bad, times tried.
};

// Builds the pairs of one round and keeps which nodes are still free.
class Pairing {
 public:
  explicit Pairing(int nodes) : taken_(static_cast<size_t>(nodes), false) {}
  bool Free(int node) const { return !taken_[static_cast<size_t>(node)]; }
  void Take(int a, int b) {
    taken_[static_cast<size_t>(a)] = taken_[static_cast<size_t>(b)] = true;
    pairs.push_back(Pair(a, b));
  }

  // Pairs `node` with the first node of `others` that is free and that it has not met.
  bool Meet(int node, const std::vector<int>& others, const Evidence& evidence) {
    for (const int other : others) {
      if (!Free(node) || other == node || !Free(other) || evidence.Tried(node, other)) continue;
      Take(node, other);
      return true;
    }
    return false;
  }

  std::vector<NodePair> pairs;

 private:
  std::vector<bool> taken_;
};

// The r-th round of a tournament: each pair comes once in n - 1 rounds, or n if n is odd.
std::vector<NodePair> TournamentRound(int nodes, int r) {
  const int seats = nodes + nodes % 2;  // The last one may stay empty.
  if (r >= seats - 1) return {};
  std::vector<int> circle(static_cast<size_t>(seats) - 1);
  for (int i = 0; i < seats - 1; ++i) circle[static_cast<size_t>(i)] = (i + r) % (seats - 1);
  circle.push_back(seats - 1);
  std::vector<NodePair> pairs;
  for (int i = 0; i < seats / 2; ++i) {
    const int a = circle[static_cast<size_t>(i)];
    const int b = i == 0 ? seats - 1 : circle[static_cast<size_t>(seats - 1 - i)];
    if (a < nodes && b < nodes) pairs.push_back(Pair(a, b));
  }
  return pairs;
}

// The nodes that proved good, the fastest first.
std::vector<int> Fastest(int nodes, const Evidence& evidence) {
  std::vector<int> order;
  for (int node = 0; node < nodes; ++node) {
    if (evidence.Good(node)) order.push_back(node);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return evidence.Speed(a) > evidence.Speed(b); });
  return order;
}

}  // namespace

std::vector<NodePair> NextPairs(int nodes, const std::vector<PairResult>& so_far) {
  if (nodes < 2) return {};
  const size_t in_a_round = static_cast<size_t>(nodes) / 2;
  if (nodes <= kSmall) {
    return TournamentRound(nodes, static_cast<int>(so_far.size() / in_a_round));
  }
  Pairing round(nodes);
  if (so_far.empty()) {
    for (int node = 0; node + 1 < nodes; node += 2) round.Take(node, node + 1);
    return round.pairs;
  }
  const Evidence evidence(nodes, so_far);
  const std::vector<int> fastest = Fastest(nodes, evidence);
  const std::vector<int> open = evidence.NotGood(/*proven=*/false);
  for (const int node : open) {
    if (round.Meet(node, fastest, evidence)) continue;
    round.Meet(node, open, evidence);
  }
  for (const NodePair& link : evidence.BadLinks(1)) {
    const bool sure = std::count_if(so_far.begin(), so_far.end(), [&](const PairResult& result) {
                        return result.pair == link;
                      }) > 1;
    if (!sure && round.Free(link.a) && round.Free(link.b)) round.Take(link.a, link.b);
  }
  if (so_far.size() > in_a_round) return round.pairs;
  for (int node = 0; node < nodes; ++node) {  // Half of all nodes away, or the next.
    std::vector<int> far(static_cast<size_t>(nodes));
    if (!round.Free(node)) continue;
    std::iota(far.begin(), far.end(), node + nodes / 2);
    for (int& other : far) other %= nodes;
    round.Meet(node, far, evidence);
  }
  return round.pairs;
}

PairVerdict JudgePairs(int nodes, const std::vector<PairResult>& results) {
  const Evidence evidence(nodes, results);
  PairVerdict verdict;
  // With so few nodes no pair was measured twice.
  verdict.bad_links = evidence.BadLinks(nodes <= kSmall ? 1 : 2);
  verdict.bad_nodes = evidence.NotGood(/*proven=*/true);
  verdict.open = evidence.NotGood(/*proven=*/false);
  return verdict;
}

PairReport TestPairs(int nodes, const PairTest& test, const MeasurePairs& measure) {
  PairReport report;
  const int limit = kLeastRounds + static_cast<int>(std::ceil(std::log2(std::max(2, nodes))));
  while (report.rounds < limit) {
    const std::vector<NodePair> pairs = NextPairs(nodes, report.results);
    if (pairs.empty()) break;
    const std::vector<PairResult> results = measure(pairs);
    report.results.insert(report.results.end(), results.begin(), results.end());
    ++report.rounds;
    // Both nodes of a pair send and receive.
    const auto count = static_cast<int64_t>(pairs.size());
    report.messages += count * 2 * (test.pings + test.blocks);
    report.bytes += count * 2 * (test.pings * test.ping_bytes + test.blocks * test.block_bytes);
  }
  report.verdict = JudgePairs(nodes, report.results);
  return report;
}

}  // namespace hlaunch
