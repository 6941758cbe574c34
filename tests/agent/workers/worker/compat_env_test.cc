// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/compat_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Assignment SecondOfTwoEqualNodes() {
  Assignment round;
  round.node_rank = 1;
  round.num_nodes = 2;
  round.first_rank = 4;
  round.world_size = 8;
  return round;
}

WorkerSpec FourWorkersWithCompat(std::set<std::string> compat,
                                 std::vector<std::string> inherited = {}) {
  WorkerSpec spec;
  spec.nproc = 4;
  spec.compat = std::move(compat);
  spec.inherited_env = std::move(inherited);
  return spec;
}

std::vector<std::string> Entries(const Assignment& round, int local_rank, const WorkerSpec& spec) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : CompatEnv(round, local_rank, spec, "gpu-07")) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

TEST(CompatEnv, IsEmptyUnlessAskedFor) {
  EXPECT_TRUE(Entries(SecondOfTwoEqualNodes(), 0, FourWorkersWithCompat({})).empty());
}

TEST(CompatEnv, OfOpenMpiIsComplete) {
  EXPECT_THAT(Entries(SecondOfTwoEqualNodes(), 2, FourWorkersWithCompat({"openmpi"})),
              UnorderedElementsAre("OMPI_COMM_WORLD_RANK=6", "OMPI_COMM_WORLD_SIZE=8",
                                   "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                                   "OMPI_COMM_WORLD_NODE_RANK=2", "OMPI_UNIVERSE_SIZE=8"));
}

TEST(CompatEnv, OfSlurmIsComplete) {
  EXPECT_THAT(
      Entries(SecondOfTwoEqualNodes(), 2,
              FourWorkersWithCompat({"slurm"}, {"SLURM_JOB_NODELIST=gpu-[06-07]"})),
      UnorderedElementsAre("SLURM_PROCID=6", "SLURM_LOCALID=2", "SLURM_NODEID=1", "SLURM_NTASKS=8",
                           "SLURM_NPROCS=8", "SLURM_NTASKS_PER_NODE=4", "SLURM_STEP_NUM_TASKS=8",
                           "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NODELIST=gpu-[06-07]"));
}

TEST(CompatEnv, SaysWorkersPerNodeOnlyWhereTheyAreOneNumber) {
  Assignment round = SecondOfTwoEqualNodes();
  round.world_size = 6;
  for (const std::string& entry :
       Entries(round, 0, FourWorkersWithCompat({"slurm"}, {"SLURM_JOB_NODELIST=a,b"}))) {
    EXPECT_THAT(entry, ::testing::Not(HasSubstr("NTASKS_PER_NODE")));
  }
}

TEST(CompatEnv, KnowsTheNodesFromTheStepThenTheAllocationThenItself) {
  Assignment alone;
  alone.world_size = 4;
  alone.num_nodes = 1;
  struct Row {
    std::vector<std::string> inherited;
    const char* list;
  };
  const Row rows[] = {
      {{"SLURM_STEP_NODELIST=step", "SLURM_JOB_NODELIST=job"}, "step"},
      {{"SLURM_JOB_NODELIST=job", "SLURM_STEP_NODELIST=step"}, "step"},
      {{"SLURM_JOB_NODELIST=job", "SLURM_STEP_NODELIST="}, "job"},
      {{"SLURM_JOB_NODELISTS=x"}, "gpu-07"},
      {{}, "gpu-07"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(Entries(alone, 0, FourWorkersWithCompat({"slurm"}, row.inherited)),
                ::testing::Contains(absl::StrCat("SLURM_STEP_NODELIST=", row.list)));
  }
}

TEST(CompatEnv, ChoosesTheOnlyVisibleDevice) {
  WorkerSpec spec = FourWorkersWithCompat({"openmpi"});
  spec.virtual_local_rank = true;
  const auto entries = Entries(SecondOfTwoEqualNodes(), 2, spec);
  EXPECT_THAT(entries, ::testing::Contains("OMPI_COMM_WORLD_LOCAL_RANK=0"));
  EXPECT_THAT(entries, ::testing::Contains("OMPI_COMM_WORLD_NODE_RANK=2"));
}

TEST(CheckCompat, RefusesWhatIsNoSet) {
  EXPECT_TRUE(CheckCompat(FourWorkersWithCompat({"openmpi", "slurm"}), 1).ok());
  const absl::Status status = CheckCompat(FourWorkersWithCompat({"mpich"}), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "--compat mpich: there is no such set; openmpi and slurm are known");
}

TEST(CheckCompat, WantsTheListOfSeveralNodes) {
  const absl::Status status = CheckCompat(FourWorkersWithCompat({"slurm"}), 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("SLURM_JOB_NODELIST"));
  EXPECT_TRUE(CheckCompat(FourWorkersWithCompat({"slurm"}, {"SLURM_JOB_NODELIST=a,b"}), 2).ok());
}

}  // namespace
}  // namespace hlaunch
