// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/hang/told_hang.h"
#include "asio/io_context.hpp"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// One of two nodes with a rank each. Its rank has exited with 0, which is known without a question.
class Node {
 public:
  explicit Node(int node_rank, bool worker_store = false) {
    Assignment assignment;
    assignment.node_rank = node_rank;
    assignment.first_rank = node_rank;
    assignment.num_nodes = assignment.world_size = 2;
    assignment.worker_store = worker_store;
    WorkerSpec spec;
    spec.argv = {"/bin/true"};
    spec.nproc = 1;
    spec.hang_rule.timeout = milliseconds(400);
    NodeFacts facts;
    facts.tap = "/nowhere";
    facts.host = "node0";
    watch = HangWatch::Open(
        loop, assignment, spec, facts,
        [this](const HangCulprit& culprit) { culprits.push_back(culprit); },
        [this](const std::string& text) { texts.push_back(text); });
  }

  template <typename Done>
  void Await(Done done) {
    const Instant deadline = MonotonicClock().Now() + kPatience;
    while (!done() && MonotonicClock().Now() < deadline) loop.run_one_for(milliseconds(20));
    EXPECT_TRUE(done());
  }

  asio::io_context loop;
  std::vector<HangCulprit> culprits;
  std::vector<std::string> texts;
  std::unique_ptr<HangWatch> watch;
};

// What node rank 1 says whose rank waits for rank 0.
std::string Rank1Waits() {
  RankSnapshot rank;
  rank.rank = 1;
  rank.host = "node1";
  rank.pid = 7;
  rank.recorded = rank.still = true;
  rank.state = 'S';
  rank.groups = {{"0", "default_pg", {0, 1}, {{5, "all_reduce", "[4] Float", true}}}};
  return SnapshotText({rank});
}

TEST(HangWatch, NodeRank0TellsTheOthersWhatTheirRanksWaitFor) {
  for (const bool worker_store : {false, true}) {
    Node node(0, worker_store);
    ASSERT_NE(node.watch, nullptr);
    node.watch->Ended(0, /*succeeded=*/true);
    node.watch->Hear(1, Rank1Waits());
    node.Await([&] { return !node.texts.empty(); });
    const auto hang = ParseToldHang(node.texts.front());
    ASSERT_TRUE(hang);
    EXPECT_THAT(hang->text, HasSubstr("rank 0 (node0, local rank 0, pid 0) has not come to it: it "
                                      "has exited with 0"));
    ASSERT_EQ(hang->reasons.count(1), 1u);
    EXPECT_TRUE(node.culprits.empty());

    Node other(1);
    other.watch->Hear(0, node.texts.front());
    other.watch->Hear(0, node.texts.front());  // It is told again and again.
    ASSERT_EQ(other.culprits.size(), 1u);
    EXPECT_EQ(other.culprits[0].local_rank, 0);
    EXPECT_THAT(other.culprits[0].reason, HasSubstr("rank 0 has exited, and it waits in"));
  }
}

TEST(HangWatch, NodeRank0TakesBackWhatItHasTold) {
  Node node(0);
  node.watch->Ended(0, /*succeeded=*/true);
  node.watch->Hear(1, Rank1Waits());
  node.Await([&] { return node.texts.size() == 1; });
  node.watch->Hear(1, "-");
  node.Await([&] { return node.texts.size() == 2; });
  EXPECT_EQ(node.texts[1], "");
}

TEST(HangWatch, OtherNodesTellNodeRank0WhatTheirRanksDoOnceTheyStandStill) {
  Node node(1);
  node.watch->Ended(0, /*succeeded=*/true);
  node.Await([&] { return !node.texts.empty(); });
  const auto ranks = ParseSnapshots(node.texts.front());
  ASSERT_TRUE(ranks);
  ASSERT_EQ(ranks->size(), 1u);
  EXPECT_TRUE(ranks->front().ended);
  EXPECT_EQ(ranks->front().rank, 1);
}

}  // namespace
}  // namespace hlaunch
