// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/parse_int.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

struct System {
  std::string word;
  std::string variable;  // Without this variable the system is not there.
  std::function<ClusterPlace(const Surroundings& surroundings, bool told)> find;
};

System FromRow(const SystemRow& row) {
  return {row.word, row.proof.front(),
          [&row](const Surroundings& surroundings, bool) { return FindByRow(row, surroundings); }};
}

// Returns the systems in the order in which they are asked. A site's own come first. Then come the
// innermost, since mpirun starts its processes within a scheduler's job, and services run their
// nodes as pods.
std::vector<System> Systems(const std::vector<SystemRow>& own) {
  std::vector<System> systems;
  for (const SystemRow& row : own) systems.push_back(FromRow(row));
  systems.push_back({"mpirun", "OMPI_COMM_WORLD_SIZE or MPI_LOCALNRANKS", FindMpirun});
  systems.push_back({"slurm", "SLURM_JOB_ID", FindSlurm});
  systems.push_back({"pbs", "PBS_JOBID", FindPbs});
  systems.push_back({"lsf", "LSB_JOBID", FindLsf});
  systems.push_back({"sge", "PE_HOSTFILE", FindSge});
  systems.push_back({"sagemaker", "SM_HOSTS", FindSageMaker});
  systems.push_back({"vertex", "CLUSTER_SPEC", FindVertex});
  for (const SystemRow& row : KnownSystems()) systems.push_back(FromRow(row));
  systems.push_back(
      {"kubernetes", "KUBERNETES_SERVICE_HOST or JOB_COMPLETION_INDEX", FindKubernetes});
  systems.push_back({"env", "MASTER_ADDR with NODE_RANK or RANK", FindByHand});
  systems.push_back({"mpirun", "PMIX_RANK or PMI_ID", FindRankAlone});
  return systems;
}

// Returns the parent of `pid`; 0 if `pid` is gone or has no parent.
int ParentOf(int pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");  // A process name may contain anything.
  if (name_end == stat.npos || name_end + 4 >= stat.size()) return 0;
  int parent = 0;
  const std::vector<std::string> words = absl::StrSplit(stat.substr(name_end + 4), ' ');
  return absl::SimpleAtoi(words.front(), &parent) ? parent : 0;
}

// Returns whether Slurm or an mpirun has left variables whose meaning depends on the processes
// above this one.
bool NamesProcesses(const Environment& environment) {
  for (const absl::string_view start : {"SLURM_", "OMPI_", "MPI", "PMI", "MV2_"}) {
    if (environment.HasAny(start)) return true;
  }
  return false;
}

// Returns true if this process is in another pid namespace than the host's, whose number is fixed:
// PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h.
bool HasOwnPids() {
  std::error_code error;
  const auto link = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return !error && link.string() != "pid:[4026531836]";
}

// Returns true if the place comes from MASTER_ADDR alone, which may be left over.
bool IsAddressAlone(const ClusterPlace& place) {
  return place.cluster == "env" && place.refusal.ok() && place.values.size() <= 2 &&
         std::all_of(place.values.begin(), place.values.end(), [](const PlaceValue& value) {
           return value.name == "--master-addr" || value.name == "--master-port";
         });
}

// A rank of several of a job of hlaunch's or of torch's agent is no node: each would start a job of
// its own.
std::optional<ClusterPlace> WithinAJob(const Environment& environment) {
  const std::string rank = environment.Get("RANK"), size = environment.Get("WORLD_SIZE");
  const bool ours = !environment.Get(kEnvJobId).empty();
  // Without a LOCAL_RANK the variables of torch's agent are left over.
  const bool torchs = !environment.Get(kEnvRunId).empty() && !environment.Get("LOCAL_RANK").empty();
  if ((!ours && !torchs) || IntFrom(rank, 0, INT_MAX) < 0 || IntFrom(size, 2, INT_MAX) < 0) {
    return std::nullopt;
  }
  return RefusedTask(
      ours ? "hlaunch" : "torchrun",
      absl::StrCat("this is rank ", rank, " of ", size, " of a job of ",
                   ours ? "hlaunch that runs (HLAUNCH_JOB_ID)"
                        : "torch's agent that runs (TORCHELASTIC_RUN_ID)",
                   ": each of its ranks would start a job of its own. Leave one of the two ",
                   ours ? "hlaunch out, or start the outer one with --per-node" : "launchers out",
                   "; for a job in each rank add --standalone"),
      rank);
}

}  // namespace

