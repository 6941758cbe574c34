// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `mpirun hlaunch ...` starts hlaunch once on every node, or several times. It may be Open MPI, or
// the mpiexec of MPICH and Intel MPI (Hydra).

#include <algorithm>
#include <climits>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/printable.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// The variables and options of one kind of mpirun.
struct Names {
  const char* kind;
  const char* size;
  const char* rank;
  const char* local_size;
  const char* local_rank;
  const char* once_a_node;  // The option for one process on each node.
};
constexpr Names kOpenMpi = {"Open MPI",
                            "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK",
                            "-N 1"};
constexpr Names kHydra = {"mpiexec",         "PMI_SIZE",        "PMI_RANK",
                          "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "-ppn 1"};
constexpr Names kMvapich = {"MVAPICH",
                            "MV2_COMM_WORLD_SIZE",
                            "MV2_COMM_WORLD_RANK",
                            "MV2_COMM_WORLD_LOCAL_SIZE",
                            "MV2_COMM_WORLD_LOCAL_RANK",
                            "-ppn 1"};

// Returns the kind that has started this process. Null: none has, or only some of its variables are
// set.
const Names* FindKind(const Environment& environment) {
  for (const Names* names : {&kOpenMpi, &kMvapich, &kHydra}) {
    if (environment.Get(names->size).empty()) continue;
    return environment.Get(names->local_size).empty() ? nullptr : names;
  }
  return nullptr;
}

// srun sets such variables for its own tasks if its PMIx plugin is used.
bool IsSruns(const Environment& environment, const Names& names) {
  return !environment.Get("SLURM_STEP_ID").empty() &&
         environment.Get("SLURM_PROCID") == environment.Get(names.rank) &&
         environment.Get("SLURM_STEP_NUM_TASKS") == environment.Get(names.size);
}

// IBM's Open MPI sets the variables for the tasks of jsrun. LSF knows the hosts of those tasks.
bool IsJsruns(const Environment& environment) {
  return !environment.Get("JSM_NAMESPACE_SIZE").empty() && !environment.Get("LSB_JOBID").empty();
}

// Returns the first address of "id;tcp://10.0.0.1,10.1.0.1:4242;tcp6://…" that is not loopback;
// empty if there is none.
std::string HostOfUri(absl::string_view uri) {
  for (absl::string_view part : absl::StrSplit(uri, ';')) {
    if (!absl::ConsumePrefix(&part, "tcp://")) continue;
    const absl::string_view addresses = part.substr(0, part.rfind(':'));
    for (const absl::string_view address : absl::StrSplit(addresses, ',')) {
      const auto host = ParseHost(address);
      if (host.ok() && !IsLoopbackLiteral(*host)) return *host;
    }
  }
  return "";
}

// Returns the host in a namespace of PRRTE, which Open MPI 5 uses: "prterun-node1-4711@1". Empty if
// there is none.
std::string HostOfNamespace(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "prterun-") && !absl::ConsumePrefix(&name, "prte-")) return "";
  const absl::string_view before_pid = name.substr(0, name.rfind('-'));
  const auto host = ParseHost(before_pid);
  return host.ok() && before_pid.size() < name.size() ? *host : "";
}

std::string OnceANode(const Names& names, int local) {
  return absl::StrCat("mpirun ", names.once_a_node, " hlaunch --nproc-per-node ", local, " ...");
}

// Returns a name that all processes of one mpirun on this node share, and no others; empty: none is
// known. Hydra has a process of its own on each node, which is the parent of the others there.
std::string NameOfMpirun(const Surroundings& surroundings) {
  const std::string name = surroundings.environment.Get("PMIX_NAMESPACE");
  // The end is kept, since the differing part comes after a host's name.
  constexpr size_t kKept = 48;
  if (!name.empty()) {
    return absl::StrCat("mpirun-", name.substr(name.size() - std::min(name.size(), kKept)));
  }
  for (const int pid : surroundings.ancestors) {
    std::ifstream file(absl::StrCat(surroundings.root, "/proc/", pid, "/comm"));
    std::string program;
    std::getline(file, program);
    if (program == "hydra_pmi_proxy" || program == "pmi_proxy") return absl::StrCat("hydra-", pid);
  }
  return "";
}

// Reads the tasks of this node if it has several and each node has as many. Unset: it cannot be
// told which processes they are, or how many nodes there are.
std::optional<NodeTasks> ReadTasks(const Surroundings& surroundings, const Names& names, int size,
                                   int rank, int local_size) {
  NodeTasks tasks;
  tasks.owner = names.kind;
  tasks.name = NameOfMpirun(surroundings);
  tasks.count = local_size;
  tasks.local = IntFrom(surroundings.environment.Get(names.local_rank), 0, local_size - 1);
  tasks.rank = rank;
  tasks.first_rank = rank - tasks.local;
  tasks.instead = OnceANode(names, local_size);
  const bool is_even = size % local_size == 0 && tasks.first_rank % local_size == 0;
  if (local_size < 2 || tasks.name.empty() || tasks.local < 0 || !is_even) return std::nullopt;
  return tasks;
}

void AddTasks(const NodeTasks& tasks, const Names& names, int size, ClusterPlace& place) {
  place.Add("--nnodes", absl::StrCat(size / tasks.count), names.size,
            absl::StrCat(size, " processes, ", tasks.count, " on each node"));
  place.Add("--node-rank", absl::StrCat(tasks.first_rank / tasks.count), names.rank,
            "by its processes' ranks");
  place.Add("--nproc-per-node", absl::StrCat(tasks.count), names.local_size,
            "a worker for each process on this node, and in it");
  place.Add("--devices", "none", names.local_size, "each process has its own");
  place.Add("--bind", "none", names.local_size, "each process has its own CPUs");
  place.told_elsewhere = tasks.local > 0;
  place.tasks = tasks;
}

