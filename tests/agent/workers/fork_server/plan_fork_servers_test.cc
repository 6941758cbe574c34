// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/plan_fork_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Command Rank(int rank) {
  Command command;
  command.argv = {"/usr/bin/python3", "-u", "train.py"};
  command.env = {"HOME=/root",
                 "RANK=" + std::to_string(rank),
                 "OMP_NUM_THREADS=2",
                 "MASTER_PORT=29400",
                 "JAX_NUM_PROCESSES=2",
                 "HLAUNCH_ROUND=1",
                 "HLAUNCH_COMM_STREAMS=2"};
  return command;
}

const Preload kTorch{false, {"torch"}};

TEST(PlanForkServers, MakesNoneUnlessTheUserWantsOne) {
  const ForkServerPlans plans = PlanForkServers({}, {Rank(0)});
  EXPECT_THAT(plans.plans, IsEmpty());
  EXPECT_EQ(plans.why_not, "");
}

TEST(PlanForkServers, GivesItTheVariablesThatRanksShareInAllRounds) {
  const ForkServerPlans plans = PlanForkServers(kTorch, {Rank(0), Rank(1)});
  ASSERT_THAT(plans.plans, SizeIs(1));
  EXPECT_THAT(plans.plans[0].command.env,
              ElementsAre("HOME=/root", "OMP_NUM_THREADS=2", "HLAUNCH_COMM_STREAMS=2"));
  EXPECT_THAT(plans.plans[0].unshared,
              ElementsAre("HLAUNCH_ROUND", "JAX_NUM_PROCESSES", "MASTER_PORT", "RANK"));
  EXPECT_EQ(plans.why_not, "");
}

TEST(PlanForkServers, LeavesOutTheRankOfALoneRankToo) {
  EXPECT_THAT(PlanForkServers(kTorch, {Rank(0)}).plans[0].command.env, Not(Contains("RANK=0")));
}

TEST(PlanForkServers, LeavesOutWhatDiffersBetweenRanks) {
  Command one = Rank(0), other = Rank(1);
  one.env.push_back("CUDA_VISIBLE_DEVICES=0");
  other.env.push_back("CUDA_VISIBLE_DEVICES=1");
  const ForkServerPlans plans = PlanForkServers(kTorch, {one, other});
  EXPECT_THAT(plans.plans[0].command.env, Not(Contains(HasSubstr("CUDA"))));
  EXPECT_THAT(plans.plans[0].unshared, Contains("CUDA_VISIBLE_DEVICES"));
}

TEST(PlanForkServers, MakesOneForEachNumaNode) {
  std::vector<Command> ranks = {Rank(0), Rank(1), Rank(2)};
  for (size_t i = 0; i < 3; ++i) {
    ranks[i].memory_node = i == 0 ? 0 : 1;
    ranks[i].cpus = {static_cast<int>(i)};
  }
  const ForkServerPlans plans = PlanForkServers(kTorch, ranks);
  ASSERT_THAT(plans.plans, SizeIs(2));
  EXPECT_THAT(plans.plans[1].command.cpus, ElementsAre(1, 2));
  EXPECT_TRUE(CanBecome(plans.plans[1], ranks[2]));
  EXPECT_FALSE(CanBecome(plans.plans[0], ranks[2]));
}

TEST(PlanForkServers, MakesNoneWhereLibrariesPlaceTheirThreadsOnRanksCpus) {
  std::vector<Command> ranks = {Rank(0), Rank(1)};
  for (int i = 0; i < 2; ++i) {
    ranks[static_cast<size_t>(i)].cpus = {i};
    ranks[static_cast<size_t>(i)].env.push_back("OMP_PROC_BIND=true");
  }
  const ForkServerPlans plans = PlanForkServers(kTorch, ranks);
  EXPECT_THAT(plans.plans, IsEmpty());
  EXPECT_THAT(plans.why_not, HasSubstr("OMP_PROC_BIND"));
}

TEST(PlanForkServers, LeavesOutRanksWithAnotherCommandLine) {
  std::vector<Command> ranks = {Rank(0), Rank(1)};
  ranks[1].argv.push_back("--local-rank=1");
  const ForkServerPlans plans = PlanForkServers(kTorch, ranks);
  ASSERT_THAT(plans.plans, SizeIs(1));
  EXPECT_FALSE(CanBecome(plans.plans[0], ranks[1]));
  EXPECT_EQ(plans.why_not, "the ranks' command lines differ");
}

TEST(PlanForkServers, LeavesOutProgramsAndTools) {
  Command program = Rank(0);
  program.argv = {"/bin/sh", "-c", "x"};
  EXPECT_THAT(PlanForkServers(kTorch, {program}).why_not, HasSubstr("not Python itself"));
  Command measured = Rank(0);
  measured.env.push_back("COVERAGE_PROCESS_START=/x");
  EXPECT_THAT(PlanForkServers(kTorch, {measured}).why_not, HasSubstr("COVERAGE_PROCESS_START"));
}

TEST(ForkServerPlan, ServesLaterRoundsUnlessTheVariablesChange) {
  const auto plan = [](std::vector<Command> ranks) {
    return PlanForkServers(kTorch, ranks).plans.at(0);
  };
  Command later = Rank(0);
  for (std::string& entry : later.env) {
    if (entry == "MASTER_PORT=29400") entry = "MASTER_PORT=1";
  }
  EXPECT_TRUE(plan({later}).IsServedBy(plan({Rank(0)})));
  later.env.push_back("X=1");
  EXPECT_FALSE(plan({later}).IsServedBy(plan({Rank(0)})));
}

}  // namespace
}  // namespace hlaunch
