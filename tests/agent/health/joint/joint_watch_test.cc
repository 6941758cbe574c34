// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Tests with nodes as threads that watch each other over TCP on loopback, with a real store.

#include "agent/health/joint/joint_watch.h"

#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/health/watch_node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/memory_store.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr Duration kLong = seconds(60);

class Nodes {
 public:
  explicit Nodes(int size) {
    for (int node = 0; node < size; ++node) {
      watches_.push_back(std::make_unique<JointWatch>(
          JointPlan{"127.0.0.1", 0, 3, node, size, absl::StrCat("node", node)}, "127.0.0.1",
          [this] { return store_; }));
    }
  }

  JointWatch& operator[](size_t node) { return *watches_[node]; }

  // Runs one turn of the nodes in `who`, all at the same time.
  std::vector<absl::StatusOr<JointTurn>> Take(const std::vector<size_t>& who, Duration patience,
                                              const std::vector<NodeTurn>& turns = {}) {
    std::vector<absl::StatusOr<JointTurn>> taken(who.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < who.size(); ++i) {
      threads.emplace_back([&, i] {
        taken[i] = watches_[who[i]]->Take(i < turns.size() ? turns[i] : NodeTurn(), patience);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return taken;
  }

 private:
  const std::shared_ptr<Store> store_ = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<JointWatch>> watches_;
};

NodeTurn Says(double processor, bool finished = false) {
  NodeTurn turn;
  turn.figures[Figure::kProcessor] = processor;
  turn.finished = finished;
  return turn;
}

TEST(JointWatch, AddsUpWhatIsKnownAndCountsWhoHasFinished) {
  Nodes nodes(4);
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& taken :
         nodes.Take({0, 1, 2, 3}, kLong, {Says(3), Says(5, true), Says(std::nan("")), Says(4)})) {
      ASSERT_TRUE(taken.ok()) << taken.status();
      EXPECT_EQ(taken->sums[Figure::kProcessor], 12);
      EXPECT_EQ(taken->known[static_cast<size_t>(Figure::kProcessor)], 3);
      EXPECT_TRUE(std::isnan(taken->sums[Figure::kFabric]));
      EXPECT_EQ(taken->finished, 1);
      EXPECT_THAT(taken->news, IsEmpty());
      EXPECT_EQ(taken->MeanOfOthers(Figure::kProcessor, 4), 4);
      EXPECT_EQ(taken->MeanOfOthers(Figure::kProcessor, std::nan("")), 4);
      EXPECT_TRUE(std::isnan(taken->MeanOfOthers(Figure::kFabric, 1)));
    }
  }
}

TEST(JointWatch, BringsNewsToNodeRank0Once) {
  Nodes nodes(3);
  nodes[1].AddNews("a of 1");
  nodes[1].AddNews("b of 1");
  nodes[2].AddNews("of 2");
  nodes[0].AddNews("it knows this");
  auto taken = nodes.Take({0, 1, 2}, kLong);
  EXPECT_THAT(taken[0]->news, ElementsAre("of 2", "a of 1", "b of 1"));
  EXPECT_THAT(taken[1]->news, IsEmpty());
  EXPECT_THAT(nodes.Take({0, 1, 2}, kLong)[0]->news, IsEmpty());
}

TEST(JointWatch, LeavesTooMuchNewsForTheNextTurnAndForgetsTheOldest) {
  Nodes nodes(2);
  const int kept = static_cast<int>(JointWatch::kMaxNews);
  for (int i = 0; i < kept + 5; ++i) nodes[1].AddNews(absl::StrCat("line ", i));
  auto taken = nodes.Take({0, 1}, kLong);
  ASSERT_THAT(taken[0]->news, SizeIs(JointWatch::kNewsPerTurn));
  EXPECT_EQ(taken[0]->news[0], "line 5");
  EXPECT_EQ(taken[0]->untold, kept - JointWatch::kNewsPerTurn);
  taken = nodes.Take({0, 1}, kLong);
  EXPECT_EQ(taken[0]->news[0], absl::StrCat("line ", 5 + JointWatch::kNewsPerTurn));
}

TEST(JointWatch, NamesWhoIsMissedAndGoesOnOnceItIsBack) {
  Nodes nodes(3);
  ASSERT_TRUE(nodes.Take({0, 1, 2}, kLong)[0].ok());
  nodes[1].AddNews("not lost");
  for (const auto& taken : nodes.Take({0, 1}, seconds(4))) {
    EXPECT_THAT(taken.status().message(), HasSubstr("rank 2"));
  }
  // It fails in the turn that it missed, then it has caught up with the others.
  EXPECT_FALSE(nodes.Take({2}, kLong)[0].ok());
  auto taken = nodes.Take({0, 1, 2}, kLong);
  ASSERT_TRUE(taken[0].ok()) << taken[0].status();
  EXPECT_THAT(taken[0]->news, ElementsAre("not lost"));
}

TEST(NewsLine, FitsAndCanBeReadWhateverTheReasonHolds) {
  for (const char* const piece : {"x", "\x01", "\"", "é", "\xff"}) {
    CheckResult change{"node1: heat", 7, "C", CheckState::kFail, "seen: ", "do: ", "{}"};
    for (int i = 0; i < 1000; ++i) {
      change.reason += piece;
      change.advice += piece;
    }
    const std::string line = NewsLine(change);
    EXPECT_LE(line.size(), JointWatch::kLineBytes) << piece;
    const auto read = FromLine(line);
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->name, "node1: heat");
    EXPECT_EQ(read->state, CheckState::kFail);
    EXPECT_THAT(read->reason, StartsWith("seen: "));
    EXPECT_THAT(read->advice, StartsWith("do: "));
  }
}

