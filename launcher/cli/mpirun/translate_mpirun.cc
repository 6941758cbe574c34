// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/translate_mpirun.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/job_hosts.h"
#include "launcher/cli/mpirun/job_slots.h"
#include "launcher/cli/mpirun/launcher_settings.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/cli/mpirun/mpirun_words.h"
#include "launcher/cli/mpirun/parameter_files.h"
#include "launcher/cli/mpirun/rankfile.h"
#include "launcher/cli/mpirun/read_line.h"
#include "launcher/cli/mpirun/take_blocks.h"
#include "launcher/cli/mpirun/take_hosts.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/spelling.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using Words = absl::Span<const std::string>;

constexpr const char* kMpirunNames[] = {"mpirun",          "mpiexec",       "mpirun.openmpi",
                                        "mpiexec.openmpi", "orterun",       "prterun",
                                        "mpirun.mpich",    "mpiexec.mpich", "mpiexec.hydra"};
// Programs that write lines of mpirun, such as horovodrun and accelerate, ask it which words it
// has: they look for these names.
constexpr char kInPlaceOf[] = ", with the words of Open MPI's mpirun and of MPICH's mpiexec\n";
constexpr char kMpiexecTimeout[] = "MPIEXEC_TIMEOUT";  // Hydra and Open MPI.
// Options of hlaunch that say where ranks are, or how many of them.
constexpr const char* kSayWhere[] = {"--nproc-per-node", "--nnodes",        "--cluster",
                                     "--standalone",     "--rdzv-endpoint", "--master-addr"};

// The number of ranks for a list as in "localhost:2,localhost", which are 3. A number of slots that
// is none is returned as it is: hlaunch's own reader reports the error.
std::string SlotsHere(string_view hosts) {
  int64_t ranks = 0;
  for (const string_view host : absl::StrSplit(hosts, ',')) {
    const size_t colon = host.find(':');
    int slots = 1;
    if (colon != host.npos && !ParseInt(host.substr(colon + 1), 0, INT_MAX, &slots)) {
      return std::string(host.substr(colon + 1));
    }
    ranks += slots;
  }
  return absl::StrCat(ranks);
}

using List = std::vector<std::string>;

// "CMD ARGUMENTS %h"
std::string LaunchAgentOf(const MpirunLine& line) {
  if (absl::StrContains(line.shell, "%h")) return line.shell;
  return absl::StrCat(line.shell, line.shell_arguments.empty() ? "" : " ", line.shell_arguments,
                      " %h");
}

void AddHosts(const MpirunLine& line, List& words) {
  if (!line.shell.empty()) words.push_back(absl::StrCat("--launch-agent=", LaunchAgentOf(line)));
  if (!line.hostfile.empty()) words.push_back(absl::StrCat("--hostfile=", line.hostfile));
  if (line.hosts.empty()) return;
  words.push_back(absl::StrCat(line.hostfile.empty() ? "--hosts=" : "--include=", line.hosts));
}

void AddNumber(const MpirunLine& line, bool elsewhere, List& words) {
  if (!line.ranks.empty()) words.insert(words.end(), {line.ranks_word, line.ranks});
  if (!line.per_node.empty()) words.push_back(absl::StrCat("--nproc-per-node=", line.per_node));
  const bool none = line.ranks.empty() && line.per_node.empty() && !elsewhere;
  const bool own = Says(line, "--nproc-per-node");
  if (none && !own && line.every_word && !line.in_tasks) words.emplace_back("--nproc-per-node=cpu");
}

// Whether a plain hlaunch starts the nodes of a Slurm job from here.
bool StartsSlurmNodes(const Environment& environment) {
  return IsInAllocation(environment) && !environment.Get("SLURM_JOB_ID").empty() &&
         environment.Get("SLURM_JOB_NUM_NODES") != "1";
}

