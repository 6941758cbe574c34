// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The nodes that a scheduler gave a job, and how it runs a command on one of them. The command must
// get our stdin. pbsdsh does not pass stdin on, so ssh starts the nodes of PBS.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/environment/scheduler/hostlist.h"
#include "launcher/text/printable.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

struct Allocation {
  const char* system = "";
  std::string title;  // "Slurm job 17"
  const char* hosts_variable = "";
  std::vector<std::string> hosts;
  std::vector<int> slots;  // One for each host, or empty.
  std::string starter;     // In the format of --launch-agent; empty: ssh.
  bool asked = false;      // Somebody asked for a number of processes, even if it is one on each.
};

// Returns 4 for "4" and for "a100:4"; -1: neither form.
int CountOfGres(absl::string_view text) {
  return IntFrom(text.substr(text.rfind(':') + 1), 1, 1 << 20);
}

// The GPUs of each node if the job does not count them by node. A step gets by itself the GPUs that
// the job asked for by node. Of GPUs asked for by task or for all nodes it would get the wrong
// number. Returns 0 if no option is needed or the number is unknown.
int GpusPerNode(const Environment& environment, const std::vector<int>& tasks, size_t nodes) {
  if (!environment.Get("SLURM_GPUS_PER_NODE").empty() || nodes == 0) return 0;
  const int per_task = CountOfGres(environment.Get("SLURM_GPUS_PER_TASK"));
  const bool alike = !tasks.empty() && std::all_of(tasks.begin(), tasks.end(),
                                                   [&](int each) { return each == tasks[0]; });
  if (per_task > 0) return alike ? per_task * tasks[0] : 0;
  const int total = CountOfGres(environment.Get("SLURM_GPUS"));
  const int count = static_cast<int>(nodes);
  return total > 0 && total % count == 0 ? total / count : 0;
}

Allocation OfSlurm(const Environment& environment) {
  Allocation found{"slurm", "", "SLURM_JOB_NODELIST", {}, {}, ""};
  const Variable job = FirstSet(environment, "SLURM_JOB_ID|SLURM_JOBID");
  const auto hosts = ExpandHostlist(environment.Get(found.hosts_variable), kMaxNodes);
  // In a heterogeneous job the list has only the nodes of one part.
  if (job.value.empty() || environment.Get(found.hosts_variable).empty() ||
      !environment.Get("SLURM_HET_SIZE").empty()) {
    return {};
  }
  found.title = absl::StrCat("Slurm job ", PrintableLine(job.value));
  if (!hosts.ok()) return found;
  found.hosts = *hosts;
  const auto tasks = ExpandCounts(environment.Get("SLURM_TASKS_PER_NODE"), kMaxNodes);
  if (tasks.ok() && tasks->size() == hosts->size()) found.slots = *tasks;
  // Slurm sets it for every step, so in a shell of `srun --pty` it says nothing.
  found.asked = !environment.Get("SLURM_NTASKS").empty() && !IsInShellOfSrun(environment);
  // The step gets all that the job has there. Without a number of CPUs it gets those of the whole
  // node.
  found.starter = "srun -w %h -N1 -n1 --overlap --mem=0 --cpu-bind=none --mpi=none";
  const int gpus = GpusPerNode(environment, found.slots, found.hosts.size());
  if (gpus > 0) absl::StrAppend(&found.starter, " --gres=gpu:", gpus);
  return found;
}

Allocation OfHosts(const char* system, const std::string& title, const char* variable,
                   HostsOfJob hosts, const char* starter) {
  Allocation found{system, title, variable, std::move(hosts.names), {}, starter};
  const bool counted =
      std::all_of(hosts.slots.begin(), hosts.slots.end(), [](int n) { return n > 0; });
  if (counted) found.slots = std::move(hosts.slots);
  return found;
}

