// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with nodes as threads that check themselves together over TCP on loopback, with a real
// store.

#include "agent/health/joint/joint_check.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/health/joint/roll_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/memory_store.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

JointPlan PlanOf(int node, int size, bool full) {
  return {"127.0.0.1", 0, 5, node, size, absl::StrCat("node", node), full};
}

std::vector<JointReport> CheckNodes(const std::vector<int>& nodes, int size, bool full,
                                    const std::shared_ptr<Store>& store,
                                    Duration farewell = seconds(60)) {
  std::vector<JointReport> reports(nodes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < nodes.size(); ++i) {
    threads.emplace_back([&, i] {
      reports[i] = CheckTogether(PlanOf(nodes[i], size, full), store, "127.0.0.1", farewell);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

// The reports of `size` healthy nodes. On a busy machine a node may look slow or come late once, so
// the check is repeated; what is always wrong would stay in the reports.
std::vector<JointReport> CheckHealthyNodes(int size, const std::shared_ptr<Store>& store) {
  std::vector<int> nodes;
  for (int node = 0; node < size; ++node) nodes.push_back(node);
  std::vector<JointReport> reports;
  for (int i = 0; i < 10; ++i) {
    reports = CheckNodes(nodes, size, /*full=*/false, store);
    const bool quiet = std::all_of(reports.begin(), reports.end(), [](const JointReport& one) {
      return one.joined && one.peers.empty() && one.note.empty() && one.pairs.empty();
    });
    if (quiet) break;
  }
  return reports;
}

TEST(CheckTogether, OfHealthyNodesSumsUpAndSaysNothing) {
  for (const int size : {2, 3, 5, 9}) {
    const auto store = std::make_shared<MemoryStore>();
    for (const JointReport& report : CheckHealthyNodes(size, store)) {
      EXPECT_TRUE(report.joined) << report.why;
      EXPECT_THAT(report.peers, IsEmpty());
      EXPECT_EQ(report.note, "");
      EXPECT_THAT(report.hosts, SizeIs(static_cast<size_t>(size)));
      EXPECT_THAT(report.pairs, IsEmpty());  // No pair was suspect.
    }
    EXPECT_EQ(*store->NumKeys(), 0);
  }
}

TEST(CheckTogether, InFullMeasuresPairsAndAllKnowTheSame) {
  const auto store = std::make_shared<MemoryStore>();
  const std::vector<JointReport> reports = CheckNodes({0, 1, 2}, 3, /*full=*/true, store);
  for (const JointReport& report : reports) {
    EXPECT_TRUE(report.joined) << report.why;
    ASSERT_THAT(report.pairs, SizeIs(3));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_FALSE(report.pairs[i].failed) << report.pairs[i].why;
      EXPECT_GT(report.pairs[i].gbit_s, 0);
      EXPECT_GT(report.pairs[i].latency_us, 0);
      EXPECT_EQ(report.pairs[i].pair, reports[0].pairs[i].pair);
      EXPECT_EQ(report.pairs[i].gbit_s, reports[0].pairs[i].gbit_s);
    }
    EXPECT_EQ(report.rounds, 3);
  }
  EXPECT_EQ(*store->NumKeys(), 0);
}

TEST(CheckTogether, NamesWhoDoesNotCome) {
  const auto store = std::make_shared<MemoryStore>();
  for (const JointReport& report : CheckNodes({0, 2}, 3, /*full=*/false, store)) {
    EXPECT_TRUE(report.joined) << report.why;
    ASSERT_THAT(report.peers, SizeIs(1));
    EXPECT_EQ(report.peers[0].node_rank, 1);
    EXPECT_EQ(report.peers[0].kind, PeerFinding::Kind::kMissing);
  }
  EXPECT_EQ(*store->NumKeys(), 0);
}

TEST(CheckTogether, LeavesNothingInTheStoreWhereANodeGoesOnTheWay) {
  const auto store = std::make_shared<MemoryStore>();
  std::thread comes_and_goes([&] {
    EXPECT_TRUE(CallRoll(*store, "hlaunch/joint/5/here", 1, {0, 1}, "",
                         MonotonicClock().Now() + std::chrono::minutes(1))
                    .ok());
  });
  const JointReport report = CheckNodes({0}, 2, /*full=*/false, store, seconds(1))[0];
  comes_and_goes.join();
  EXPECT_TRUE(report.joined) << report.why;
  EXPECT_NE(report.note, "");
  EXPECT_EQ(*store->NumKeys(), 0);
}

TEST(CheckTogether, ANodeThatCameTooLateIsNotCountedAmongThoseThatLeave) {
  const auto store = std::make_shared<MemoryStore>();
  ASSERT_TRUE(store->Append("hlaunch/joint/5/here/answer", "0 \n2 \n").ok());  // The call is over.
  EXPECT_THAT(CheckNodes({1}, 3, /*full=*/false, store)[0].why, HasSubstr("too late"));
  EXPECT_FALSE(store->Get("hlaunch/joint/5/left", MonotonicClock().Now()).ok());
}

TEST(CheckTogether, LeavesNothingInTheStoreWhereNodeRank0CameTooLate) {
  const auto store = std::make_shared<MemoryStore>();
  ASSERT_TRUE(store->Append("hlaunch/joint/5/here/answer", "1 \n2 \n").ok());  // The call is over.
  EXPECT_FALSE(CheckNodes({0}, 3, /*full=*/false, store)[0].joined);
  for (const int node : {2, 1}) {
    const JointReport report = CheckNodes({node}, 3, /*full=*/false, store)[0];
    EXPECT_TRUE(report.joined) << report.why;
  }
  EXPECT_EQ(*store->NumKeys(), 0);
}

TEST(CheckTogether, SaysWhyItIsNotJoinedWithoutAStore) {
  JointPlan plan = PlanOf(0, 2, false);
  plan.master = "no address";
  const JointReport report = CheckTogether(plan);
  EXPECT_FALSE(report.joined);
  EXPECT_NE(report.why, "");
}

TEST(CallRoll, TellsAllTheSame) {
  MemoryStore store;
  std::vector<absl::StatusOr<RollCall>> answers(4, absl::UnknownError(""));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      answers[static_cast<size_t>(rank)] =
          CallRoll(store, "k", rank, {0, 1, 2, 3}, absl::StrCat("of ", rank, "\n."),
                   MonotonicClock().Now() + std::chrono::minutes(1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(*answer, UnorderedElementsAre(Pair(0, "of 0 ."), Pair(1, "of 1 ."),
                                              Pair(2, "of 2 ."), Pair(3, "of 3 .")));
  }
}

TEST(CallRoll, IsShortWhereAllSayTheSame) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < 1000; ++rank) ranks.push_back(rank * 2);
  MemoryStore fresh;
  for (const Rank rank : ranks) {
    if (rank == ranks.back()) break;
    ASSERT_TRUE(fresh.Append("k/lines", absl::StrCat(rank, " exact\n")).ok());
    ASSERT_TRUE(fresh.Add("k/count", 1).ok());
  }
  const auto said = CallRoll(fresh, "k", ranks.back(), ranks, "exact", MonotonicClock().Now());
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->size(), ranks.size());
  EXPECT_EQ(said->at(998), "exact");
  const auto answer = fresh.Get("k/answer", MonotonicClock().Now());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer, "= exact");
}

TEST(CallRoll, LeavesOutWhoComesAfterItIsOver) {
  MemoryStore store;
  const auto first =
      CallRoll(store, "k", 0, {0, 1}, "here", MonotonicClock().Now() + milliseconds(1));
  const auto late =
      CallRoll(store, "k", 1, {0, 1}, "here", MonotonicClock().Now() + milliseconds(1));
  ASSERT_TRUE(first.ok() && late.ok());
  EXPECT_THAT(*first, UnorderedElementsAre(Pair(0, "here")));
  EXPECT_EQ(*late, *first);
}

}  // namespace
}  // namespace hlaunch