// Adds where the nodes meet: the address that the user has passed on, else the host where mpirun
// itself runs, else the first host of the scheduler's job around it.
void AddEndpoint(const Surroundings& surroundings, const std::string& name, ClusterPlace& place) {
  const Environment& environment = surroundings.environment;
  uint64_t number = 0;
  const bool numbered = absl::SimpleAtoi(name, &number);
  const int chosen = IntFrom(environment.Get("MASTER_PORT"), 1, 65535);
  const std::string port = absl::StrCat(chosen > 0 ? chosen
                                        : numbered ? MeetingPort(number, 0)
                                                   : kDefaultRdzvPort);
  if (const std::string host = environment.Get("MASTER_ADDR"); !host.empty()) {
    place.Add("--rdzv-endpoint", absl::StrCat(host, ":", port), "MASTER_ADDR",
              "handed on by mpirun's user");
    return;
  }
  const std::string uri = environment.Get("OMPI_MCA_orte_hnp_uri");
  if (const std::string host = HostOfUri(uri); !host.empty()) {
    place.Add("--rdzv-endpoint", absl::StrCat(host, ":", port), "OMPI_MCA_orte_hnp_uri",
              "where mpirun runs, which must be one of the nodes");
    return;
  }
  if (const std::string host = FirstHostOfJob(surroundings); !host.empty()) {
    place.Add("--rdzv-endpoint", absl::StrCat(host, ":", port), "the scheduler's list of hosts",
              "its first");
    return;
  }
  if (const std::string host = HostOfNamespace(name); !host.empty()) {
    place.Add("--rdzv-endpoint", absl::StrCat(host, ":", port), "PMIX_NAMESPACE",
              "where mpirun runs, which must be one of the nodes");
  }
}

}  // namespace

ClusterPlace FindMpirun(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const Names* const kind = FindKind(environment);
  if (kind == nullptr) return {};
  const Names& names = *kind;
  if (!told && (IsSruns(environment, names) || IsJsruns(environment))) return {};
  const int size = IntFrom(environment.Get(names.size), 1, kMaxNodes);
  const int rank = IntFrom(environment.Get(names.rank), 0, size - 1);
  const int local = IntFrom(environment.Get(names.local_size), 1, kMaxNodes);
  if (size < 0 || rank < 0 || local < 0) {
    return RefusedPlace("mpirun", absl::StrCat(names.size, ", ", names.rank, " and ",
                                               names.local_size, " do not fit together; give ",
                                               "--cluster none, and say where the nodes meet"));
  }
  const std::optional<NodeTasks> tasks = ReadTasks(surroundings, names, size, rank, local);
  if (local > 1 && !tasks) {
    return RefusedTask(
        "mpirun",
        absl::StrCat(names.kind, " started ", local, " processes on this node (", names.local_size,
                     "), and it cannot be told how many nodes there are, for not each has as many, "
                     "or which of the node's processes are the same mpirun's: write ",
                     OnceANode(names, local),
                     "; for a job of its own in every process add --standalone"),
        environment.Get(names.local_rank));
  }
  ClusterPlace place;
  place.cluster = "mpirun";
  place.reason = absl::StrCat("one process of ", size, " of ", names.kind, " (", names.size, ")");
  if (tasks) {
    AddTasks(*tasks, names, size, place);
  } else {
    place.Add("--nnodes", absl::StrCat(size), names.size, "one process on every node");
    place.Add("--node-rank", absl::StrCat(rank), names.rank, "mpirun's rank of this process");
  }
  const std::string name = environment.Get("PMIX_NAMESPACE");
  AddEndpoint(surroundings, name, place);
  if (!name.empty()) place.Add("--rdzv-id", PrintableLine(name), "PMIX_NAMESPACE", "mpirun's job");
  place.no_endpoint =
      absl::StrCat(names.kind, " started ", size, " processes (", names.size, ") and tells none ",
                   "where the others are: add --rdzv-endpoint HOST, with the first node's name");
  return place;
}

ClusterPlace FindRankAlone(const Surroundings& surroundings, bool /*told*/) {
  const Environment& environment = surroundings.environment;
  // hlaunch's workers have such variables, and so have schedulers' tasks, which say how many they
  // are.
  for (const char* other :
       {kEnvJobId, "SLURM_STEP_ID", "JSM_NAMESPACE_SIZE", "FLUX_TASK_RANK", "PALS_RANKID"}) {
    if (!environment.Get(other).empty()) return {};
  }
  for (const auto& [rank, job] :
       {std::pair{"PMIX_RANK", "PMIX_NAMESPACE"}, {"PMI_ID", "PMI_PORT"}}) {
    const std::string value = environment.Get(rank);
    const std::string name = environment.Get(job);
    // A shell of srun whose other variables somebody has unset.
    if (absl::StartsWith(name, "slurm.pmix.")) continue;
    if (IntFrom(value, 0, INT_MAX) < 0 || name.empty()) continue;
    return RefusedTask("mpirun",
                       absl::StrCat("an MPI launcher started this process as its rank ", value,
                                    " (", rank, "), and does not tell of how many: start one ",
                                    "hlaunch on each node, with --nnodes N --rdzv-endpoint HOST; ",
                                    "for a job of its own in every process add --standalone"),
                       value);
  }
  return {};
}

}  // namespace hlaunch
