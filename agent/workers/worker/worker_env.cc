// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/worker_env.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/compat_env.h"
#include "agent/workers/worker/keeper.h"
#include "proto/base/address.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using Variables = std::vector<std::pair<absl::string_view, std::string>>;

absl::string_view NameOf(absl::string_view entry) { return entry.substr(0, entry.find('=')); }

// "SIGTERM,SIGINT"
std::string Names(const SignalNumbers& signals) {
  return absl::StrJoin(
      signals, ",", [](std::string* out, int signal) { absl::StrAppend(out, SignalName(signal)); });
}

// The devices that hlaunch was given in CUDA_VISIBLE_DEVICES; unset: it may use all of the host's.
std::optional<std::vector<std::string>> VisibleDevices(const WorkerSpec& spec) {
  for (absl::string_view entry : spec.inherited_env) {
    if (NameOf(entry) != kEnvCudaVisibleDevices || !absl::StrContains(entry, '=')) continue;
    std::vector<std::string> devices =
        absl::StrSplit(entry.substr(entry.find('=') + 1), ',', absl::SkipWhitespace());
    for (std::string& device : devices) absl::StripAsciiWhitespace(&device);
    return devices;
  }
  return std::nullopt;
}

// The one device of this worker: the entry at its local rank in the list that hlaunch was given;
// empty if the list has no such entry.
std::string OwnDevice(const WorkerSpec& spec, int local_rank) {
  const auto devices = VisibleDevices(spec);
  if (!devices) return absl::StrCat(local_rank);
  const auto index = static_cast<size_t>(local_rank);
  return index < devices->size() ? (*devices)[index] : "";
}

// The changes that this worker's device makes to its environment.
const std::vector<EnvChange>& DeviceChanges(const WorkerSpec& spec, int local_rank) {
  static const std::vector<EnvChange> kNone;
  const auto index = static_cast<size_t>(local_rank);
  return index < spec.device_env.size() ? spec.device_env[index] : kNone;
}

// True for names that must not be set if a worker itself starts the others of its node, since each
// of those gets its own number from that worker. By these names frameworks see that a launcher has
// already started all ranks.
bool IsOfOneRank(absl::string_view name) {
  for (const char* one :
       {kEnvRank, kEnvWorldSize, kEnvLocalRank, kEnvLocalWorldSize, kEnvRoleRank, kEnvRoleWorldSize,
        kEnvRunId, kEnvLocalSize, kEnvJaxNumProcesses, kEnvJaxProcessId}) {
    if (name == one) return true;
  }
  return false;
}

