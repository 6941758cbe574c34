// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/pair_plan.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A network with bad nodes and links, and a few percent of noise.
class Network {
 public:
  explicit Network(int nodes, uint64_t seed = 1) : nodes_(nodes), random_(seed) {}

  std::set<int> slow, dead;
  std::set<NodePair> bad_links;

  PairReport Test() {
    return TestPairs(nodes_, PairTest(), [this](const std::vector<NodePair>& pairs) {
      std::set<int> busy;
      std::vector<PairResult> results;
      for (const NodePair& pair : pairs) {
        EXPECT_LT(pair.a, pair.b);
        EXPECT_GE(pair.a, 0);
        EXPECT_LT(pair.b, nodes_);
        EXPECT_TRUE(busy.insert(pair.a).second && busy.insert(pair.b).second);
        results.push_back(Measure(pair));
      }
      return results;
    });
  }

 private:
  PairResult Measure(const NodePair& pair) {
    std::uniform_real_distribution<double> noise(0.95, 1.05);
    PairResult result{pair, dead.contains(pair.a) || dead.contains(pair.b), 10 * noise(random_),
                      200 * noise(random_)};
    if (slow.contains(pair.a) || slow.contains(pair.b) || bad_links.contains(pair)) {
      result.gbit_s /= 4;
    }
    return result;
  }

  const int nodes_;
  std::mt19937_64 random_;
};

TEST(NextPairs, BeginsWithNeighboursAndGoesAcross) {
  EXPECT_THAT(NextPairs(1, {}), IsEmpty());
  EXPECT_THAT(NextPairs(6, {}), ElementsAre(NodePair{0, 1}, NodePair{2, 3}, NodePair{4, 5}));
  std::vector<PairResult> results;
  for (const NodePair& pair : NextPairs(6, {})) results.push_back({pair, false, 10, 200});
  EXPECT_THAT(NextPairs(6, results), ElementsAre(NodePair{0, 3}, NodePair{1, 4}, NodePair{2, 5}));
}

TEST(NextPairs, LetsFourNodesMeasureAllPairs) {
  for (int nodes : {2, 3, 4}) {
    std::set<NodePair> seen;
    for (const PairResult& result : Network(nodes).Test().results) {
      EXPECT_TRUE(seen.insert(result.pair).second);
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(nodes * (nodes - 1) / 2));
  }
}

TEST(TestPairs, EndsAfterTwoRoundsWhereNothingIsWrong) {
  for (int nodes : {5, 8, 33, 100, 1024}) {
    const PairReport report = Network(nodes).Test();
    EXPECT_THAT(report.verdict.bad_nodes, IsEmpty()) << nodes;
    EXPECT_THAT(report.verdict.bad_links, IsEmpty()) << nodes;
    EXPECT_THAT(report.verdict.open, IsEmpty()) << nodes;
    EXPECT_EQ(report.rounds, 2) << nodes;
  }
}

TEST(TestPairs, FindsOneBadNodeOrOneBadLinkOfAnyNumberOfNodes) {
  std::mt19937_64 random(7);
  for (int nodes = 3; nodes <= 1024; nodes = nodes < 40 ? nodes + 1 : nodes * 3 / 2) {
    for (int run = 0; run < 4; ++run) {
      const int planted = static_cast<int>(random() % static_cast<uint64_t>(nodes));
      Network with_node(nodes, random());
      (run % 2 == 0 ? with_node.slow : with_node.dead).insert(planted);
      const PairVerdict node = with_node.Test().verdict;
      EXPECT_THAT(node.bad_nodes, ElementsAre(planted)) << nodes;
      EXPECT_THAT(node.bad_links, IsEmpty()) << nodes;
      EXPECT_THAT(node.open, IsEmpty()) << nodes;
    }
    Network with_link(nodes, random());
    const NodePair link = NextPairs(nodes, {}).back();  // A link that is measured.
    with_link.bad_links.insert(link);
    const PairVerdict verdict = with_link.Test().verdict;
    EXPECT_THAT(verdict.bad_links, ElementsAre(link)) << nodes;
    EXPECT_THAT(verdict.bad_nodes, IsEmpty()) << nodes;
  }
}

TEST(TestPairs, FindsManyBadNodesAndLinksInFewRounds) {
  std::mt19937_64 random(11);
  for (int run = 0; run < 100; ++run) {
    const int nodes = 16 + static_cast<int>(random() % 1000);
    Network network(nodes, random());
    for (int i = 0; i < nodes / 8; ++i) {
      network.slow.insert(static_cast<int>(random() % static_cast<uint64_t>(nodes)));
    }
    const auto neighbours = NextPairs(nodes, {});
    for (int i = 0; i < 2; ++i) {
      const NodePair link = neighbours[random() % neighbours.size()];
      if (!network.slow.contains(link.a) && !network.slow.contains(link.b)) {
        network.bad_links.insert(link);
      }
    }
    const PairReport report = network.Test();
    EXPECT_EQ(std::set<int>(report.verdict.bad_nodes.begin(), report.verdict.bad_nodes.end()),
              network.slow);
    EXPECT_EQ(std::set<NodePair>(report.verdict.bad_links.begin(), report.verdict.bad_links.end()),
              network.bad_links);
    EXPECT_THAT(report.verdict.open, IsEmpty());
    EXPECT_LE(report.rounds, 4 + std::ceil(std::log2(nodes)));
  }
}

TEST(TestPairs, ComesToAnEndAndBlamesNobodyWhereNothingWorks) {
  for (int nodes : {2, 3, 5, 64, 500}) {
    Network network(nodes);
    for (int node = 0; node < nodes; ++node) network.dead.insert(node);
    const PairReport report = network.Test();
    EXPECT_THAT(report.verdict.bad_nodes, IsEmpty());
    EXPECT_EQ(report.verdict.open.size(), static_cast<size_t>(nodes));
    EXPECT_LE(report.rounds, 4 + std::ceil(std::log2(nodes)));
  }
}

TEST(TestPairs, ProvesNothingWithTwo) {
  Network network(2);
  network.slow.insert(1);
  const PairReport report = network.Test();
  EXPECT_THAT(report.verdict.bad_nodes, IsEmpty());
  EXPECT_EQ(report.rounds, 1);
}

TEST(TestPairs, CountsWhatItCosts) {
  for (int nodes : {16, 1024}) {
    const PairReport report = Network(nodes).Test();
    const int64_t pairs = 2 * nodes / 2;  // Two rounds.
    EXPECT_EQ(report.messages, pairs * 2 * 205);
    EXPECT_EQ(report.bytes, pairs * 2 * (1600 + 5 * (int64_t{16} << 20)));
    Network bad(nodes);
    bad.slow.insert(nodes / 2);
    // The open questions concern a node and its partner, however many nodes there are.
    EXPECT_LE(bad.Test().results.size(), static_cast<size_t>(pairs + 4));
  }
}

}  // namespace
}  // namespace hlaunch
