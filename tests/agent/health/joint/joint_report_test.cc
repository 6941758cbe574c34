// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/joint_report.h"

#include <vector>

#include "agent/health/joint/known_sum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// ---- Numbers with a known sum.

std::vector<int64_t> SumOf(const std::vector<Rank>& ranks, uint64_t seed, size_t length) {
  std::vector<int64_t> sum(length), terms(length);
  for (const Rank rank : ranks) {
    FillTerms(rank, seed, terms);
    for (size_t i = 0; i < length; ++i) sum[i] += terms[i];
  }
  return sum;
}

TEST(KnownSum, IsWhatAddingComesTo) {
  for (const std::vector<Rank>& ranks :
       {std::vector<Rank>{0}, {0, 1}, {3, 900}, {0, 1, 2, 3, 4}, {65534, 65535}}) {
    const std::vector<int64_t> sum = SumOf(ranks, 7, 100);
    EXPECT_TRUE(IsSumOf(ranks, 7, sum));
    EXPECT_EQ(DigestOf(sum), DigestOfSum(ranks, 7, 100));
  }
}

TEST(KnownSum, IsNoOtherRanksAndNoOtherSeeds) {
  const std::vector<int64_t> sum = SumOf({0, 3}, 7, 100);
  EXPECT_FALSE(IsSumOf(std::vector<Rank>{0, 2}, 7, sum));
  EXPECT_FALSE(IsSumOf(std::vector<Rank>{0, 3, 4}, 7, sum));
  EXPECT_FALSE(IsSumOf(std::vector<Rank>{0, 3}, 8, sum));
  EXPECT_NE(DigestOf(sum), DigestOfSum(std::vector<Rank>{0, 2}, 7, 100));
}

TEST(KnownSum, ShowsASingleBit) {
  const std::vector<Rank> ranks = {0, 1, 2};
  const std::vector<int64_t> exact = SumOf(ranks, 7, 20);
  for (size_t i = 0; i < exact.size(); ++i) {
    for (int bit = 0; bit < 64; bit += 7) {
      std::vector<int64_t> sum = exact;
      sum[i] ^= int64_t{1} << bit;
      EXPECT_FALSE(IsSumOf(ranks, 7, sum));
      EXPECT_NE(DigestOf(sum), DigestOfSum(ranks, 7, sum.size()));
    }
  }
}

TEST(KnownSum, ShowsTwoNumbersThatChangedPlaces) {
  const std::vector<Rank> ranks = {0, 1};
  std::vector<int64_t> sum = SumOf(ranks, 7, 20);
  std::swap(sum[3], sum[4]);
  EXPECT_FALSE(IsSumOf(ranks, 7, sum));
  EXPECT_NE(DigestOf(sum), DigestOfSum(ranks, 7, sum.size()));
}

// ---- Common findings of nodes.

// Four nodes that measured all their pairs.
JointFacts FourNodes(const std::vector<PairResult>& pairs) {
  JointFacts facts;
  facts.size = 4;
  for (int node = 0; node < 4; ++node) {
    facts.hosts[node] = "node" + std::to_string(node);
    facts.sums[node] = kSumExact;
  }
  facts.pairs = pairs;
  facts.verdict = JudgePairs(4, pairs);
  return facts;
}

std::vector<PairResult> GoodPairs() {
  std::vector<PairResult> pairs;
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) pairs.push_back({{a, b}, false, 50, 9});
  }
  return pairs;
}

TEST(JudgeTogether, FindsNothingWhereNothingIs) {
  const JointReport report = JudgeTogether(FourNodes(GoodPairs()));
  EXPECT_TRUE(report.joined);
  EXPECT_THAT(report.peers, IsEmpty());
  EXPECT_THAT(report.links, IsEmpty());
  EXPECT_EQ(report.note, "");
}

TEST(JudgeTogether, NamesTheNodeWhoseNumbersAreWrong) {
  std::vector<PairResult> pairs = GoodPairs();
  for (PairResult& result : pairs) {
    if (result.pair.a != 2 && result.pair.b != 2) continue;
    result.failed = result.wrong = true;
    result.why = "wrong";
  }
  JointFacts facts = FourNodes(pairs);
  facts.sums[2] = kSumWrong;
  const JointReport report = JudgeTogether(facts);
  ASSERT_THAT(report.peers, SizeIs(1));
  EXPECT_EQ(report.peers[0].node_rank, 2);
  EXPECT_EQ(report.peers[0].kind, PeerFinding::Kind::kWrong);
  EXPECT_EQ(report.peers[0].why,
            "numbers that it added up with node0, node1, node3 came out wrong");
  EXPECT_EQ(report.note, "");
}

TEST(JudgeTogether, HoldsNobodyForWrongWhoIsSoOnlyWithABadNode) {
  std::vector<PairResult> pairs = GoodPairs();
  for (PairResult& result : pairs) {
    if (result.pair.a == 2 || result.pair.b == 2) {
      result.failed = result.wrong = true;
      result.why = "wrong";
    } else if (result.pair.a == 0) {
      result = {result.pair, false, 900, 0.05};
    }
  }
  const JointReport report = JudgeTogether(FourNodes(pairs));
  for (const PeerFinding& peer : report.peers) {
    EXPECT_EQ(peer.kind == PeerFinding::Kind::kWrong, peer.node_rank == 2) << peer.why;
  }
  EXPECT_THAT(report.peers, SizeIs(2));
}