Surroundings SurroundingsOfThisProcess(Environment environment) {
  // Only a kernel bug could make a loop, but then this must not hang.
  constexpr size_t kMaxDepth = 1000;
  Surroundings surroundings;
  surroundings.environment = std::move(environment);
  surroundings.host = HostName();
  surroundings.own_pids = HasOwnPids();
  if (!NamesProcesses(surroundings.environment)) return surroundings;
  for (int pid = ::getpid(); pid > 0 && surroundings.ancestors.size() < kMaxDepth;
       pid = ParentOf(pid)) {
    surroundings.ancestors.push_back(pid);
  }
  return surroundings;
}

std::vector<std::string> ClusterWords(const std::vector<SystemRow>& own) {
  std::vector<std::string> words = {"auto", "none", kOwnCluster};
  for (const System& system : Systems(own)) {
    // Some systems have a row for each kind of job.
    if (std::find(words.begin(), words.end(), system.word) == words.end()) {
      words.push_back(system.word);
    }
  }
  return words;
}

ClusterPlace FindPlace(const Surroundings& surroundings, absl::string_view word,
                       const std::vector<SystemRow>& own) {
  if (word == "none") return NoPlace("--cluster none");
  if (word == kOwnCluster) return NoPlace("the cluster of this host's hlaunchd starts the nodes");
  const bool told = word != "auto";
  if (!told) {
    if (std::optional<ClusterPlace> within = WithinAJob(surroundings.environment)) return *within;
  }
  ClusterPlace nothing = NoPlace("no variable of a scheduler or of another launcher is set");
  std::string missing;
  bool explained = false;
  std::optional<ClusterPlace> start;
  for (const System& system : Systems(own)) {
    if (told && word != system.word) continue;
    ClusterPlace place = system.find(surroundings, told);
    // A system that says which node this is, is nearer to this process than its allocation.
    if (!place.start_reason.empty() && !told) {
      if (!start) start = std::move(place);
      continue;
    }
    if (place.found()) {
      if (start && IsAddressAlone(place)) break;
      // The warnings of the system around it about running on one node alone hold as well.
      const std::vector<std::string>& warnings = start ? start->warnings : nothing.warnings;
      if (place.no_nnodes.empty()) place.no_nnodes = absl::StrJoin(warnings, "; ");
      return place;
    }
    if (!place.reason.empty() && !std::exchange(explained, true)) nothing = std::move(place);
    missing = absl::StrCat(system.variable, " is not set here");
  }
  if (start) return *std::move(start);
  if (!told) return nothing;
  return RefusedPlace(std::string(word),
                      absl::StrCat("--cluster ", word, ": ", explained ? nothing.reason : missing));
}

uint16_t MeetingPort(uint64_t job, uint64_t step) {
  // kPorts is a prime, so that near jobs and steps differ. The sum stays below 32768, where Linux
  // begins to assign ports.
  constexpr uint64_t kFirst = 12000, kPorts = 16381;
  return static_cast<uint16_t>(kFirst + (16 * (job % kPorts) + step % kPorts) % kPorts);
}

ClusterPlace NoPlace(std::string reason) {
  ClusterPlace place;
  place.reason = std::move(reason);
  return place;
}

ClusterPlace RefusedPlace(std::string cluster, std::string message) {
  ClusterPlace place;
  place.cluster = std::move(cluster);
  place.reason = message;
  place.refusal = absl::InvalidArgumentError(message);
  return place;
}

ClusterPlace RefusedTask(std::string cluster, std::string message, absl::string_view rank) {
  ClusterPlace place = RefusedPlace(std::move(cluster), std::move(message));
  place.told_elsewhere = IntFrom(rank, 1, 1 << 30) > 0;
  return place;
}

Variable FirstSet(const Environment& environment, absl::string_view names) {
  const std::vector<std::string> all = absl::StrSplit(names, '|');
  for (const std::string& name : all) {
    if (std::string value = environment.Get(name); !value.empty()) return {name, std::move(value)};
  }
  return {all.front(), ""};
}

int IntFrom(absl::string_view text, int min, int max) {
  int value = -1;
  return ParseInt(text, min, max, &value) ? value : -1;
}

NamedDevices CountNamedDevices(const Environment& environment) {
  for (const char* name :
       {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
        "HABANA_VISIBLE_MODULES", "ZE_AFFINITY_MASK", "ASCEND_RT_VISIBLE_DEVICES"}) {
    const std::string value = environment.Get(name);
    // Schedulers that hide all devices write values that are no ids.
    if (value.empty() || value == "NoDevFiles" || value == "-1" || value == "all") continue;
    const std::vector<std::string> ids = absl::StrSplit(value, ',', absl::SkipWhitespace());
    return {static_cast<int>(ids.size()), name};
  }
  return {};
}

}  // namespace hlaunch
