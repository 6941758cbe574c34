// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/job_map.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(JobMap, KnowsWhereARankIs) {
  const JobMap map({{2, "ns", "a"}, {1, "other", "b"}, {3, "", "c"}});
  EXPECT_EQ(map.world_size(), 6);
  EXPECT_EQ(map.name_space(), "ns");
  EXPECT_EQ(map.Hosts(), "a,b,c");
  EXPECT_EQ(map.Ranks(), "0,1;2;3,4,5");
  EXPECT_EQ(map.NodeOf(0), 0);
  EXPECT_EQ(map.NodeOf(2), 1);
  EXPECT_EQ(map.NodeOf(5), 2);
  EXPECT_EQ(map.NodeOf(6), -1);
  EXPECT_EQ(map.NodeOf(-1), -1);
  EXPECT_EQ(map.NodesOf({0, 1, 5, 99}), (std::vector<int>{0, 2}));
  EXPECT_EQ(map.AllNodes(), (std::vector<int>{0, 1, 2}));
}

TEST(JobMap, TellsHostsOfOneNameApartAndTakesNoOtherLetters) {
  const JobMap map({{1, "", "a"}, {1, "", "a"}, {1, "", "x[1]"}});
  EXPECT_EQ(map.Hosts(), "a,a.1,node2");
  EXPECT_TRUE(map.SharesHost(0) && map.SharesHost(1) && !map.SharesHost(2));
}

TEST(JobMap, ReadsWhatNodesSayOfThemselves) {
  const std::string lines = JobMap::ToLine({2, "ns-1", "a"}) + JobMap::ToLine({1, "ns-2", "b"});
  const auto map = JobMap::FromLines(lines, 2);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->Ranks(), "0,1;2");
  EXPECT_EQ(map->name_space(), "ns-1");
}

TEST(JobMap, RefusesWhatNoNodeSays) {
  for (const char* lines : {"", "1 ns a", "1 ns a\n1 ns b\n1 ns c\n", "x ns a\n1 ns b\n",
                            "0 ns a\n1 ns b\n", "1048576 ns a\n1 ns b\n", "1 ns\n1 ns b\n"}) {
    EXPECT_FALSE(JobMap::FromLines(lines, 2).ok()) << lines;
  }
}

}  // namespace
}  // namespace hlaunch
