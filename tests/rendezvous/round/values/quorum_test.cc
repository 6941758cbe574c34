// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/quorum.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Optional;

constexpr Instant kStart = Instant{} + seconds(1000);

Candidate Here(absl::string_view host, std::optional<int> node_rank = {},
               std::optional<int> held = {}) {
  return {host, host, node_rank, held, true, kStart};
}

Candidate Silent(absl::string_view host, std::optional<int> node_rank = {}) {
  Candidate candidate = Here(host, node_rank);
  candidate.present = false;
  return candidate;
}

QuorumRule Exactly(int n) { return {n, n, seconds(30), 0}; }

TEST(DecideQuorum, SaysForWhomItWaits) {
  struct Case {
    std::vector<Candidate> candidates;
    QuorumRule rule;
    std::string reason;
  };
  const Case cases[] = {
      {{}, Exactly(2), "waiting for 2 of 2 nodes"},
      {{Here("a")}, Exactly(2), "waiting for 1 of 2 nodes; here: a"},
      {{Here("a", 0)}, Exactly(2), "waiting for 1 of 2 nodes: node rank 1 has not joined; here: a"},
      {{Here("a", 1)},
       Exactly(8),
       "waiting for 7 of 8 nodes: node ranks 0, 2, 3 and 4 more have not joined; here: a"},
      {{Here("n10"), Here("n9"), Here("n8"), Here("n7"), Here("n6")},
       Exactly(8),
       "waiting for 3 of 8 nodes; here: n6, n7, n8 and 2 more"},
      {{Here("a", 0), Silent("b", 1)},
       Exactly(2),
       "waiting for 1 of 2 nodes; here: a; not heard of: b"},
      {{Here("a")}, {2, 4, seconds(30), 0}, "waiting for 1 of at least 2 nodes; here: a"},
      {{Silent("a")}, Exactly(1), "waiting for 1 of 1 node; not heard of: a"},
  };
  for (const Case& c : cases) {
    const QuorumVerdict verdict = DecideQuorum(c.candidates, c.rule, kStart);
    EXPECT_EQ(verdict.order, std::nullopt) << c.reason;
    EXPECT_EQ(verdict.reason, c.reason);
  }
}

TEST(DecideQuorum, OrdersRanks) {
  struct Case {
    std::string what;
    std::vector<Candidate> candidates;
    std::vector<size_t> order;
  };
  const Case cases[] = {
      {"natural host order, not lexicographic, not arrival",
       {Here("node10"), Here("node9"), Here("node1")},
       {2, 1, 0}},
      {"explicit ranks", {Here("a", 2), Here("b", 0), Here("c", 1)}, {1, 2, 0}},
      {"an explicit rank keeps its number among those without",
       {Here("a"), Here("b", 0), Here("c")},
       {1, 0, 2}},
      {"ranks held before", {Here("a", {}, 2), Here("b", {}, 0), Here("c", {}, 1)}, {1, 2, 0}},
      {"a replacement fills the gap", {Here("a", {}, 0), Here("c", {}, 2), Here("z")}, {0, 2, 1}},
      {"held before explicit", {Here("a", 1, 0), Here("b", 0, 1)}, {0, 1}},
      {"ranks beyond the new size move up", {Here("a", {}, 5), Here("b", {}, 0)}, {1, 0}},
  };
  for (const Case& c : cases) {
    const int n = static_cast<int>(c.candidates.size());
    EXPECT_THAT(DecideQuorum(c.candidates, Exactly(n), kStart).order, Optional(c.order)) << c.what;
  }
}

TEST(DecideQuorum, BreaksTiesByNodeId) {
  Candidate a = Here("host"), b = Here("host");
  a.node_id = "2";
  b.node_id = "1";
  EXPECT_THAT(DecideQuorum({a, b}, Exactly(2), kStart).order, Optional(ElementsAre(1, 0)));
}

TEST(DecideQuorum, WaitsForTheLastCallBelowMax) {
  const QuorumRule rule{2, 4, seconds(30), 0};
  Candidate late = Here("c");
  late.since = kStart + seconds(5);
  const std::vector<Candidate> candidates{Here("a"), late};
  const QuorumVerdict waits = DecideQuorum(candidates, rule, kStart + seconds(34));
  EXPECT_EQ(waits.order, std::nullopt);
  EXPECT_EQ(waits.last_call_ends, kStart + seconds(35));
  EXPECT_EQ(waits.reason, "last call: 2 of 2 to 4 nodes may start; here: a, c");
  const QuorumVerdict starts = DecideQuorum(candidates, rule, kStart + seconds(35));
  EXPECT_THAT(starts.order, Optional(ElementsAre(0, 1)));
  EXPECT_EQ(starts.reason, "starting with 2 nodes; here: a, c");
}

TEST(DecideQuorum, NeedsNoLastCallAtMaxOrWhenAllAreBack) {
  const QuorumRule full{1, 2, seconds(30), 0}, back{1, 4, seconds(30), 2};
  EXPECT_TRUE(DecideQuorum({Here("a"), Here("b")}, full, kStart).order);
  EXPECT_TRUE(DecideQuorum({Here("a", {}, 0), Here("b", {}, 1)}, back, kStart).order);
  EXPECT_FALSE(DecideQuorum({Here("a", {}, 0), Here("b")}, back, kStart).order);
}

