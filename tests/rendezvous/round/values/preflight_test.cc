// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/preflight.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Kind = PreflightVerdict::Kind;

const PreflightReport kFit0 = {"node0", true, ""}, kFit1 = {"node1", true, ""},
                      kFit2 = {"node2", true, ""}, kBad1 = {"node1", true, "no route"},
                      kBad2 = {"node2", true, "no route"}, kSilent1 = {"node1", false, ""};

PreflightVerdict Decide(const std::vector<PreflightReport>& members, int standing_by,
                        int min_nodes) {
  PreflightRule rule;
  rule.standing_by = standing_by;
  rule.min_nodes = min_nodes;
  return DecidePreflight(members, rule);
}

TEST(Preflight, PassesIfAllAreFit) {
  const PreflightVerdict verdict = Decide({kFit0, kFit1, kFit2}, 0, 3);
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_THAT(verdict.nodes, IsEmpty());
}

TEST(Preflight, ExcludesTheUnfitIfEnoughAreLeft) {
  const PreflightVerdict fewer = Decide({kFit0, kBad1, kFit2}, 0, 2);
  EXPECT_EQ(fewer.kind, Kind::kExclude);
  EXPECT_THAT(fewer.nodes, ElementsAre(1));
  EXPECT_EQ(fewer.reason, "node1: no route");
  EXPECT_EQ(Decide({kFit0, kBad1, kFit2}, 1, 3).kind, Kind::kExclude);
}

TEST(Preflight, FailsIfTooFewAreLeft) {
  EXPECT_EQ(Decide({kFit0, kBad1}, 0, 2).kind, Kind::kFail);
  EXPECT_EQ(Decide({kFit0, kBad1, kFit2}, 0, 3).kind, Kind::kFail);
}

TEST(Preflight, BlamesTheMasterIfNobodyReachesIt) {
  const PreflightVerdict verdict = Decide({kFit0, kBad1, kBad2}, 0, 2);
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.nodes, ElementsAre(0));
  EXPECT_EQ(verdict.reason, "none of the 2 other nodes can use node0 as master: no route");
}

TEST(Preflight, BlamesASilentMasterForTheSilenceOfAll) {
  const PreflightReport silent0 = {"node0", false, ""}, silent2 = {"node2", false, ""};
  for (const PreflightReport& other : {silent2, kBad2}) {
    const PreflightVerdict verdict = Decide({silent0, kSilent1, other}, 0, 2);
    EXPECT_EQ(verdict.kind, Kind::kExclude);
    EXPECT_THAT(verdict.nodes, ElementsAre(0));
    EXPECT_EQ(verdict.reason,
              "node0 did not answer, and none of the 2 other nodes can use it as master");
  }
  const PreflightVerdict one_answers = Decide({silent0, kFit1, silent2}, 0, 1);
  EXPECT_THAT(one_answers.nodes, ElementsAre(0, 2));
}

TEST(Preflight, NamesWhoDidNotAnswer) {
  const PreflightVerdict verdict = Decide({kFit0, kSilent1, kBad2}, 0, 1);
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_THAT(verdict.nodes, ElementsAre(1, 2));
  EXPECT_EQ(verdict.reason, "node2: no route; node1 did not answer");
}

// ---- Bad nodes.

// Members with given times of their processors.
class Nodes {
 public:
  explicit Nodes(const std::vector<double>& times) {
    for (const double time : times) {
      hosts.push_back(absl::StrCat("node", hosts.size()));
      healths.emplace_back();
      healths.back().hardware = "8 × CPU";
      healths.back().figures[Figure::kProcessor] = time;
    }
  }

  PreflightVerdict Decide(const PreflightRule& rule) const {
    std::vector<PreflightReport> members;
    for (size_t i = 0; i < hosts.size(); ++i) {
      members.push_back({hosts[i], true, "", &healths[i], suspects.contains(i), i == stays});
    }
    return DecidePreflight(members, rule);
  }

  std::vector<std::string> hosts;
  std::vector<NodeHealth> healths;
  std::set<size_t> suspects;
  size_t stays = 999;
};

PreflightRule Rule(int min_nodes, int standing_by) {
  PreflightRule rule;
  rule.min_nodes = min_nodes;
  rule.standing_by = standing_by;
  return rule;
}