// The length of the name at the start of `text`.
size_t NameLength(absl::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(),
                                    [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
  return static_cast<size_t>(end - text.begin());
}

// Names in arguments that stand for a value of the worker's environment.
constexpr std::pair<const char*, const char*> kPlaceWords[] = {
    {"rank", kEnvRank},
    {"node_rank", kEnvNodeRank},
    {"nnodes", kEnvGroupWorldSize},
    {"world_size", kEnvWorldSize},
    {"master_addr", kEnvMasterAddr},
    {"master_port", kEnvMasterPort},
};

// The value of NAME in `env`, a list of NAME=value; null if it is not there.
const std::string* EntryOf(const std::vector<std::string>& env, absl::string_view name) {
  const auto entry = std::find_if(env.begin(), env.end(), [name](const std::string& one) {
    return NameOf(one) == name && name.size() < one.size();
  });
  return entry == env.end() ? nullptr : &*entry;
}

// Removes `${NAME}` or, for the local rank, also `$local_rank`, from the start of `text`. Returns
// the value that stands for it; null if nothing was removed.
std::optional<std::string> ConsumePlace(absl::string_view* text, int local_rank,
                                        const std::vector<std::string>* env) {
  absl::string_view rest = *text;
  if (!absl::ConsumePrefix(&rest, "$")) return std::nullopt;
  const bool braced = absl::ConsumePrefix(&rest, "{");
  const absl::string_view name = rest.substr(0, NameLength(rest));
  rest.remove_prefix(name.size());
  if (braced && !absl::ConsumePrefix(&rest, "}")) return std::nullopt;
  std::optional<std::string> value;
  if (name == "local_rank") value = absl::StrCat(local_rank);
  for (const auto& [word, variable] : kPlaceWords) {
    if (env == nullptr || !braced || name != word) continue;
    const std::string* const entry = EntryOf(*env, variable);
    if (entry != nullptr) value = entry->substr(absl::string_view(variable).size() + 1);
  }
  if (value) *text = rest;
  return value;
}

// Follows the rules of Python's string.Template, which torchrun uses, except that `$$` is not
// halved: `sh -c 'kill $$'` needs both.
std::string SubstitutePlace(absl::string_view word, int local_rank,
                            const std::vector<std::string>* env) {
  std::string out;
  while (!word.empty()) {
    if (absl::ConsumePrefix(&word, "$$")) {
      out.append("$$");
    } else if (const auto value = ConsumePlace(&word, local_rank, env)) {
      out.append(*value);
    } else {
      out.push_back(word.front());
      word.remove_prefix(1);
    }
  }
  return out;
}

// Whether an Open MPI program that has no PMIx server must fail in MPI_Init. A lone rank may be a
// world of its own.
bool IsNoOpenMpiWorld(const Assignment& round, const WorkerSpec& spec, const NodeFacts& facts) {
  return !facts.pmix_env.empty() || (spec.mpi != MpiOffer::kNone && round.world_size > 1);
}

// The variables by which the worker finds the server of MPI programs. A worker that only may be an
// MPI program does not get its rank in MPI's names: oneCCL, Accelerate and Horovod take these for a
// sign that they run under MPI.
Variables MpiPlace(const Assignment& round, int local_rank, const WorkerSpec& spec,
                   const NodeFacts& facts) {
  Variables place = {
      {kEnvPmiFd, facts.pmi_fd}, {kEnvPmiPort, facts.pmi_port}, {kEnvPmiId, facts.pmi_id}};
  for (const std::string& entry : facts.pmix_env) {
    const absl::string_view name = NameOf(entry);
    if (name.size() < entry.size()) place.emplace_back(name, entry.substr(name.size() + 1));
  }
  if (IsNoOpenMpiWorld(round, spec, facts)) {
    place.emplace_back(kEnvOpenMpiSchizo, kNoOtherLaunchers);
  }
  if (!OffersPmi(spec.mpi) || spec.mpi == MpiOffer::kMaybe) return place;
  place.emplace_back(kEnvPmiRank, absl::StrCat(round.first_rank + local_rank));
  place.emplace_back(kEnvPmiSize, absl::StrCat(round.world_size));
  place.emplace_back(kEnvMpiLocalRank, absl::StrCat(local_rank));
  place.emplace_back(kEnvMpiLocalSize, absl::StrCat(spec.nproc));
  return place;
}

// The variables of the worker's place in the round; they replace those it inherits.
Variables RoundPlace(const Assignment& round, int local_rank, const WorkerSpec& spec,
                     const NodeFacts& facts) {
  const std::string rank = absl::StrCat(round.first_rank + local_rank);
  const std::string world_size = absl::StrCat(round.world_size);
  const std::string local_size = absl::StrCat(spec.nproc);
  const std::string node_rank = absl::StrCat(round.node_rank);
  const std::string nodes = absl::StrCat(round.num_nodes);
  Variables place = {
      {kEnvRank, rank},
      {kEnvWorldSize, world_size},
      {kEnvLocalRank, absl::StrCat(spec.virtual_local_rank ? 0 : local_rank)},
      {kEnvLocalWorldSize, local_size},
      {kEnvGroupRank, node_rank},
      {kEnvNodeRank, node_rank},
      {kEnvGroupWorldSize, nodes},
      {kEnvRoleName, spec.role},
      {kEnvRoleRank, rank},
      {kEnvRoleWorldSize, world_size},
      {kEnvMasterAddr, facts.store_proxy_port != 0 ? "127.0.0.1" : round.master_addr},
      {kEnvMasterPort,
       absl::StrCat(facts.store_proxy_port != 0 ? facts.store_proxy_port : round.master_port)},
      {kEnvRunId, spec.job_id},
      {kEnvRestartCount, absl::StrCat(round.restart_count)},
      {kEnvMaxRestarts, absl::StrCat(round.max_restarts)},
      {kEnvUseAgentStore, round.worker_store ? "False" : "True"},  // Torch's exact words.
      {kEnvErrorFile, facts.error_file},
      {kEnvSignalsToHandle, Names(EndingSignals(spec.signals_to_handle))},
      {kEnvLocalSize, local_size},
      {kEnvCrossRank, node_rank},
      {kEnvCrossSize, nodes},
      {kEnvJaxNumProcesses, world_size},
      {kEnvJaxProcessId, rank},
      {kEnvJobId, spec.job_id},
      {kEnvEndpoint, facts.endpoint},
      {kEnvRound, absl::StrCat(round.round)},
      {kEnvLogDir, facts.log_dir},
      {kEnvHeartbeat, facts.heartbeat},
      {kEnvBoundary, facts.boundary},
      {kEnvTap, facts.tap},
      {kEnvCommSecret, round.comm_secret},
  };
  const std::vector<EnvChange>& devices = DeviceChanges(spec, local_rank);
  for (const EnvChange& change : devices) {
    if (!change.is_default) place.emplace_back(change.name, change.value.value_or(""));
  }
  if (spec.virtual_local_rank && devices.empty() && spec.stand_ins.empty()) {
    const std::string device = OwnDevice(spec, local_rank);
    if (!device.empty()) place.emplace_back(kEnvCudaVisibleDevices, device);
  }
  if (!facts.timer_file.empty()) place.emplace_back(kEnvTimerFile, facts.timer_file);
  for (auto& variable : CompatEnv(round, local_rank, spec, facts.host)) {
    place.push_back(std::move(variable));
  }
  for (auto& variable : MpiPlace(round, local_rank, spec, facts)) {
    place.push_back(std::move(variable));
  }
  for (auto& [name, value] : place) {
    if (spec.starts_others && IsOfOneRank(name)) value.clear();
  }
  return place;
}

// The number of threads that a worker can run at once: one for each core it is bound to, else an
// even share of the node's cores. If a quota leaves the node fewer cores than the workers are bound
// to, the even share is a limit as well.
int NumThreads(const WorkerSpec& spec, const NodeFacts& facts, int local_rank) {
  const int sharers = spec.own_cpus ? 1 : std::max(1, spec.nproc);
  const int even = std::max(1, facts.usable_cores / sharers);
  int bound = 0;
  for (const WorkerBinding& binding : spec.bindings) bound += binding.cores;
  if (static_cast<size_t>(local_rank) >= spec.bindings.size()) return even;
  const int own = std::max(1, spec.bindings[static_cast<size_t>(local_rank)].cores);
  return bound <= facts.usable_cores ? own : std::min(own, even);
}

// The address at which the Neuron runtimes of a job meet, on node rank 0's host. It is the port
// after MASTER_PORT, whose neighbours are kept free. It is not JAX's port, because JAX on Neuron
// needs both.
std::string NeuronRoot(const Assignment& round, const WorkerSpec& spec) {
  constexpr uint16_t kLastPort = 65535;
  if (!spec.on_neuron || round.master_port == kLastPort) return "";
  return HostPort(round.master_addr, static_cast<uint16_t>(round.master_port + 1));
}

// The variables that are set only if the user has not set them.
Variables Defaults(const Assignment& round, int local_rank, const WorkerSpec& spec,
                   const NodeFacts& facts) {
  const bool open_mpi = IsNoOpenMpiWorld(round, spec, facts);
  const bool hidden = open_mpi && facts.pmix_env.empty() && spec.mpi != MpiOffer::kDescriptor;
  return {
      {kEnvTorchNcclAsync, "1"},
      {kEnvNcclAsync, "1"},
      {kEnvGlooInterface, round.num_nodes > 1 ? facts.gloo_interface : ""},
      {kEnvOmpThreads, spec.starts_others ? "" : absl::StrCat(NumThreads(spec, facts, local_rank))},
      {kEnvPythonUnbuffered, "1"},
      {kEnvPythonPath, facts.tap_packages},
      {kEnvNeuronRootComm, NeuronRoot(round, spec)},
      {kEnvMpichPmiVersion, OffersPmi(spec.mpi) ? "1" : ""},
      {kEnvOpenMpiPmix, open_mpi ? kNoOtherPmix : ""},
      {kEnvPmixNamespace, hidden ? kUnservedNamespace : ""},
      {kEnvOpenMpiYield, OffersPmix(spec.mpi) && spec.nproc > facts.usable_cores ? "1" : ""},
      {kEnvJaxCoordinator,
       round.coordinator_port == 0 ? "" : HostPort(round.master_addr, round.coordinator_port)},
  };
}

// Appends a directory to `entry`, a variable with a list of directories. An empty list means the
// same as no list.
std::string WithDirectory(const std::string& entry, const std::string& directory) {
  if (directory.empty()) return entry;
  return absl::StrCat(entry, entry.back() == '=' ? "" : ":", directory);
}

bool Has(const Variables& variables, absl::string_view name) {
  return std::any_of(variables.begin(), variables.end(),
                     [name](const auto& v) { return v.first == name; });
}

// The variables that the user gives this worker: those that all inherit, overridden by those of its
// program.
std::vector<std::string> GivenEnv(const Assignment& round, int local_rank, const WorkerSpec& spec) {
  const OtherProgram* const program =
      OtherProgramOf(spec.others, round.first_rank + local_rank, round.world_size);
  if (program == nullptr) return spec.inherited_env;
  std::vector<std::string> given;
  const auto is_own = [program](absl::string_view entry) {
    return std::any_of(program->environment.begin(), program->environment.end(),
                       [entry](const std::string& own) { return NameOf(own) == NameOf(entry); });
  };
  std::copy_if(spec.inherited_env.begin(), spec.inherited_env.end(), std::back_inserter(given),
               [is_own](const std::string& entry) { return !is_own(entry); });
  given.insert(given.end(), program->environment.begin(), program->environment.end());
  return given;
}

// True for settings of the collectives, which read them in the worker. The secret is not such a
// setting: each round has its own.
bool IsSettingOfComm(absl::string_view name) {
  return name == kEnvSocketInterface ||
         (absl::StartsWith(name, kCommPrefix) && name != kEnvCommSecret);
}

}  // namespace

