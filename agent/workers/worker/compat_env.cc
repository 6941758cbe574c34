// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/compat_env.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using Variables = std::vector<std::pair<absl::string_view, std::string>>;

// The index by which scripts choose their device.
int DeviceRank(const WorkerSpec& spec, int local_rank) {
  return spec.virtual_local_rank ? 0 : local_rank;
}

void AddOpenMpi(const Assignment& round, int local_rank, const WorkerSpec& spec, Variables& env) {
  const std::string world_size = absl::StrCat(round.world_size);
  env.insert(env.end(), {
                            {kEnvOmpiRank, absl::StrCat(round.first_rank + local_rank)},
                            {kEnvOmpiSize, world_size},
                            {kEnvOmpiLocalRank, absl::StrCat(DeviceRank(spec, local_rank))},
                            {kEnvOmpiLocalSize, absl::StrCat(spec.nproc)},
                            // For Open MPI this counts the processes of all jobs on the node.
                            {kEnvOmpiNodeRank, absl::StrCat(local_rank)},
                            {kEnvOmpiUniverseSize, world_size},
                        });
}

// Slurm's node list: that of the step in which hlaunch was started, else that of the allocation.
absl::string_view SlurmNodeList(const WorkerSpec& spec) {
  absl::string_view list;
  for (const absl::string_view name : {kEnvSlurmJobNodeList, kEnvSlurmStepNodeList}) {
    for (absl::string_view entry : spec.inherited_env) {
      if (absl::ConsumePrefix(&entry, name) && absl::ConsumePrefix(&entry, "=") && !entry.empty()) {
        list = entry;
      }
    }
  }
  return list;
}

// The variables of the task. Slurm itself sets those of the allocation (SLURM_JOB_ID, SLURM_NNODES,
// …).
void AddSlurm(const Assignment& round, int local_rank, const WorkerSpec& spec,
              const std::string& host, Variables& env) {
  const std::string tasks = absl::StrCat(round.world_size);
  const absl::string_view nodes = SlurmNodeList(spec);
  env.insert(env.end(), {
                            {kEnvSlurmProcId, absl::StrCat(round.first_rank + local_rank)},
                            {kEnvSlurmLocalId, absl::StrCat(DeviceRank(spec, local_rank))},
                            {kEnvSlurmNodeId, absl::StrCat(round.node_rank)},
                            {kEnvSlurmNtasks, tasks},
                            {kEnvSlurmNprocs, tasks},
                            {kEnvSlurmStepNumTasks, tasks},
                            {kEnvSlurmStepNumNodes, absl::StrCat(round.num_nodes)},
                            {kEnvSlurmStepNodeList, nodes.empty() ? host : std::string(nodes)},
                        });
  // Set only if every node has the same number of tasks.
  if (round.world_size == spec.nproc * round.num_nodes) {
    env.emplace_back(kEnvSlurmTasksPerNode, absl::StrCat(spec.nproc));
  }
}

}  // namespace

std::vector<std::pair<absl::string_view, std::string>> CompatEnv(const Assignment& round,
                                                                 int local_rank,
                                                                 const WorkerSpec& spec,
                                                                 const std::string& host) {
  Variables env;
  if (spec.compat.count("openmpi") != 0) AddOpenMpi(round, local_rank, spec, env);
  if (spec.compat.count("slurm") != 0) AddSlurm(round, local_rank, spec, host, env);
  return env;
}

absl::Status CheckCompat(const WorkerSpec& spec, int max_nodes) {
  for (const std::string& name : spec.compat) {
    if (std::find(std::begin(kCompatSets), std::end(kCompatSets), name) == std::end(kCompatSets)) {
      return absl::InvalidArgumentError(absl::StrCat("--compat ", name, ": there is no such set; ",
                                                     absl::StrJoin(kCompatSets, " and "),
                                                     " are known"));
    }
  }
  if (spec.compat.count("slurm") != 0 && max_nodes > 1 && SlurmNodeList(spec).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--compat slurm: scripts would seek the job's nodes in ",
                     kEnvSlurmStepNodeList, "; set ", kEnvSlurmJobNodeList, " to their list"));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