TEST(Preflight, ExcludesAtOnceWhoReportsAFaultOfItsOwn) {
  Nodes nodes({3, 3, 3});
  nodes.healths[1].fault = "devices: fell off the PCI bus";
  const PreflightVerdict verdict = nodes.Decide(Rule(3, 1));
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_TRUE(verdict.bad);
  EXPECT_THAT(verdict.nodes, ElementsAre(1));
  EXPECT_EQ(verdict.reason, "node1: devices: fell off the PCI bus");
}

TEST(Preflight, MeasuresAgainBeforeItExcludesByComparison) {
  Nodes nodes({3, 3.1, 9, 3});
  PreflightRule rule = Rule(3, 0);
  const PreflightVerdict first = nodes.Decide(rule);
  EXPECT_EQ(first.kind, Kind::kAgain);
  EXPECT_THAT(first.nodes, ElementsAre(2));
  EXPECT_EQ(first.reason, "node2: processor 9 ms, 2.95 times worse where others have 3 to 3.1 ms");
  rule.measured_again = true;
  nodes.suspects = {2};
  EXPECT_EQ(nodes.Decide(rule).kind, Kind::kExclude);
  EXPECT_THAT(nodes.Decide(rule).nodes, ElementsAre(2));
}

TEST(Preflight, KeepsWhoHadBadLuckOnceAndNamesIt) {
  Nodes nodes({3, 3.1, 3, 9});
  PreflightRule rule = Rule(3, 0);
  rule.measured_again = true;
  nodes.suspects = {2};  // Another node is the suspect now.
  const PreflightVerdict verdict = nodes.Decide(rule);
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_THAT(verdict.reason, HasSubstr("node3: processor 9 ms"));
}

TEST(Preflight, NeverGoesBelowTheMinimum) {
  Nodes nodes({3, 3, 3});
  nodes.healths[1].fault = "heat";
  const PreflightVerdict verdict = nodes.Decide(Rule(3, 0));
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_EQ(verdict.reason, "node1: heat; nobody is excluded: the job cannot do without");
  nodes.healths[2].fault = "bus";
  PreflightRule rule = Rule(2, 0);
  rule.may_exclude = 2;
  EXPECT_EQ(nodes.Decide(rule).nodes.size(), 1u);
}

TEST(Preflight, TakesAMassFailureForAFaultOfTheTest) {
  Nodes nodes({3, 3, 3, 3});
  for (size_t i : {1u, 2u}) nodes.healths[i].fault = "name: no answer";
  const PreflightVerdict verdict = nodes.Decide(Rule(1, 9));
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_THAT(verdict.reason, HasSubstr("more than --preflight-share allows"));
}

TEST(Preflight, DoesWhatItWasToldToDoWithTheBad) {
  Nodes nodes({3, 3, 3});
  nodes.healths[1].fault = "heat";
  PreflightRule rule = Rule(1, 1);
  rule.action = PreflightAction::kWarn;
  EXPECT_EQ(nodes.Decide(rule).kind, Kind::kPass);
  EXPECT_EQ(nodes.Decide(rule).reason, "node1: heat");
  rule.action = PreflightAction::kFail;
  EXPECT_EQ(nodes.Decide(rule).kind, Kind::kFail);
}

TEST(Preflight, KeepsTheNodeWithoutWhichThereIsNoJob) {
  Nodes nodes({3, 3, 3});
  nodes.healths[0].fault = "heat";
  nodes.stays = 0;
  EXPECT_EQ(nodes.Decide(Rule(1, 5)).kind, Kind::kPass);
}

TEST(Preflight, ComparesLikeWithLike) {
  Nodes nodes({3, 3, 3, 9, 9, 9});
  EXPECT_NE(nodes.Decide(Rule(1, 0)).reason, "");
  for (size_t i : {3u, 4u, 5u}) nodes.healths[i].hardware = "4 × old CPU";
  EXPECT_EQ(nodes.Decide(Rule(1, 0)).kind, Kind::kPass);
  EXPECT_EQ(nodes.Decide(Rule(1, 0)).reason, "");
}