// Whether a scheduler whose nodes a plain hlaunch does not start from here gave the job several
// hosts.
bool HasSeveralHosts(const Environment& environment) {
  if (!environment.Get("SLURM_JOB_ID").empty() && !IsInShellOfSrun(environment)) return false;
  const ClusterPlace place = AllocationPlace(Surroundings{environment, "", {}, ""});
  return std::any_of(place.values.begin(), place.values.end(), [](const PlaceValue& value) {
    return value.name == "--nnodes" && value.value != "1";
  });
}

// The number of slots that a scheduler has counted for its job; empty if it has counted none.
std::string SlotsOfAllocation(const Environment& environment) {
  for (const PlaceValue& value : AllocationPlace({environment, "", {}, ""}).values) {
    if (value.name == "--hosts" && absl::StrContains(value.value, ":")) {
      return SlotsHere(value.value);
    }
  }
  return "";
}

// Whether the line names this host alone, with a number of slots.
bool CountsHere(const MpirunLine& line) {
  return line.hostfile.empty() && absl::StrContains(line.hosts, ':') && AreHere(line.hosts);
}

// Runs a job of this host alone without a start of hosts. Returns whether it is one.
bool KeepHere(bool hosts_by_default, MpirunLine& line) {
  if (!line.hostfile.empty() || line.hosts.empty() || !AreHere(line.hosts)) return false;
  if (line.ranks.empty() && line.per_node.empty()) line.ranks = SlotsHere(line.hosts);
  line.hosts.clear();
  if (hosts_by_default && !Says(line, "--nnodes")) line.words.emplace_back("--nnodes=1");
  return true;
}

// Whether an option of hlaunch says where the ranks are.
bool SaysWhere(const MpirunLine& line) {
  return std::any_of(std::begin(kSayWhere), std::end(kSayWhere),
                     [&line](const char* name) { return Says(line, name); });
}

// Adds what the line leaves open, from variables of other launchers and of a scheduler.
void AddVariables(const Environment& environment, MpirunLine& line) {
  const std::string timeout = environment.Get(kMpiexecTimeout);
  if (!timeout.empty() && !Says(line, "--timeout")) {
    line.words.push_back(absl::StrCat("--timeout=", timeout));
  }
  const bool has_variable = !environment.Get(kEnvHosts).empty();
  const bool hosts_by_default = has_variable || StartsSlurmNodes(environment);
  const bool kept_here = KeepHere(hosts_by_default, line);
  const bool here = kept_here || !hosts_by_default;
  const bool named = !line.hosts.empty() || !line.hostfile.empty();
  const bool says_where = has_variable || kept_here || named || SaysWhere(line);
  const bool says_number = !line.ranks.empty() || !line.per_node.empty();
  line.in_tasks = !says_where && IsOneOfSeveralTasks(environment);
  const std::string nodes = environment.Get("SLURM_STEP_NUM_NODES");
  // With several tasks on a node, hlaunch itself counts them.
  const bool one_each = line.in_tasks && environment.Get("SLURM_STEP_NUM_TASKS") == nodes;
  if (one_each && !says_number) line.per_node = "1";
  const bool only_task = !says_where && IsOnlyTask(environment);
  line.job_decides = !says_where;
  // Its step has one slot.
  if (only_task && !says_number) line.ranks = "1";
  if (!says_where && !only_task && IsInAllocation(environment) &&
      (!says_number || HasSeveralHosts(environment))) {
    line.hosts = kHostsOfAllocation;
    if (!says_number) line.ranks = SlotsOfAllocation(environment);
  }
  const bool one_host = here && line.hosts.empty() && line.hostfile.empty();
  // A variable does not replace the scheduler's own starter.
  if (one_host || (line.shell_is_default && !named)) line.shell.clear();
  // All of Hydra's rounds go to the only host.
  if (line.goes_round && one_host && !line.ranks.empty()) line.per_node.clear();
}

