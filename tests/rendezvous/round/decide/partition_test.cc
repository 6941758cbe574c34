// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/partition.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

using Kind = PartitionVerdict::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// The words of all nodes, by node rank.
std::vector<WaysWord> Say(const std::vector<std::vector<int>>& unreached) {
  std::vector<WaysWord> nodes;
  for (const std::vector<int>& one : unreached) {
    nodes.push_back({absl::StrCat("node", nodes.size()), one});
  }
  return nodes;
}

// Of `size` nodes, those in `side` and the others do not reach each other.
std::vector<WaysWord> Split(int size, const std::set<int>& side) {
  std::vector<std::vector<int>> unreached(static_cast<size_t>(size));
  for (int a = 0; a < size; ++a) {
    for (const int b : WaysToLookAt(a, size)) {
      if (side.contains(a) != side.contains(b)) unreached[static_cast<size_t>(a)].push_back(b);
    }
  }
  return Say(unreached);
}

PartitionRule Restartable() {
  PartitionRule rule;
  rule.may_restart = true;
  return rule;
}

TEST(WaysToLookAt, AreTheSameFromBothEndsAndFew) {
  EXPECT_THAT(WaysToLookAt(1, 3), ElementsAre(0, 2));
  EXPECT_THAT(WaysToLookAt(0, 1), IsEmpty());
  EXPECT_THAT(WaysToLookAt(5, 33), SizeIs(32));
  for (const int size : {34, 100, kMaxNodes}) {
    for (const int rank : {0, 1, 33}) {
      const std::vector<int> ways = WaysToLookAt(rank, size);
      EXPECT_LE(ways.size(), kMaxUnreached);
      for (const int other : ways) {
        EXPECT_NE(other, rank);
        EXPECT_THAT(WaysToLookAt(other, size), testing::Contains(rank)) << size;
      }
    }
  }
}

TEST(DecidePartition, SaysNothingWhereAllReachEachOther) {
  EXPECT_EQ(DecidePartition(Say({{}, {}, {}}), Restartable()).kind, Kind::kNothing);
}

TEST(DecidePartition, ExcludesTheNodeThatTheOthersDoNotReach) {
  const PartitionVerdict verdict = DecidePartition(Say({{1}, {0, 2}, {1}}), Restartable());
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.cut_off, ElementsAre(1));
  EXPECT_EQ(verdict.reason, "node1 is cut off from node0, node2, though all reach the rendezvous");
  EXPECT_EQ(verdict.of_first, "it is cut off from node0, node2, though all reach the rendezvous");
}

TEST(DecidePartition, ExcludesTheSmallerSideOfALargeRound) {
  const PartitionVerdict verdict = DecidePartition(Split(100, {3, 4, 5, 70}), Restartable());
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.cut_off, ElementsAre(3, 4, 5, 70));
  EXPECT_EQ(DecidePartition(Split(5, {0, 1}), Restartable()).of_first,
            "with node1 it is cut off from node2, node3, node4, though all reach the rendezvous");
}

TEST(DecidePartition, NamesTheWayBetweenTwoNodesAndExcludesNeither) {
  const PartitionVerdict verdict = DecidePartition(Say({{1}, {0}}), Restartable());
  EXPECT_EQ(verdict.kind, Kind::kName);
  EXPECT_EQ(verdict.reason,
            "node0 and node1 do not reach each other, though all reach the rendezvous; nobody is "
            "excluded: no side has more than half of the nodes");
  EXPECT_EQ(DecidePartition(Split(4, {0, 3}), Restartable()).kind, Kind::kName);
}

TEST(DecidePartition, NamesACutWayBetweenNodesThatOthersReach) {
  const PartitionVerdict verdict = DecidePartition(Say({{1}, {0}, {}}), Restartable());
  EXPECT_EQ(verdict.kind, Kind::kName);
  EXPECT_EQ(verdict.reason,
            "node0 and node1 do not reach each other, though all reach the rendezvous; nobody is "
            "excluded: none of them is cut off from all others");
}

TEST(DecidePartition, WaitsForTheOtherEndAndExcludesNobodyByOneWord) {
  PartitionRule rule = Restartable();
  rule.all_have_spoken = false;
  EXPECT_EQ(DecidePartition(Say({{}, {0, 2}, {}}), rule).kind, Kind::kWait);
  EXPECT_EQ(DecidePartition(Say({{1}, {0, 2}, {}}), rule).kind, Kind::kWait);
  rule.all_have_spoken = true;
  rule.action = PreflightAction::kFail;
  const PartitionVerdict verdict = DecidePartition(Say({{}, {0, 2}, {}}), rule);
  EXPECT_EQ(verdict.kind, Kind::kName);
  EXPECT_EQ(verdict.reason,
            "node1 does not reach node0, by its own word; node1 does not reach node2, by its own "
            "word, though all reach the rendezvous; nobody is excluded: none of them is cut off "
            "from all others");
}

TEST(DecidePartition, LeavesSilentNodesToTheirLease) {
  std::vector<WaysWord> nodes = Say({{1}, {0, 2}, {1}});
  nodes[1].heard = false;
  EXPECT_EQ(DecidePartition(nodes, Restartable()).kind, Kind::kNothing);
}

TEST(DecidePartition, TakesNonsenseForNothing) {
  EXPECT_EQ(DecidePartition(Say({{0, -1, 7}, {}}), Restartable()).kind, Kind::kNothing);
}

TEST(DecidePartition, SaysWhyNobodyIsExcluded) {
  const auto why = [](const PartitionRule& rule, bool stays = false) {
    std::vector<WaysWord> nodes = Say({{1}, {0, 2}, {1}});
    nodes[1].stays = stays;
    const PartitionVerdict verdict = DecidePartition(nodes, rule);
    EXPECT_EQ(verdict.kind, Kind::kName);
    EXPECT_THAT(verdict.cut_off, IsEmpty());
    return verdict.reason.substr(verdict.reason.find("; ") + 2);
  };
  PartitionRule rule = Restartable();
  EXPECT_EQ(why(rule, true), "nobody is excluded: the rendezvous is among them");
  rule.min_nodes = 3;
  EXPECT_EQ(why(rule), "nobody is excluded: the job cannot do without");
  rule.standing_by = 1;
  EXPECT_EQ(DecidePartition(Say({{1}, {0, 2}, {1}}), rule).kind, Kind::kExclude);
  rule.may_restart = false;
  EXPECT_EQ(why(rule), "nobody is excluded: no restart is left");
  rule.action = PreflightAction::kWarn;
  EXPECT_EQ(why(rule), "nobody is excluded: --on-partition warn");
}

TEST(DecidePartition, EndsAJobThatIsToEnd) {
  PartitionRule rule;
  rule.action = PreflightAction::kFail;
  EXPECT_EQ(DecidePartition(Say({{1}, {0, 2}, {1}}), rule).kind, Kind::kFail);
  const PartitionVerdict verdict = DecidePartition(Say({{1}, {0}}), rule);
  EXPECT_EQ(verdict.kind, Kind::kFail);
  EXPECT_EQ(verdict.reason,
            "node0 and node1 do not reach each other, though all reach the rendezvous");
}

}  // namespace
}  // namespace hlaunch
