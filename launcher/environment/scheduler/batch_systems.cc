// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// PBS (also OpenPBS and Torque), LSF and Grid Engine, by their documented variables.

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/environment/scheduler/hostlist.h"
#include "launcher/text/printable.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// PBS_NODEFILE and LSB_DJOB_HOSTFILE have one line for each process that a node was given.
HostsOfJob ReadNodeFile(const std::string& path) {
  HostsOfJob hosts;
  std::ifstream file(path);
  for (std::string line; hosts.names.size() <= kMaxNodes && std::getline(file, line);) {
    const std::string name(absl::StripAsciiWhitespace(line));
    if (!name.empty()) hosts.Add(name, 1);
  }
  return hosts;
}

// LSB_MCPU_HOSTS: "hostA 4 hostB 4".
HostsOfJob ReadHostSlots(const std::string& text) {
  HostsOfJob hosts;
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    hosts.Add(words[i], std::max(IntFrom(words[i + 1], 1, kMaxNodes), 0));
  }
  return hosts;
}

// Returns the leading number of "4711.server" and "4711[7].server".
uint64_t LeadingNumber(absl::string_view text) {
  uint64_t number = 0;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return absl::SimpleAtoi(text.substr(0, digits), &number) ? number : 0;
}

struct Origin {
  const char* cluster;
  std::string job;  // The scheduler's id for the job. `job_variable` has it.
  const char* job_variable;
  std::string reason;
  const char* hosts_variable;
  const char* rank_source;
};

ClusterPlace PlaceAmong(const Surroundings& surroundings, const Origin& origin,
                        const HostsOfJob& hosts, int rank) {
  if (hosts.names.empty() || rank < 0 || rank >= static_cast<int>(hosts.names.size())) {
    return RefusedPlace(
        origin.cluster,
        absl::StrCat(origin.hosts_variable, " names ", hosts.names.size(),
                     " hosts, and which of them ", surroundings.host, " is cannot be told by ",
                     origin.rank_source, kSayPlaceYourself));
  }
  ClusterPlace place;
  place.cluster = origin.cluster;
  place.reason = origin.reason;
  place.Add("--nnodes", absl::StrCat(hosts.names.size()), origin.hosts_variable, "different hosts");
  place.Add("--node-rank", absl::StrCat(rank), origin.rank_source, "of the hosts in their order");
  place.Add("--rdzv-endpoint",
            absl::StrCat(hosts.names[0], ":", MeetingPort(LeadingNumber(origin.job), 0)),
            origin.hosts_variable, "its first host; port 12000 + 16 * job mod 16381");
  place.Add("--rdzv-id", PrintableLine(origin.job), origin.job_variable, "the scheduler's job id");
  const NamedDevices visible = CountNamedDevices(surroundings.environment);
  const int slots = hosts.slots[static_cast<size_t>(rank)];
  if (visible.count > 0) {
    place.Add("--nproc-per-node", absl::StrCat(visible.count), visible.source,
              "a worker for each device that this process may use");
  } else if (slots > 0) {
    place.Add("--nproc-per-node", absl::StrCat(slots), origin.hosts_variable,
              "the processes that this host was given");
  }
  return place;
}

// PALS, HPE's launcher within a job of PBS: `mpiexec --ppn 1 hlaunch …`.
ClusterPlace FindPals(const Surroundings& surroundings, const std::string& job,
                      const HostsOfJob& hosts) {
  const Environment& environment = surroundings.environment;
  const int here = IntFrom(environment.Get("PALS_LOCAL_SIZE"), 1, kMaxNodes);
  if (here > 1 || IntFrom(environment.Get("PALS_LOCAL_RANKID"), 1, kMaxNodes) > 0) {
    return RefusedPlace("pbs",
                        "mpiexec of PALS started several processes on this node and hlaunch "
                        "is started once in each, where it starts all workers: write "
                        "mpiexec --ppn 1 hlaunch --nproc-per-node N ...; for a job of its "
                        "own in every process add --standalone");
  }
  const Origin origin = {
      "pbs",
      job,
      "PBS_JOBID",
      absl::StrCat("a process of PALS in PBS job ", PrintableLine(job), " (PALS_NODEID)"),
      "PBS_NODEFILE",
      "PALS_NODEID"};
  return PlaceAmong(surroundings, origin, hosts,
                    IntFrom(environment.Get("PALS_NODEID"), 0, kMaxNodes - 1));
}

