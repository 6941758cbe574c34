// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/find_lost_node.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SignOfLife Answered(const char* host) { return {host, true, std::nullopt, milliseconds(10)}; }
SignOfLife Silent(const char* host, Duration silence) {
  return {host, false, std::nullopt, silence};
}
SignOfLife Broken(const char* host, Duration broken) { return {host, false, broken, broken}; }

TEST(FindLostNode, NamesWhoIsGoneAndWaitsForWhoMayAnswer) {
  const struct {
    std::vector<SignOfLife> nodes;
    std::optional<size_t> lost;
    std::string reason;
    Duration wait;
  } table[] = {
      {{}, std::nullopt, "", seconds(0)},
      {{Answered("node1"), Answered("node2")}, std::nullopt, "", seconds(0)},
      {{Answered("node1"), Silent("node2", seconds(2))}, std::nullopt, "", seconds(3)},
      {{Silent("node1", seconds(2)), Silent("node2", seconds(1))}, std::nullopt, "", seconds(4)},
      {{Answered("node1"), Silent("node2", seconds(5))}, 1, "it was not heard of for 5 s", {}},
      {{Silent("node1", seconds(5)), Silent("node2", seconds(6))},
       1,
       "it was not heard of for 6 s; so are: node1",
       {}},
      {{Broken("node1", milliseconds(100)), Answered("node2")},
       std::nullopt,
       "",
       milliseconds(400)},
      {{Broken("node1", milliseconds(500)), Silent("node2", seconds(2))},
       0,
       "its connection broke 0.5 s ago, and it did not come back",
       {}},
      {{Silent("node1", seconds(6)), Broken("node2", milliseconds(700))},
       1,
       "its connection broke 0.7 s ago, and it did not come back; so are: node1",
       {}},
      {{SignOfLife{"node1", false, milliseconds(100), seconds(5)}, Answered("node2")},
       0,
       "it was not heard of for 5 s",
       {}},
      {{SignOfLife{"node1", false, milliseconds(100), seconds(5)}, Silent("node2", seconds(6))},
       1,
       "it was not heard of for 6 s; so are: node1",
       {}},
  };
  for (const auto& row : table) {
    const LostNodeVerdict verdict = FindLostNode(row.nodes, Lease());
    EXPECT_EQ(verdict.lost, row.lost) << row.reason;
    EXPECT_EQ(verdict.reason, row.reason);
    EXPECT_EQ(verdict.wait, row.wait);
  }
}

}  // namespace
}  // namespace hlaunch
