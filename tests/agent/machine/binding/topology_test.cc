// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/binding/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "agent/machine/binding/binding_text.h"
#include "agent/node_facts.h"
#include "tests/agent/servers.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<int> Field(const Topology& topology, int Cpu::*field) {
  std::vector<int> values;
  for (const Cpu& cpu : topology.cpus) values.push_back(cpu.*field);
  return values;
}

TEST(LoadTopology, NamesCoresAndCachesByTheirFirstCpu) {
  const Server server = {"", 2, 1, 2, 1, 2, {}};
  const Topology topology = server.Load();
  EXPECT_FALSE(topology.is_this_machine);
  EXPECT_THAT(Field(topology, &Cpu::id), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Field(topology, &Cpu::core), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(Field(topology, &Cpu::cache), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(Field(topology, &Cpu::node), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(Field(topology, &Cpu::socket), ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
}

// Two fast cores with two threads each share 12 MB; each of two slow cores has its own smaller
// cache.
TEST(LoadTopology, ReadsAHybridLaptopFromXml) {
  const auto topology = LoadTopology({"", "", HLAUNCH_TOPOLOGIES "/hybrid_laptop.xml"});
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_THAT(Field(*topology, &Cpu::id), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Field(*topology, &Cpu::core), ElementsAre(0, 0, 2, 2, 4, 5));
  EXPECT_THAT(Field(*topology, &Cpu::cache), ElementsAre(0, 0, 0, 0, 4, 4));
  EXPECT_THAT(Field(*topology, &Cpu::node), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(LoadTopology, OfThisMachineHasEveryCpuThatMayBeUsed) {
  const auto topology = LoadTopology();
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_TRUE(topology->is_this_machine);
  const std::vector<int> ids = Field(*topology, &Cpu::id);
  for (const int cpu : AllowedCpus()) EXPECT_THAT(ids, testing::Contains(cpu));
  const std::vector<int> cores = Field(*topology, &Cpu::core);
  EXPECT_THAT(std::set<int>(cores.begin(), cores.end()),
              SizeIs(static_cast<size_t>(PhysicalCores(ids))));
}

TEST(LoadTopology, RefusesWhatMakesNoSenseAndLeavesTheVariablesAsTheyWere) {
  EXPECT_EQ(LoadTopology({"", "sockets:many", ""}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadTopology({"", "", "/no/such.xml"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(::getenv("HWLOC_PLUGINS_PATH"), nullptr);
}

TEST(LoadTopology, TakesNoRootForThisMachineWhateverItHolds) {
  const std::string empty = testing::TempDir();
  const auto topology = LoadTopology({empty, "", ""});
  ASSERT_TRUE(topology.ok()) << topology.status();
  EXPECT_FALSE(topology->is_this_machine);
}

TEST(DescribeBinding, DrawsSocketsNodesAndCores) {
  const Server server = {"", 2, 2, 1, 4, 1, {0, 3}};
  const Topology topology = server.Load();
  const BindingPlan plan =
      PlanBinding(topology, AllCpus(topology), {BindMode::kNuma, 2, server.Places()});
  EXPECT_THAT(DescribeBinding(topology, AllCpus(topology), plan),
              ElementsAre("workers are bound to NUMA nodes near their devices (2 sockets, 4 NUMA "
                          "nodes, 16 cores, 16 CPUs)",
                          "local rank 0 [####|....][....|....] CPUs 0-3, 4 cores, memory of NUMA "
                          "node 0: near cuda 0",
                          "local rank 1 [....|....][....|####] CPUs 12-15, 4 cores, memory of NUMA "
                          "node 3: near cuda 1"));
}

TEST(DescribeBinding, ShowsWhatMayNotBeUsedAndWhatIsShared) {
  const Topology topology = kTwoSockets.Load();
  EXPECT_EQ(DrawCpus(topology, {0, 1, 20}, {0}), "[#.------------------][.-------------------]");
  const BindingPlan plan = PlanBinding(topology, {0, 1, 2, 3}, {BindMode::kNuma, 2, {}});
  EXPECT_THAT(DescribeBinding(topology, {0, 1, 2, 3}, plan)[1],
              HasSubstr("CPUs 0-3, 2 cores each for 2 workers"));
  EXPECT_THAT(DescribeBinding(topology, {0, 1}, {{}, "workers are not bound: x", ""}),
              ElementsAre(HasSubstr("workers are not bound: x (2 sockets"),
                          HasSubstr("all local ranks [##------------------][")));
}

TEST(DescribeBinding, HoldsALargeMachineInOneLine) {
  const Topology topology = kMi300x.Load();
  const std::string picture = DrawCpus(topology, AllCpus(topology), {0, 1, 2, 192, 193, 194, 3});
  EXPECT_EQ(picture, "[#+" + std::string(30, '.') + "][" + std::string(32, '.') + "]");
}

}  // namespace
}  // namespace hlaunch