Allocation Find(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  if (Allocation slurm = OfSlurm(environment); !slurm.title.empty()) return slurm;
  const std::string pbs = environment.Get("PBS_JOBID"), lsf = environment.Get("LSB_JOBID");
  if (!pbs.empty()) {
    return OfHosts("pbs", absl::StrCat("PBS job ", PrintableLine(pbs)), "PBS_NODEFILE",
                   HostsOfPbs(surroundings), "");
  }
  if (!lsf.empty()) {
    return OfHosts("lsf", absl::StrCat("LSF job ", PrintableLine(lsf)), "LSB_MCPU_HOSTS",
                   HostsOfLsf(surroundings), "blaunch %h");
  }
  const std::string sge = environment.Get("JOB_ID");
  if (sge.empty() || environment.Get("PE_HOSTFILE").empty()) return {};
  Allocation found = OfHosts("sge", absl::StrCat("job ", PrintableLine(sge), " of Grid Engine"),
                             "PE_HOSTFILE", HostsOfSge(surroundings), "qrsh -inherit %h");
  found.asked = true;  // -pe has a number.
  return found;
}

// Whether some host was given more than one process.
bool HasMany(const Allocation& found) {
  return found.slots.size() == found.hosts.size() &&
         std::any_of(found.slots.begin(), found.slots.end(), [](int slots) { return slots > 1; });
}

// Makes "a:4,b:4" with the slots that the job was given, since -n, the number of all ranks, goes by
// them. Leaves the slots out if none is above one: schedulers count one process on each node if the
// user gives no number.
std::string HostsText(const Allocation& found) {
  const size_t count = found.hosts.size();
  const bool counted = HasMany(found);
  std::vector<std::string> words;
  for (size_t i = 0; i < count; ++i) {
    words.push_back(counted ? absl::StrCat(found.hosts[i], ":", found.slots[i]) : found.hosts[i]);
  }
  return absl::StrJoin(words, ",");
}

}  // namespace

ClusterPlace AllocationPlace(const Surroundings& surroundings) {
  const Allocation found = Find(surroundings);
  if (found.hosts.empty() && !found.title.empty()) {
    const std::string value = surroundings.environment.Get(found.hosts_variable);
    return RefusedPlace(
        "none", absl::StrCat(found.hosts_variable, "=", PrintableLine(value.substr(0, 80)),
                             ": the hosts of ", found.title, " cannot be read there; name them ",
                             "with --hosts A,B, or write --cluster none for this host alone"));
  }
  if (found.hosts.empty()) {
    return RefusedPlace("none",
                        "--hosts allocation: no variable of Slurm, PBS, LSF or Grid Engine names "
                        "the hosts of a job that this would be in; name them with --hosts A,B");
  }
  ClusterPlace place;
  place.cluster = found.system;
  const std::string starter = found.starter.substr(0, found.starter.find(' '));
  place.start_reason = absl::StrCat("in ", found.title, ": its nodes are started from here by ",
                                    starter.empty() ? "ssh" : starter);
  place.reason = place.start_reason;
  if (HasMany(found) || found.asked) place.slots = found.slots;
  place.Add("--nnodes", absl::StrCat(found.hosts.size()), found.hosts_variable, "nodes of the job");
  place.Add("--hosts", HostsText(found), found.hosts_variable,
            "the job's nodes, which are started from here");
  if (!found.starter.empty()) {
    place.Add("--launch-agent", found.starter, found.hosts_variable, "the scheduler's own starter");
  }
  return place;
}

bool StartsAllocation(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  if (surroundings.alone || IsInWorker(environment)) return false;
  const Allocation found = Find(surroundings);
  // salloc's shell may run on a login node, which is not one of the job's.
  const bool elsewhere = environment.Get("SLURMD_NODENAME").empty() && !found.hosts.empty() &&
                         found.hosts[0] != surroundings.host &&
                         !absl::StartsWith(surroundings.host, absl::StrCat(found.hosts[0], "."));
  return found.hosts.size() > 1 || elsewhere;
}

}  // namespace hlaunch