// Refuses mpirun in each of several processes of another mpirun, as Open MPI does. A plain hlaunch
// would make one job of them.
absl::Status CheckOuterMpirun(const Environment& environment, const MpirunLine& line) {
  if (SaysWhere(line)) return absl::OkStatus();
  const ClusterPlace outer = FindPlace({environment, "", {}, ""}, "auto");
  const bool several = outer.tasks.has_value() || !outer.refusal.ok() ||
                       std::any_of(outer.values.begin(), outer.values.end(), [](const auto& value) {
                         return value.name == "--nnodes" && value.value != "1";
                       });
  if (outer.cluster != "mpirun" || !several) return absl::OkStatus();
  return InvalidArgumentError(
      absl::StrCat("this mpirun runs in several processes of another one (",
                   outer.refusal.ok() ? outer.reason
                                      : "see OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_RANK and PMI_ID",
                   "), and each would start its ranks: leave one of the two out, or add ",
                   "--standalone for a job in each"));
}

// The options of hlaunch for what mpirun does by default. Typed words follow them.
List Beginning(const MpirunLine& line) {
  List words = {"hlaunch"};
  if (!line.every_word) return words;
  words.insert(words.end(), {"--no-python", "--oversubscribe", "--console=all", "--mpi=any",
                             "--compat=openmpi"});
  if (line.reads_stdin && !Says(line, "--detach")) words.emplace_back("--stdin=0");
  if (!line.verbose && !line.tells) words.emplace_back("--quiet");
  words.push_back(absl::StrCat("--log-prefix=", line.prefix.empty() ? "none" : line.prefix));
  return words;
}

List WordsOf(const MpirunLine& line) {
  List words = Beginning(line);
  words.insert(words.end(), line.words.begin(), line.words.end());
  if (!line.every_word && !line.prefix.empty()) {
    words.push_back(absl::StrCat("--log-prefix=", line.prefix));
  }
  AddHosts(line, words);
  AddNumber(line, !line.hosts.empty() || !line.hostfile.empty(), words);
  if (!line.cores.empty()) {
    words.push_back(absl::StrCat("--bind=core:", line.cores));
  } else if (const std::string& bind = line.bind.empty() ? line.per_object : line.bind;
             !bind.empty()) {
    words.push_back(absl::StrCat("--bind=", bind));
  }
  return words;
}

// Whether ranks by node are one on each host. Then they are numbered host by host. `read` may be
// empty: no file is read.
bool IsOneOnEach(const ReadTextFn& read, const MpirunLine& line) {
  if (line.per_node == "1") return true;
  int ranks = 0;
  if (!line.maps_by_node || !line.per_node.empty() || !ParseInt(line.ranks, 1, INT_MAX, &ranks)) {
    return false;
  }
  if (!line.hostfile.empty() && read == nullptr) return false;
  HostWish wish;
  wish.hostfile = line.hostfile;
  (line.hostfile.empty() ? wish.hosts : wish.include) = line.hosts;
  const absl::StatusOr<std::vector<TargetHost>> hosts = FindHosts(wish, read);
  return hosts.ok() && static_cast<size_t>(ranks) <= hosts->size();
}

// Refuses ranks by node over several hosts, unless there is one on each. On one host both orders
// are the same.
absl::Status CheckOrder(const ReadTextFn& read, MpirunLine& line) {
  if (line.by_node.empty() || (line.hosts.empty() && line.hostfile.empty())) {
    return absl::OkStatus();
  }
  if (IsOneOnEach(read, line)) {
    line.per_node = "1";
    return absl::OkStatus();
  }
  return InvalidArgumentError(
      absl::StrCat(line.by_node,
                   ": ranks are numbered host by host; write --map-by ppr:N:node for the ranks of "
                   "each host, or leave it out"));
}

// The arguments of ssh itself.
std::string SshArguments(const MpirunLine& line) {
  return line.shell.empty() ? line.shell_arguments : "";
}

}  // namespace