bool IsInherited(absl::string_view name) {
  if (IsSettingOfComm(name)) return true;
  return std::find(std::begin(kScrubbedNames), std::end(kScrubbedNames), name) ==
             std::end(kScrubbedNames) &&
         std::none_of(std::begin(kScrubbedPrefixes), std::end(kScrubbedPrefixes),
                      [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

std::vector<std::string> WorkerEnv(const Assignment& assignment, int local_rank,
                                   const WorkerSpec& spec, const NodeFacts& facts) {
  const Variables place = RoundPlace(assignment, local_rank, spec, facts);
  Variables defaults = Defaults(assignment, local_rank, spec, facts);
  for (const EnvChange& change : DeviceChanges(spec, local_rank)) {
    if (change.is_default) defaults.emplace_back(change.name, change.value.value_or(""));
  }
  std::vector<std::string> env;
  for (const std::string& entry : GivenEnv(assignment, local_rank, spec)) {
    const absl::string_view name = NameOf(entry);
    if (name.empty() || name.size() == entry.size()) continue;  // Not `NAME=value`.
    const bool kept = spec.keep_env && !absl::StartsWith(name, kOwnPrefix);
    if (!(kept || IsInherited(name)) || Has(place, name)) continue;
    env.push_back(name == kEnvPythonPath ? WithDirectory(entry, facts.tap_packages) : entry);
    defaults.erase(std::remove_if(defaults.begin(), defaults.end(),
                                  [name](const auto& v) { return v.first == name; }),
                   defaults.end());
  }
  for (const Variables* variables : {&place, &std::as_const(defaults)}) {
    for (const auto& [name, value] : *variables) {
      if (!value.empty()) env.push_back(absl::StrCat(name, "=", value));
    }
  }
  return env;
}

bool IsGiven(absl::string_view name, const WorkerSpec& spec) {
  WorkerSpec with = spec;
  const std::string entry = absl::StrCat(name, "=given");
  with.inherited_env = {entry};
  with.others.clear();
  const std::vector<std::string> env = WorkerEnv(Assignment(), 0, with, NodeFacts());
  return std::find(env.begin(), env.end(), entry) != env.end();
}

std::vector<std::string> WorkerArgv(const std::vector<std::string>& argv, int local_rank,
                                    const std::vector<std::string>* env) {
  std::vector<std::string> own = argv;
  for (size_t i = 1; i < own.size(); ++i) own[i] = SubstitutePlace(own[i], local_rank, env);
  return own;
}

absl::StatusOr<std::vector<int>> RanksOfPrograms(const std::vector<OtherProgram>& others,
                                                 int world_size) {
  std::vector<int> ranks;
  int left = world_size;
  for (const OtherProgram& other : others) {
    ranks.push_back(other.ranks);
    left -= other.ranks;
  }
  if (left < 0) {
    return absl::FailedPreconditionError(absl::StrCat("the programs of --also need ",
                                                      world_size - left, " ranks, and there are ",
                                                      world_size, ": start more workers"));
  }
  if (left > 0) ranks.insert(ranks.begin(), left);
  return ranks;
}

const OtherProgram* OtherProgramOf(const std::vector<OtherProgram>& others, Rank rank,
                                   int world_size) {
  int first = world_size;
  for (size_t i = others.size(); i > 0; --i) {
    first -= others[i - 1].ranks;
    if (rank >= first) return &others[i - 1];
  }
  return nullptr;
}

int ProgramNumber(const std::vector<OtherProgram>& others, Rank rank, int world_size) {
  const OtherProgram* const other = OtherProgramOf(others, rank, world_size);
  if (other == nullptr) return 0;
  const bool all = OtherProgramOf(others, 0, world_size) != nullptr;
  return static_cast<int>(other - others.data()) + (all ? 0 : 1);
}

absl::Status CheckWorkerSpec(const WorkerSpec& spec, int max_nodes) {
  // A task that runs a worker has already been given its device.
  const bool chooses = spec.virtual_local_rank && spec.stand_ins.empty();
  const auto devices = chooses ? VisibleDevices(spec) : std::nullopt;
  if (devices && std::max<size_t>(devices->size(), 1) < static_cast<size_t>(spec.nproc)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--virtual-local-rank: ", spec.nproc, " workers, but ", kEnvCudaVisibleDevices,
                     "=", absl::StrJoin(*devices, ","), " has ", devices->size(),
                     "; start as many workers, or name more devices"));
  }
  return CheckCompat(spec, max_nodes);
}

std::string ChosenDefaults(const Assignment& assignment, const WorkerSpec& spec,
                           const NodeFacts& facts) {
  if (assignment.node_rank != 0 || assignment.round != 1 || assignment.world_size == 1) return "";
  std::vector<std::string> chosen;
  for (const auto& [name, value] : Defaults(assignment, 0, spec, facts)) {
    if (name != kEnvOmpThreads && name != kEnvGlooInterface) continue;  // The rest changes nothing.
    const std::string prefix = absl::StrCat(name, "=");
    const bool given = std::any_of(
        spec.inherited_env.begin(), spec.inherited_env.end(),
        [&prefix](const std::string& entry) { return absl::StartsWith(entry, prefix); });
    if (!given && !value.empty()) chosen.push_back(absl::StrCat(prefix, value));
  }
  if (chosen.empty()) return "";
  return absl::StrCat("workers get ", absl::StrJoin(chosen, " and "),
                      "; set it to choose otherwise");
}

}  // namespace hlaunch
