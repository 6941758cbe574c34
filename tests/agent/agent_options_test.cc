// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent_options.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

AgentOptions Options() {
  AgentOptions options;
  options.info.host = "here";
  options.checks.log_directory = "/logs";
  options.health_interval = std::chrono::seconds(30);
  return options;
}

Assignment OfNodes(int nodes, Preflight preflight) {
  Assignment assignment;
  assignment.round = 4;
  assignment.node_rank = 1;
  assignment.num_nodes = nodes;
  assignment.master_addr = "10.0.0.1";
  assignment.master_port = 29500;
  assignment.preflight = preflight;
  return assignment;
}

TEST(PlanChecksBefore, MeetsTheOthersAtTheMasterStore) {
  const CheckPlan plan = PlanChecksBefore(Options(), OfNodes(3, Preflight::kQuick));
  EXPECT_FALSE(plan.full);
  ASSERT_TRUE(plan.joint);
  EXPECT_EQ(plan.joint->master, "10.0.0.1");
  EXPECT_EQ(plan.joint->port, 29500);
  EXPECT_EQ(plan.joint->round, 4u);
  EXPECT_EQ(plan.joint->node_rank, 1);
  EXPECT_EQ(plan.joint->size, 3);
  EXPECT_EQ(plan.joint->host, "here");
  EXPECT_FALSE(plan.joint->full);
  EXPECT_EQ(plan.watch, Duration::zero());
}

TEST(PlanChecksBefore, MeasuresInFull) {
  const CheckPlan plan = PlanChecksBefore(Options(), OfNodes(3, Preflight::kFull));
  EXPECT_TRUE(plan.full);
  EXPECT_TRUE(plan.joint->full);
}

TEST(PlanChecksBefore, MeetsNobodyWhereRank0ServesTheStore) {
  Assignment assignment = OfNodes(3, Preflight::kFull);
  assignment.worker_store = true;
  EXPECT_FALSE(PlanChecksBefore(Options(), assignment).joint);
  EXPECT_FALSE(PlanChecksDuring(Options(), assignment).joint);
}

TEST(PlanChecksDuring, RepeatsTheChecksAndSparesTheFileServer) {
  const CheckPlan plan = PlanChecksDuring(Options(), OfNodes(3, Preflight::kFull));
  EXPECT_EQ(plan.watch, std::chrono::seconds(30));
  EXPECT_EQ(plan.log_directory, "");
  EXPECT_FALSE(plan.full);
  EXPECT_TRUE(plan.joint);
}

}  // namespace
}  // namespace hlaunch