bool IsMpirunName(string_view argv0) {
  const string_view name = argv0.substr(argv0.rfind('/') + 1);
  return std::any_of(std::begin(kMpirunNames), std::end(kMpirunNames),
                     [name](const char* each) { return name == each; });
}

absl::StatusOr<TranslatedLine> TranslateMpirun(Words words, const Environment& environment,
                                               const ReadTextFn& read, string_view argv0) {
  HLAUNCH_ASSIGN_OR_RETURN(ReadLine found, ReadMpirunLine(words, /*by_that_name=*/true));
  TranslatedLine translated;
  if (found.wants_help) {
    translated.text_to_print = MpirunHelp();
    return translated;
  }
  MpirunLine& line = found.line;
  if (absl::EndsWith(argv0, ".hydra") || absl::EndsWith(argv0, ".mpich")) {
    line.says_hydras_words = true;
  }
  if (Says(line, "--version") && !line.verbose) {
    translated.text_to_print = absl::StrCat("hlaunch ", VersionText(), kInPlaceOf);
    return translated;
  }
  const Words rest = words.subspan(found.used);
  if (rest.empty() && line.words.empty() && line.app_file.empty()) {
    return InvalidArgumentError("no program given; usage: mpirun [options] program [args...]");
  }
  List command(rest.begin(), rest.end());
  if (!command.empty()) HLAUNCH_RETURN_IF_ERROR(CheckDashes(command.front()));
  LeaveOutUnset(environment, line);
  HLAUNCH_RETURN_IF_ERROR(TakeBlocks(read, environment, line, command));
  HLAUNCH_RETURN_IF_ERROR(TakeLauncherVariables(environment, line));
  HLAUNCH_RETURN_IF_ERROR(TakeParameterFiles(environment, read, line));
  if (!line.rankfile.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::string text, read(line.rankfile));
    HLAUNCH_RETURN_IF_ERROR(TakeRankfile(text, line.rankfile, line));
  }
  HLAUNCH_RETURN_IF_ERROR(TakeHostsOfFile(read, line));
  HLAUNCH_RETURN_IF_ERROR(CheckOuterMpirun(environment, line));
  HLAUNCH_RETURN_IF_ERROR(CheckThisHost(environment, read, line));
  if (int slots = 0; CountsHere(line) && ParseInt(SlotsHere(line.hosts), 1, INT_MAX, &slots)) {
    HLAUNCH_RETURN_IF_ERROR(KeepSlotsHere(slots, line));
  }
  AddVariables(environment, line);
  HLAUNCH_RETURN_IF_ERROR(TakeHostsOfJob(environment, read, line));
  HLAUNCH_RETURN_IF_ERROR(KeepJobSlots(environment, line));
  SpreadOverHosts(read, line);
  HLAUNCH_RETURN_IF_ERROR(CheckOrder(read, line));
  LeaveOutUnset(environment, line);  // Of what variables and files have added.
  translated.words = WordsOf(line);
  if (!command.empty() && command.front() != "--") translated.words.emplace_back("--");
  translated.words.insert(translated.words.end(), command.begin(), command.end());
  translated.remarks = line.remarks;
  translated.ssh_arguments = SshArguments(line);
  return translated;
}

absl::StatusOr<TranslatedLine> TranslateWithin(Words words) {
  HLAUNCH_ASSIGN_OR_RETURN(ReadLine found, ReadMpirunLine(words, /*by_that_name=*/false));
  TranslatedLine translated;
  HLAUNCH_RETURN_IF_ERROR(CheckOrder(nullptr, found.line));
  translated.words = WordsOf(found.line);
  const Words rest = words.subspan(found.used);
  translated.words.insert(translated.words.end(), rest.begin(), rest.end());
  translated.remarks = found.line.remarks;
  translated.ssh_arguments = SshArguments(found.line);
  return translated;
}

}  // namespace hlaunch