// PE_HOSTFILE of Grid Engine: "node1 8 all.q@node1 UNDEFINED".
HostsOfJob ReadParallelHosts(const std::string& path) {
  HostsOfJob hosts;
  std::ifstream file(path);
  for (std::string line; hosts.names.size() <= kMaxNodes && std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() >= 2) hosts.Add(words[0], std::max(IntFrom(words[1], 1, kMaxNodes), 0));
  }
  return hosts;
}

}  // namespace

void HostsOfJob::Add(const std::string& name, int count) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    names.push_back(name);
    slots.push_back(count);
  } else {
    slots[static_cast<size_t>(found - names.begin())] += count;
  }
}

int HostsOfJob::Find(const std::string& own) const {
  const auto found = std::find_if(names.begin(), names.end(), [&own](const std::string& name) {
    return name == own || absl::StartsWith(own, absl::StrCat(name, ".")) ||
           absl::StartsWith(name, absl::StrCat(own, "."));
  });
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

HostsOfJob HostsOfPbs(const Surroundings& surroundings) {
  return ReadNodeFile(surroundings.root + surroundings.environment.Get("PBS_NODEFILE"));
}

HostsOfJob HostsOfLsf(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  HostsOfJob hosts = ReadHostSlots(environment.Get("LSB_MCPU_HOSTS"));
  // Of very many hosts only the file has all.
  if (hosts.names.empty()) {
    hosts = ReadNodeFile(surroundings.root + environment.Get("LSB_DJOB_HOSTFILE"));
  }
  return hosts;
}

HostsOfJob HostsOfSge(const Surroundings& surroundings) {
  return ReadParallelHosts(surroundings.root + surroundings.environment.Get("PE_HOSTFILE"));
}

ClusterPlace FindPbs(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string job = environment.Get("PBS_JOBID");
  if (job.empty()) return {};
  const int node = IntFrom(environment.Get("PBS_NODENUM"), 0, kMaxNodes - 1);
  const int task = IntFrom(environment.Get("PBS_TASKNUM"), 0, 1 << 30);
  const HostsOfJob hosts = HostsOfPbs(surroundings);
  if (!environment.Get("PALS_NODEID").empty()) return FindPals(surroundings, job, hosts);
  // The job script is task 1 on node 0.
  if (!told && node <= 0 && task <= 1) {
    ClusterPlace place = NoPlace(absl::StrCat(
        "PBS job ", PrintableLine(job), ", in its script or shell (PBS_NODENUM and PBS_TASKNUM ",
        "name no task that pbsdsh started): write pbsdsh -- hlaunch ... to run on all nodes, or ",
        "hlaunch --hosts allocation ..., which goes by ssh"));
    if (hosts.names.size() > 1) {
      place.warnings.push_back(
          absl::StrCat("this runs on one node of the ", hosts.names.size(), " of ", place.reason));
    }
    return place;
  }
  const int by_name = hosts.Find(surroundings.host);
  const Origin origin = {
      "pbs",          job,
      "PBS_JOBID",    absl::StrCat("a task of PBS job ", PrintableLine(job), " (PBS_TASKNUM)"),
      "PBS_NODEFILE", by_name >= 0 ? "this host's name" : "PBS_NODENUM"};
  return PlaceAmong(surroundings, origin, hosts, by_name >= 0 ? by_name : node);
}

ClusterPlace FindLsf(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string job = environment.Get("LSB_JOBID");
  if (job.empty()) return {};
  HostsOfJob hosts = HostsOfLsf(surroundings);
  const std::string size = environment.Get("JSM_NAMESPACE_SIZE");
  if (!told && size.empty()) {
    const std::string reason =
        absl::StrCat("LSF job ", PrintableLine(job), ", and nothing tells its script from a task ",
                     "(JSM_NAMESPACE_SIZE of jsrun is not set): write hlaunch --hosts ",
                     "allocation ... in the script, or blaunch hlaunch --cluster lsf ..., to run ",
                     "on all nodes");
    if (hosts.names.size() <= 1) return NoPlace(reason);
    return RefusedPlace("lsf", absl::StrCat("this is one node of the ", hosts.names.size(), " of ",
                                            reason, ", or --nnodes 1 for this node alone"));
  }
  const int local = IntFrom(environment.Get("JSM_NAMESPACE_LOCAL_SIZE"), 1, kMaxNodes);
  if (local > 1) {
    return RefusedPlace(
        "lsf",
        absl::StrCat("jsrun started ", local,
                     " tasks on this host (JSM_NAMESPACE_LOCAL_SIZE) and hlaunch is ",
                     "started once on each: write jsrun --rs_per_host 1 --tasks_per_rs 1 hlaunch ",
                     "--nproc-per-node ", local,
                     " ...; for a job of its own in every task add --standalone"));
  }
  // If jobs start on a launch node, that node is the first host, and jsrun never uses it.
  if (hosts.names.size() > 1 &&
      IntFrom(size, 1, kMaxNodes) + 1 == static_cast<int>(hosts.names.size())) {
    hosts.names.erase(hosts.names.begin());
    hosts.slots.erase(hosts.slots.begin());
  }
  const Origin origin = {"lsf",
                         job,
                         "LSB_JOBID",
                         absl::StrCat("a task of LSF job ", PrintableLine(job),
                                      size.empty() ? " (--cluster lsf)" : " (JSM_NAMESPACE_SIZE)"),
                         "LSB_MCPU_HOSTS",
                         "this host's name"};
  return PlaceAmong(surroundings, origin, hosts, hosts.Find(surroundings.host));
}

ClusterPlace FindSge(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const std::string file = environment.Get("PE_HOSTFILE"), job = environment.Get("JOB_ID");
  if (file.empty() || job.empty()) return {};
  const HostsOfJob hosts = HostsOfSge(surroundings);
  if (!told) {
    const std::string reason = absl::StrCat(
        "job ", PrintableLine(job), " of Grid Engine, and nothing tells its script from a task: ",
        "write hlaunch --hosts allocation ... in the script, or qrsh -inherit HOST hlaunch ",
        "--cluster sge ... for each host of PE_HOSTFILE");
    if (hosts.names.size() <= 1) return NoPlace(reason);
    return RefusedPlace("sge", absl::StrCat("this is one host of the ", hosts.names.size(), " of ",
                                            reason, ", or --nnodes 1 for this node alone"));
  }
  const Origin origin = {
      "sge",         job,
      "JOB_ID",      absl::StrCat("a host of job ", PrintableLine(job), " (--cluster sge)"),
      "PE_HOSTFILE", "this host's name"};
  return PlaceAmong(surroundings, origin, hosts, hosts.Find(surroundings.host));
}

std::string FirstHostOfJob(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  HostsOfJob hosts = HostsOfPbs(surroundings);
  if (hosts.names.empty()) hosts = HostsOfLsf(surroundings);
  if (hosts.names.empty()) {
    const auto slurm = ExpandHostlist(environment.Get("SLURM_JOB_NODELIST"), kMaxNodes);
    if (slurm.ok() && !slurm->empty()) return slurm->front();
  }
  return hosts.names.empty() ? "" : hosts.names.front();
}

}  // namespace hlaunch
