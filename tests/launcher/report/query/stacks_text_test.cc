// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/stacks_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr size_t kMost = 10000;

JobAnswer Answer() {
  JobAnswer answer{1, 6, "", {}};
  answer.nodes = {
      {"node0", 0, 0, 2, StacksText({{{0, 1}, {"wait (a.py:1)", "main (a.py:9)"}, ""}}, kMost), ""},
      {"node1", 1, 2, 2,
       StacksText({{{2}, {"wait (a.py:1)", "main (a.py:9)"}, ""}, {{3, 9}, {}, "is stopped"}},
                  kMost),
       ""},
      {"node2", 2, 4, 2, StacksText({{{4, 5}, {"load (b.py:2)"}, ""}}, kMost), ""}};
  return answer;
}

TEST(StackListText, ShowsEachStackOnceTheRarestFirst) {
  JobAnswer answer = Answer();
  const auto stacks = TakeStacks(answer);
  answer.nodes[2].problem = "has left the job";
  EXPECT_EQ(StackListText("llama", answer, stacks),
            "job llama, round 1: 6 workers\n"
            "\n"
            "ranks 4,5 (node2):\n"
            "  load (b.py:2)\n"
            "\n"
            "ranks 0-2 (node0, node1):\n"
            "  wait (a.py:1)\n"
            "  main (a.py:9)\n"
            "\n"
            "rank 3 (node1): no stack: is stopped\n"
            "node2 (ranks 4,5) has left the job\n");
}

TEST(TakeStacks, BelievesANodeOfItsOwnRanksAlone) {
  JobAnswer answer = Answer();
  answer.nodes[0].text = "{}";
  const auto stacks = TakeStacks(answer);
  EXPECT_EQ(answer.nodes[0].problem, "has an answer that cannot be read");
  ASSERT_THAT(stacks, SizeIs(3));
  EXPECT_THAT(stacks[1].ranks, ElementsAre(3));  // Rank 9 is not on node1.
}

TEST(StackListJson, HoldsAllOfIt) {
  JobAnswer answer = Answer();
  const auto stacks = TakeStacks(answer);
  const auto json = nlohmann::json::parse(StackListJson("llama", answer, stacks));
  ASSERT_EQ(json["stacks"].size(), 3u);
  EXPECT_EQ(json["stacks"][0]["problem"], "is stopped");
  EXPECT_EQ(json["stacks"][2]["ranks"], nlohmann::json({0, 1, 2}));
  EXPECT_EQ(json["stacks"][2]["frames"][1], "main (a.py:9)");
  EXPECT_TRUE(json["stacks"][2]["problem"].is_null());
  EXPECT_EQ(json["silent"].size(), 0u);
}

}  // namespace
}  // namespace hlaunch