TEST(Preflight, SaysNothingOfNodesThatKnowNothing) {
  Nodes nodes({3, 3, 3});
  nodes.healths[1] = NodeHealth();
  EXPECT_EQ(nodes.Decide(Rule(1, 0)).reason, "");
}

// ---- What nodes say of each other.

// Lets `voters` say that `node` is bad.
void Blame(Nodes& nodes, const std::set<size_t>& voters, int node, PeerFinding::Kind kind) {
  for (const size_t voter : voters) {
    nodes.healths[voter].joined = true;
    nodes.healths[voter].peers.push_back({node, kind, "why"});
  }
}

TEST(Preflight, ExcludesAtOnceWhomMoreThanHalfSayComputesWrong) {
  Nodes nodes({3, 3, 3, 3});
  Blame(nodes, {0, 1, 3}, 2, PeerFinding::Kind::kWrong);
  const PreflightVerdict verdict = nodes.Decide(Rule(3, 0));
  EXPECT_EQ(verdict.kind, Kind::kExclude);
  EXPECT_TRUE(verdict.bad);
  EXPECT_THAT(verdict.nodes, ElementsAre(2));
  EXPECT_EQ(verdict.reason, "node2: why");
}

TEST(Preflight, DoesNotBelieveHalfOfTheNodesOrABadOneThatBlamesOthers) {
  Nodes nodes({3, 3, 3, 3});
  Blame(nodes, {0, 1}, 2, PeerFinding::Kind::kWrong);
  for (int other : {0, 1, 3}) Blame(nodes, {2}, other, PeerFinding::Kind::kWrong);
  const PreflightVerdict verdict = nodes.Decide(Rule(1, 4));
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_THAT(verdict.reason, HasSubstr("node2: why (so say 2 of 4 nodes)"));
}

TEST(Preflight, MeasuresAgainWhoIsSlowOrDidNotCome) {
  for (const auto kind : {PeerFinding::Kind::kSlow, PeerFinding::Kind::kMissing}) {
    Nodes nodes({3, 3, 3, 3});
    Blame(nodes, {0, 1, 3}, 2, kind);
    PreflightRule rule = Rule(3, 0);
    EXPECT_EQ(nodes.Decide(rule).kind, Kind::kAgain);
    EXPECT_THAT(nodes.Decide(rule).nodes, ElementsAre(2));
    rule.measured_again = true;
    EXPECT_EQ(nodes.Decide(rule).kind, Kind::kPass);  // Before, another node was the suspect.
    nodes.suspects = {2};
    EXPECT_EQ(nodes.Decide(rule).kind, Kind::kExclude);
  }
}

TEST(Preflight, NamesABadWayAndExcludesNobody) {
  Nodes nodes({3, 3, 3, 3});
  for (size_t voter : {0u, 1u, 2u, 3u}) {
    nodes.healths[voter].joined = true;
    nodes.healths[voter].links = {{1, 3, "1 Gbit/s"}, {0, 4711, "nonsense"}};
    nodes.healths[voter].note = "something is wrong";
  }
  const PreflightVerdict verdict = nodes.Decide(Rule(1, 4));
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_EQ(verdict.reason, "between node1 and node3: 1 Gbit/s; something is wrong");
}

TEST(Preflight, IgnoresFindingsAboutNodesThatAreNoMembers) {
  Nodes nodes({3, 3, 3});
  Blame(nodes, {0, 1, 2}, 3, PeerFinding::Kind::kWrong);
  EXPECT_EQ(nodes.Decide(Rule(1, 4)).kind, Kind::kPass);
}

TEST(Preflight, OfAThousandNodesFindsThePlantedOnes) {
  std::vector<double> times(1000, 3);
  for (size_t i = 0; i < times.size(); ++i) times[i] += 0.0001 * static_cast<double>(i % 7);
  times[17] = times[940] = 30;
  Nodes nodes(times);
  nodes.suspects = {17, 940};
  PreflightRule rule = Rule(900, 0);
  rule.may_exclude = 250;
  rule.measured_again = true;
  EXPECT_THAT(nodes.Decide(rule).nodes, UnorderedElementsAre(17, 940));
}

}  // namespace
}  // namespace hlaunch