TEST(NewsLine, CutsNoCharacterInTwo) {
  CheckResult change{"heat", {}, "", CheckState::kWarn, "", "mend it"};
  for (int i = 0; i < 333; ++i) change.reason += "€";
  const auto read = FromLine(NewsLine(change));
  ASSERT_TRUE(read);
  EXPECT_THAT(change.reason, StartsWith(read->reason));
  EXPECT_EQ(read->reason.size() % 3, 0u);
  EXPECT_EQ(read->advice, "mend it");
}

TEST(ComparePace, NamesWhoTakesTwiceTheMeanOfTheOthers) {
  JointTurn turn;
  turn.sums[Figure::kProcessor] = 3 + 3 + 9;
  turn.known[static_cast<size_t>(Figure::kProcessor)] = 3;
  EXPECT_EQ(ComparePace(turn, 3, 3).state, CheckState::kOk);
  const CheckResult slow = ComparePace(turn, 9, 9);
  EXPECT_EQ(slow.state, CheckState::kWarn);
  EXPECT_EQ(slow.reason, "processor 9 ms, 3 times the 3 ms of the others");
  EXPECT_NE(slow.advice, "");
  // The node has reported it and has left its own figure out of the sums. It still compares itself
  // with the others.
  turn.sums[Figure::kProcessor] = 6;
  turn.known[static_cast<size_t>(Figure::kProcessor)] = 2;
  EXPECT_EQ(ComparePace(turn, std::nan(""), 9).state, CheckState::kWarn);
  EXPECT_EQ(ComparePace(turn, std::nan(""), 3.1).state, CheckState::kOk);
}

TEST(ComparePace, SaysNothingOfTwoNodes) {
  JointTurn turn;
  turn.sums[Figure::kProcessor] = 30;
  turn.known[static_cast<size_t>(Figure::kProcessor)] = 2;
  EXPECT_EQ(ComparePace(turn, 27, 27).state, CheckState::kUnknown);
  EXPECT_EQ(ComparePace(turn, std::nan(""), std::nan("")).state, CheckState::kUnknown);
}

TEST(CompareEnd, NamesWhoIsLateWhenMostHaveFinished) {
  JointTurn turn;
  turn.finished = 2;
  EXPECT_EQ(CompareEnd(turn, 4, false).state, CheckState::kOk);
  turn.finished = 3;
  EXPECT_EQ(CompareEnd(turn, 4, true).state, CheckState::kOk);
  const CheckResult late = CompareEnd(turn, 4, false);
  EXPECT_EQ(late.state, CheckState::kWarn);
  EXPECT_EQ(late.reason, "3 of 4 nodes have finished, and workers of this one have not");
}

}  // namespace
}  // namespace hlaunch