TEST(DecideQuorum, NeedsNoLastCallOnceAllWhoCanComeAreHere) {
  QuorumRule rule{1, 4, seconds(30), 0};
  rule.expected_nodes = 2;
  EXPECT_FALSE(DecideQuorum({Here("a")}, rule, kStart).order);
  EXPECT_FALSE(DecideQuorum({Here("a"), Silent("b")}, rule, kStart).order);
  EXPECT_TRUE(DecideQuorum({Here("a"), Here("b")}, rule, kStart).order);
}

TEST(DecideQuorum, LeavesTheSurplusOutButNotThoseFromBefore) {
  EXPECT_THAT(
      DecideQuorum({Here("a"), Here("b", {}, 1), Here("c", {}, 0)}, Exactly(2), kStart).order,
      Optional(ElementsAre(2, 1)));
}

TEST(DecideQuorum, IgnoresASilentNodeAboveMin) {
  const QuorumRule rule{1, 3, seconds(0), 0};
  EXPECT_THAT(DecideQuorum({Silent("a"), Here("b")}, rule, kStart).order, Optional(ElementsAre(1)));
}

TEST(DecideGrowth, WaitsForTheLastCallAfterTheFirstUnlessItIsFull) {
  const QuorumRule rule{1, 4, seconds(30), 2};
  Candidate early = Here("c"), late = Here("b");
  early.since = kStart;
  late.since = kStart + seconds(20);
  EXPECT_EQ(DecideGrowth({}, rule, kStart).at, std::nullopt);
  EXPECT_EQ(DecideGrowth({Silent("c")}, rule, kStart).at, std::nullopt);
  const GrowthVerdict one = DecideGrowth({early}, rule, kStart);
  EXPECT_EQ(one.at, kStart + seconds(30));
  EXPECT_EQ(one.reason, "c joined: from 2 to 3 nodes");
  const GrowthVerdict two = DecideGrowth({early, late}, rule, kStart + seconds(20));
  EXPECT_EQ(two.at, kStart + seconds(20));
  EXPECT_EQ(two.reason, "b, c joined: from 2 to 4 nodes");
  EXPECT_EQ(DecideGrowth({early}, {1, 2, seconds(30), 2}, kStart).at, std::nullopt);
}

TEST(DecideGrowth, NeedsNoLastCallOnceAllWhoCanComeAreHere) {
  QuorumRule rule{1, 4, seconds(30), 2};
  rule.expected_nodes = 3;
  EXPECT_EQ(DecideGrowth({Here("c")}, rule, kStart).at, kStart);
}

TEST(DecideGrowth, WaitsForTheTimeBetweenAndSaysSo) {
  QuorumRule rule{1, 2, seconds(30), 1};
  rule.grows_from = kStart + seconds(60);
  const GrowthVerdict verdict = DecideGrowth({Here("c")}, rule, kStart);
  EXPECT_EQ(verdict.at, kStart + seconds(60));
  EXPECT_EQ(verdict.hold, "the last one grew not long before");
  EXPECT_EQ(DecideGrowth({Here("c")}, rule, kStart + seconds(60)).hold, "");
}

TEST(DecideGrowth, GoesByMultiples) {
  const QuorumRule rule{2, 6, seconds(30), 2, 2};
  const GrowthVerdict one = DecideGrowth({Here("c")}, rule, kStart);
  EXPECT_EQ(one.at, std::nullopt);
  EXPECT_EQ(one.reason, "c joined: the next round would have 4 nodes");
  EXPECT_EQ(one.hold, "which takes 1 more");
  EXPECT_EQ(DecideGrowth({Here("c"), Here("d"), Here("e")}, rule, kStart).reason,
            "c, d, e joined: from 2 to 4 nodes");
}

TEST(DecideQuorum, TakesTheLargestMultipleThatIsThere) {
  const QuorumRule rule{2, 6, seconds(0), 0, 2};
  EXPECT_THAT(DecideQuorum({Here("a"), Here("b"), Here("c")}, rule, kStart).order,
              Optional(ElementsAre(0, 1)));
  EXPECT_FALSE(DecideQuorum({Here("a")}, rule, kStart).order);
  const QuorumRule odd{3, 4, seconds(0), 0, 2};  // A round cannot have 3 nodes.
  EXPECT_EQ(DecideQuorum({Here("a"), Here("b"), Here("c")}, odd, kStart).order, std::nullopt);
}

TEST(NaturalLess, ComparesNumbersAsNumbers) {
  const std::vector<std::string> sorted{"",
                                        "a",
                                        "a1b2",
                                        "a1b10",
                                        "a02",
                                        "a2",
                                        "a10",
                                        "b",
                                        "node9",
                                        "node10",
                                        "node99",
                                        "node100",
                                        "x18446744073709551616"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t j = 0; j < sorted.size(); ++j) {
      EXPECT_EQ(NaturalLess(sorted[i], sorted[j]), i < j) << sorted[i] << " " << sorted[j];
    }
  }
}

}  // namespace
}  // namespace hlaunch