TEST(JudgeTogether, NamesTheSlowNodeWithItsFigures) {
  std::vector<PairResult> pairs = GoodPairs();
  for (PairResult& result : pairs) {
    if (result.pair.b == 3) result = {result.pair, false, 900, 0.05};
  }
  const JointReport report = JudgeTogether(FourNodes(pairs));
  ASSERT_THAT(report.peers, SizeIs(1));
  EXPECT_EQ(report.peers[0].node_rank, 3);
  EXPECT_EQ(report.peers[0].kind, PeerFinding::Kind::kSlow);
  EXPECT_EQ(report.peers[0].why,
            "0.05 Gbit/s and 900 us with other nodes at best where others have up to "
            "9 Gbit/s and 50 us");
}

TEST(JudgeTogether, NamesTheSlowWayAndNotItsEnds) {
  std::vector<PairResult> pairs = GoodPairs();
  pairs[1] = {pairs[1].pair, false, 50, 1};
  const JointReport report = JudgeTogether(FourNodes(pairs));
  EXPECT_THAT(report.peers, IsEmpty());
  ASSERT_THAT(report.links, SizeIs(1));
  EXPECT_EQ(report.links[0].a, 0);
  EXPECT_EQ(report.links[0].b, 2);
  EXPECT_THAT(report.links[0].why, HasSubstr("1 Gbit/s and 50 us"));
}

TEST(JudgeTogether, NamesWhoDidNotCome) {
  JointFacts facts = FourNodes({});
  facts.hosts.erase(1);
  facts.sums.clear();
  facts.verdict = {};
  const JointReport report = JudgeTogether(facts);
  ASSERT_THAT(report.peers, SizeIs(1));
  EXPECT_EQ(report.peers[0].node_rank, 1);
  EXPECT_EQ(report.peers[0].kind, PeerFinding::Kind::kMissing);
}

TEST(JudgeTogether, OfTwoNodesBlamesNeither) {
  JointFacts facts;
  facts.size = 2;
  facts.hosts = {{0, "node0"}, {1, "node1"}};
  facts.sums = {{0, kSumExact}, {1, kSumWrong}};
  facts.pairs = {{{0, 1}, true, 0, 0, true, "numbers came out wrong"}};
  facts.verdict = JudgePairs(2, facts.pairs);
  const JointReport report = JudgeTogether(facts);
  EXPECT_THAT(report.peers, IsEmpty());
  EXPECT_EQ(report.note,
            "one of node0, node1 at least is bad, and nobody can tell which: "
            "numbers came out wrong");
}

TEST(JudgeTogether, SaysThatTheSumWasWrongWhereNoPairShowsWhy) {
  JointFacts facts = FourNodes(GoodPairs());
  facts.sums[1] = kSumWrong;
  EXPECT_THAT(JudgeTogether(facts).note, HasSubstr("came out wrong on node1"));
  facts.sums[1] = "rank 3 on node3 went away";
  EXPECT_THAT(JudgeTogether(facts).note, HasSubstr("was not done: rank 3 on node3 went away"));
}

TEST(JointReport, GoesThroughAResultAndBack) {
  JointReport report;
  report.joined = true;
  report.node_rank = 1;
  report.peers = {{2, PeerFinding::Kind::kWrong, "wrong"}};
  report.links = {{0, 3, "slow"}};
  report.note = "note";
  report.hosts = {"a", "b", "", "d"};
  report.pairs = {{{0, 1}, true, 1.5, 2.5, true, "why"}};
  report.rounds = 3;
  const CheckResult result = ToResult(report);
  EXPECT_EQ(result.state, CheckState::kWarn);
  EXPECT_EQ(result.reason, "node rank 2: wrong; between a and d: slow; note");
  const auto read = JointReportOf(*FromLine(ToLine(result)));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->joined);
  EXPECT_EQ(read->node_rank, 1);
  EXPECT_EQ(read->peers[0].kind, PeerFinding::Kind::kWrong);
  EXPECT_EQ(read->links[0].why, "slow");
  EXPECT_EQ(read->hosts, report.hosts);
  EXPECT_TRUE(read->pairs[0].wrong);
  EXPECT_EQ(read->pairs[0].gbit_s, 2.5);
  EXPECT_EQ(BestSpeed(read->pairs, 1), std::nullopt);  // That measurement failed.
}

TEST(DescribeFigures, NamesWhoHasTheLowestAndTheHighest) {
  JointFacts facts = FourNodes(GoodPairs());
  facts.figures = {{0, "3 nan 8"}, {1, "nan nan 8"}, {2, "9 nan 7"}};
  const JointReport report = JudgeTogether(facts);
  const auto read = JointReportOf(ToResult(report));
  ASSERT_TRUE(read);
  for (const JointReport& each : {report, *read}) {
    EXPECT_THAT(DescribeFigures(each),
                testing::ElementsAre("processor 3 ms (node0) to 9 ms (node2), 6 ms on average",
                                     "devices 7 (node2) to 8 (node0), 7.667 on average",
                                     "latency 50 us (node0) to 50 us (node0), 50 us on average",
                                     "bandwidth 9 Gbit/s (node0) to 9 Gbit/s (node0), "
                                     "9 Gbit/s on average"));
  }
}

TEST(JointReport, IsNotMadeOfWhatIsNone) {
  for (const char* junk : {"", "{", "[]", "{}", "{\"joined\": 5}"}) {
    CheckResult result{kJointCheck, {}, "", CheckState::kOk, "", ""};
    result.detail = junk;
    EXPECT_FALSE(JointReportOf(result)) << junk;
  }
  EXPECT_FALSE(JointReportOf({"clock", {}, "", CheckState::kOk, "", ""}));
}

}  // namespace
}  // namespace hlaunch
