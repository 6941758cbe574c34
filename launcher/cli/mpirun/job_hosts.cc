// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/job_hosts.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "launcher/environment/scheduler/place.h"

namespace hlaunch {
namespace {

// The ids from here on belong to batch scripts, salloc's shell and so on.
constexpr uint64_t kFirstSpecialStep = 0xfffffff0;

}  // namespace

bool IsInAllocation(const Environment& environment) {
  const auto all_set = [&environment](std::initializer_list<const char*> names) {
    return std::none_of(names.begin(), names.end(),
                        [&environment](const char* name) { return environment.Get(name).empty(); });
  };
  for (const char* inner : {"SLURM_HET_SIZE", "JSM_NAMESPACE_SIZE", "TORCHELASTIC_RUN_ID"}) {
    if (all_set({inner})) return false;
  }
  const std::string task = environment.Get("PBS_TASKNUM");
  if (!task.empty() && task != "1") return false;  // The job's script is task 1.
  const bool in_step = all_set({"SLURM_STEP_ID"}) || all_set({"SLURM_STEP_NUM_TASKS"});
  if (in_step && environment.Get("SLURM_STEP_NUM_TASKS") != "1") {
    // A shell is the first task of its step, and the other tasks have ended.
    const bool first =
        environment.Get("SLURM_STEP_NUM_NODES") == "1" && environment.Get("SLURM_PROCID") == "0";
    if (!IsInShellOfSrun(environment) || !first) return false;
  }
  return all_set({"SLURM_JOB_ID", "SLURM_JOB_NODELIST"}) ||
         all_set({"PBS_JOBID", "PBS_NODEFILE"}) || all_set({"LSB_JOBID", "LSB_MCPU_HOSTS"}) ||
         all_set({"JOB_ID", "PE_HOSTFILE"});
}

bool IsOnlyTask(const Environment& environment) {
  uint64_t step = 0;
  // A batch script has the variables of a step in which it was submitted. Its own number differs.
  const std::string tasks = environment.Get("SLURM_NTASKS");
  if (!tasks.empty() && tasks != "1") return false;
  return absl::SimpleAtoi(environment.Get("SLURM_STEP_ID"), &step) && step < kFirstSpecialStep &&
         environment.Get("SLURM_STEP_NUM_TASKS") == "1" && !IsInShellOfSrun(environment) &&
         environment.Get("TORCHELASTIC_RUN_ID").empty();
}

JobHosts HostsOfJobAround(const Environment& environment) {
  if (!IsInAllocation(environment)) return {};
  const ClusterPlace place = AllocationPlace({environment, "", {}, ""});
  JobHosts job;
  job.refusal = place.refusal;
  for (const PlaceValue& value : place.values) {
    if (value.name == "--launch-agent") job.starter = value.value;
    if (value.name != "--hosts") continue;
    if (auto hosts = ParseHosts(value.value); hosts.ok()) job.hosts = *std::move(hosts);
  }
  if (place.slots.size() == job.hosts.size()) job.slots = place.slots;
  const absl::string_view reason = place.reason;  // "in TITLE: …"
  job.title = std::string(absl::StripPrefix(reason.substr(0, reason.find(": ")), "in "));
  return job;
}

}  // namespace hlaunch
