// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/make_job_spec.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "agent/machine/binding/topology.h"
#include "agent/machine/devices/find_devices.h"
#include "agent/node_facts.h"
#include "agent/workers/worker/worker_env.h"
#include "launcher/cli/hosts/exported.h"
#include "launcher/environment/python/files.h"
#include "launcher/environment/python/shim.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/job/spec/credentials.h"
#include "launcher/job/spec/node_devices.h"
#include "launcher/text/other_program.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

// A variable of torchrun.
constexpr char kPrefixVariable[] = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
constexpr char kTorchrunsPrefix[] = "[${role_name}${local_rank}]:";
constexpr char kCommonJobId[] = "none";  // torchrun's default: all nodes must have the same id.

int UsableCpus() {
  const int allowed = std::max(1, static_cast<int>(AllowedCpus().size()));
  const int quota = CpuQuota();
  return quota == 0 ? allowed : std::min(allowed, quota);
}

absl::StatusOr<int> CountObjects(const std::string& object) {
  HLAUNCH_ASSIGN_OR_RETURN(const Topology topology, LoadTopology());
  const std::vector<int> allowed = AllowedCpus();
  std::set<int> found;
  for (const Cpu& cpu : topology.cpus) {
    const bool usable = !topology.is_this_machine ||
                        std::find(allowed.begin(), allowed.end(), cpu.id) != allowed.end();
    if (!usable) continue;
    found.insert(object == "socket" ? cpu.socket
                 : object == "numa" ? cpu.node
                 : object == "l3"   ? cpu.cache
                                    : cpu.core);
  }
  return static_cast<int>(found.size());
}

// Returns whether the user gives an option of hlaunch's own store.
bool NamesOwnStore(const StoreSpec& store) {
  const C10dServerOptions plain;
  return store.proxy.value_or(false) || store.server.access.has_value() ||
         store.server.older != plain.older || store.server.limits != plain.limits;
}

// Returns whether rank 0 serves the master store itself. A worker that starts the job's ranks
// itself, for example with mp.spawn, chooses their address and port, where hlaunch's store does not
// listen. If hlaunch served the store, all these ranks would be clients and would wait. Between
// nodes this applies to --per-node only: for ranks that hlaunch starts, its own store is more
// reliable and, with a token, serves no other user.
bool WorkerServes(const Options& options, const JobSpec& spec, int nproc) {
  if (options.store.in_worker) return *options.store.in_worker;
  if (NamesOwnStore(options.store)) return false;
  if (spec.mode == JobMode::kSingleNode) return nproc == 1;
  return options.devices.starts_others && !spec.store_sealed;
}

// Returns the MASTER_PORT for a job of one node; 0 means any port. In the static form it is the
// endpoint's port, as in torchrun.
uint16_t PortOfOneNode(const Meeting& meeting) {
  if (meeting.backend == "static" && meeting.endpoint) return meeting.endpoint->port;
  return meeting.master_port.value_or(0);
}

void SetPlace(const Options& options, JobSpec& spec) {
  switch (spec.mode) {
    case JobMode::kSingleNode:
      if (const uint16_t port = PortOfOneNode(options.meeting); port != 0) spec.master_port = port;
      return;
    case JobMode::kListenAndPrint:
      spec.endpoint = {"", kDefaultRdzvPort};
      return;
    case JobMode::kStatic:
      spec.endpoint = options.meeting.endpoint.value_or(Endpoint{
          options.meeting.master_addr, options.meeting.master_port.value_or(kDefaultMasterPort)});
      if (spec.worker_store) {
        auto& said = options.store.in_worker ? spec.warnings : spec.notes;
        said.push_back(absl::StrCat(
            "--master-store worker: the nodes meet on port ", spec.endpoint.port,
            ", so rank 0 cannot serve there; MASTER_PORT is a port of its own, new in each round"));
      } else {
        spec.master_port = spec.endpoint.port;
      }
      break;
    case JobMode::kEndpoint:
      spec.endpoint = *options.meeting.endpoint;
      spec.other_endpoints = options.meeting.other_endpoints;
      break;
  }
  const bool other_host =
      !options.meeting.master_addr.empty() && options.meeting.master_addr != spec.endpoint.host;
  if (other_host ||
      options.meeting.master_port.value_or(spec.endpoint.port) != spec.endpoint.port) {
    spec.warnings.push_back(absl::StrCat(other_host ? "--master-addr" : "--master-port",
                                         " is not used: --rdzv-endpoint says that",
                                         " the nodes meet at ", HostPort(spec.endpoint)));
  }
}

// Derives lease and margin from the loss limit. At the default of 30 s they are 5 s and 10 s.
Lease MakeLease(Duration loss_limit) {
  Lease lease;
  lease.loss_limit = loss_limit;
  lease.lease = std::min<Duration>(seconds(5), loss_limit / 3);
  // An agent that was itself paused may be late by one lease. Then it stops its workers within 2 s,
  // and kills those that ignore this. Only after that may its place be given to another node.
  lease.margin = lease.lease + seconds(5);
  return lease;
}

std::string MakeJobId(const Options& options, JobMode mode, const HostProbes& probes) {
  if (!options.meeting.job_id.empty()) return options.meeting.job_id;
  const bool others_read_it_here = mode == JobMode::kSingleNode || mode == JobMode::kListenAndPrint;
  return others_read_it_here ? probes.new_job_id() : kCommonJobId;
}

// Requires: spec.worker.nproc is decided.
void SetLogs(const Options& options, const Environment& environment, JobSpec& spec) {
  spec.logs = options.logs;
  if (spec.logs.prefix_template.empty()) {
    spec.logs.prefix_template = environment.Get(kPrefixVariable);
  }
  // Scripts that read torchrun's output expect its prefix. torchrun itself prints no prefix without
  // --tee.
  const StreamChoice& tee = options.logs.tee;
  const bool has_prefix = spec.worker.nproc > 1 || spec.policy.max_nodes > 1 ||
                          tee.others != Streams::kNone || !tee.ranks.empty();
  if (spec.logs.prefix_template.empty() && options.program == "torchrun" && has_prefix) {
    spec.logs.prefix_template = kTorchrunsPrefix;
  }
  const auto warn_of = [&spec](const char* option, int rank) {
    if (rank < spec.worker.nproc) return;
    spec.warnings.push_back(
        absl::StrCat(option, " names local rank ", rank, ", and this node has ", spec.worker.nproc,
                     spec.worker.nproc == 1
                         ? " worker: local rank 0"
                         : absl::StrCat(" workers: local ranks 0 to ", spec.worker.nproc - 1)));
  };
  const LogSpec& logs = spec.logs;
  if (!logs.redirects.ranks.empty()) warn_of("--redirects", logs.redirects.ranks.rbegin()->first);
  if (!logs.tee.ranks.empty()) warn_of("--tee", logs.tee.ranks.rbegin()->first);
  if (!logs.shown_ranks.empty()) warn_of("--local-ranks-filter", *logs.shown_ranks.rbegin());
}

// The names in the values of -x that no worker gets so, in order.
std::vector<std::string> NamesNotGiven(const Options& options) {
  std::vector<std::string> all = options.hosts.variables, names;
  for (const OtherProgramWish& other : options.others) {
    all.insert(all.end(), other.variables.begin(), other.variables.end());
  }
  for (const std::string& variable : all) {
    const std::string name = variable.substr(0, variable.find('='));
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!absl::EndsWith(name, "*") && !known && !IsGiven(name, options.worker)) {
      names.push_back(name);
    }
  }
  return names;
}

// Notes which of the user's options change nothing, and where values came from.
void AddNotes(const Options& options, JobSpec& spec) {
  spec.warnings = options.cluster_warnings;
  if (!options.unneeded_conf.empty()) {
    spec.notes.push_back(
        absl::StrCat("--rdzv-conf: not needed here: ", absl::StrJoin(options.unneeded_conf, ", ")));
  }
  if (!options.unneeded.empty()) {
    spec.notes.push_back(absl::StrCat("not needed here: ", absl::StrJoin(options.unneeded, ", ")));
  }
  spec.notes.insert(spec.notes.end(), options.sources.begin(), options.sources.end());
  if (const std::vector<std::string> names = NamesNotGiven(options); !names.empty()) {
    spec.warnings.push_back(absl::StrCat("-x ", absl::StrJoin(names, ", "), ": not used, since ",
                                         "hlaunch itself decides what workers get there"));
  }
}

absl::Status SetCredentials(const Options& options, const Environment& environment,
                            const HostProbes& probes, JobSpec& spec) {
  HLAUNCH_ASSIGN_OR_RETURN(
      Credentials found, FindCredentials({options.meeting.token_file, options.meeting.certificates,
                                          options.meeting.tls},
                                         environment, probes.read_token_file));
  const Token& token = found.token;
  spec.certificates = std::move(found.certificates);
  spec.token = token.secret;
  spec.tls = found.tls;
  spec.token_file = token.file;
  spec.store_sealed = (!spec.token.empty() && spec.tls) || !spec.certificates.none();
  spec.warnings.insert(spec.warnings.end(), token.warnings.begin(), token.warnings.end());
  return absl::OkStatus();
}

// Requires: the number and arguments of the workers and the server of the store are decided.
absl::Status SetMpi(const Options& options, const Environment& environment,
                    const HostProbes& probes, JobSpec& spec) {
  MpiSurroundings around;
  around.several_nodes = spec.policy.max_nodes > 1;
  around.lone_worker = !around.several_nodes && spec.worker.nproc == 1;
  around.starts_others = spec.worker.starts_others;
  around.store_in_worker = spec.worker_store;
  const bool look = options.mpi != MpiWish::kNone;
  std::vector<MpiProgram> programs;
  if (look) {
    programs.push_back(probes.look_for_mpi(spec.worker.argv, environment));
    for (const OtherProgram& other : spec.worker.others) {
      programs.push_back(probes.look_for_mpi(other.argv, environment));
    }
  }
  around.differ = Differ(programs);
  HLAUNCH_ASSIGN_OR_RETURN(const MpiProgram program, MpiOfAll(programs));
  if (look && MayUsePmix(options.mpi, program)) {
    around.pmix = probes.find_pmix(environment, program.library);
  }
  HLAUNCH_ASSIGN_OR_RETURN(const MpiDecision decision, DecideMpi(options.mpi, program, around));
  spec.worker.mpi = decision.offer;
  spec.mpi = decision.reason;
  if (!OffersPmix(decision.offer)) return absl::OkStatus();
  spec.worker.pmix_program = around.pmix.program;
  spec.worker.pmix_library = around.pmix.library;
  // mpirun sets these variables, and scripts around such programs read them.
  if (decision.offer == MpiOffer::kPmix || options.mpi == MpiWish::kPmix) {
    spec.worker.compat.insert("openmpi");
  }
  return absl::OkStatus();
}

// Sets a variable, NAME=value, in the place of what it was.
void SetVariable(std::string entry, std::vector<std::string>& env) {
  const std::string start = entry.substr(0, entry.find('=') + 1);
  std::erase_if(env, [&](const std::string& old) { return absl::StartsWith(old, start); });
  env.push_back(std::move(entry));
}

// Sets what workers run in the place of a shim: the Python of the directory in which the user typed
// the command, since there the user's shell runs it. A program that was typed runs in the workers'
// directory, as with mpirun and env -C; `warnings` gets a line if that is another Python.
absl::Status ReplaceShim(const ScriptRequest& script, const Environment& environment,
                         const HostProbes& probes, WorkerSpec& worker,
                         std::vector<std::string>& warnings) {
  const std::string shim = worker.argv.front(), here = WorkingDirectory();
  auto chosen = probes.ask_shim(shim, here, environment);
  const bool typed = !script.module && absl::EndsWith(absl::StrCat("/", shim),
                                                      absl::StrCat("/", script.command.front()));
  if (!typed) {
    HLAUNCH_RETURN_IF_ERROR(chosen.status());
    worker.argv.front() = chosen->python;
    for (std::string& entry : chosen->variables) {
      SetVariable(std::move(entry), worker.inherited_env);
    }
    return absl::OkStatus();
  }
  const auto there = probes.ask_shim(shim, script.directory, environment);
  if (chosen.ok() && there.ok() && chosen->python != there->python) {
    warnings.push_back(absl::StrCat(shim, " is a shim: workers run ", there->python, ", that of ",
                                    script.directory, ", and not ", chosen->python,
                                    ", that of this directory; name one of them by its path"));
  }
  return absl::OkStatus();
}

// Sets where workers run, and their program.
absl::Status SetProgram(ScriptRequest script, const Environment& environment,
                        const HostProbes& probes, WorkerSpec& worker,
                        std::vector<std::string>& warnings) {
  if (!script.directory.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(script.directory, FindWorkersDirectory(script.directory));
    worker.directory = script.directory;
    SetVariable(absl::StrCat("PWD=", worker.directory), worker.inherited_env);
  }
  if (!script.local_rank_option.empty()) {  // Each worker inserts its own local rank.
    script.command.insert(script.command.begin() + 1,
                          absl::StrCat(script.local_rank_option, "=${local_rank}"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(worker.argv, probes.make_worker_argv(script, environment));
  const bool elsewhere = !script.directory.empty() && script.directory != WorkingDirectory();
  if (!elsewhere || !IsShim(worker.argv.front())) return absl::OkStatus();
  return ReplaceShim(script, environment, probes, worker, warnings);
}

// Sets the programs of --also, which the last ranks run instead.
absl::Status SetOthers(const Options& options, const Environment& environment,
                       const HostProbes& probes, JobSpec& spec) {
  for (const OtherProgramWish& wish : options.others) {
    ScriptRequest script = options.script;
    script.command = wish.command;
    if (!wish.directory.empty()) script.directory = wish.directory;
    WorkerSpec own;
    HLAUNCH_RETURN_IF_ERROR(SetProgram(script, environment, probes, own, spec.warnings));
    std::vector<std::string> variables = wish.variables;
    variables.insert(variables.end(), own.inherited_env.begin(), own.inherited_env.end());
    spec.worker.others.push_back(
        {wish.ranks, std::move(own.argv), std::move(variables), own.directory});
  }
  return absl::OkStatus();
}

// Checks that the job's only node has enough ranks for the programs of --also.
absl::Status CheckPrograms(absl::Span<const OtherProgramWish> others, const WorkerSpec& worker) {
  const int needed = RanksOf(others);
  if (needed <= worker.nproc) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the programs of --also need ", needed,
                                                 " ranks, and there are ", worker.nproc,
                                                 ": give -n, the number of all ranks"));
}

// Refuses a script in a descriptor of this process, which all workers but rank 0 have not.
absl::Status CheckScriptOfAll(const Options& options) {
  const std::string& script = options.script.command.front();
  const bool descriptor = script == "/dev/stdin" || absl::StartsWith(script, "/dev/fd/") ||
                          absl::StartsWith(script, "/proc/self/fd/");
  if (!descriptor || options.script.module || options.worker.stdin_to == StdinTo::kAll) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(script,
                   " is this process's, and every worker reads its script: write it to a "
                   "file"));
}

// Whether these words start an interpreter that reads its program from standard input. An option
// with a value of its own counts as a program's name: then this is not certain. Pure.
bool ReadsProgramFromStdin(absl::Span<const std::string> argv) {
  constexpr const char* kShells[] = {"sh",  "bash", "dash", "ash",  "zsh",
                                     "ksh", "mksh", "csh",  "tcsh", "fish"};
  const std::string name = argv.front().substr(argv.front().rfind('/') + 1);
  const bool shell = std::find(std::begin(kShells), std::end(kShells), name) != std::end(kShells);
  const bool python = absl::StartsWith(name, "python") &&
                      name.find_first_not_of("0123456789.", sizeof "python" - 1) == name.npos;
  if (!shell && !python && name != "perl" && name != "ruby") return false;
  // Options after which it reads no program there.
  const char* const others = shell ? "c" : python ? "cmhV" : "eEnhvV";
  for (const std::string& word : argv.subspan(1)) {
    if (word == "-" || (shell && word == "-s")) return true;
    if (word.empty() || word[0] != '-' || absl::StartsWith(word, "--")) return false;
    if (word.find_first_of(others, 1) != word.npos) return false;
  }
  return true;
}

// Refuses a program that would do nothing, in silence, since no worker reads standard input.
absl::Status CheckProgramOfStdin(const WorkerSpec& worker) {
  if (worker.stdin_to.value_or(StdinTo::kNobody) != StdinTo::kNobody ||
      !ReadsProgramFromStdin(worker.argv)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(worker.argv.front(), " reads its program from standard input, which several ",
                   "workers do not get: write it to a file, or add --stdin=all (--stdin=0: only ",
                   "local rank 0 runs it)"));
}

// Refuses a program that forks and ends at once, so that the rank would be over, with code 0, while
// its work goes on. A worker leads its process group, and then setsid forks.
absl::Status CheckStays(absl::Span<const std::string> argv) {
  const std::string name = argv.front().substr(argv.front().rfind('/') + 1);
  if (name != "setsid") return absl::OkStatus();
  for (const std::string& word : argv.subspan(1)) {
    if (!absl::StartsWith(word, "-")) break;
    const bool is_long = absl::StartsWith(word, "--");
    if (is_long ? word != "--fork" && word != "--ctty" : word.find_first_of("whV") != word.npos) {
      return absl::OkStatus();  // It waits, or prints its help.
    }
  }
  return absl::InvalidArgumentError(
      "setsid ends at once and leaves its program behind, and the rank would be over: write setsid "
      "--wait, or leave it out, since each worker has a session of its own");
}

// Sets the workers: what the user says about them, and what follows from this host.
absl::Status SetWorkers(const Options& options, const Environment& environment,
                        const HostProbes& probes, JobSpec& spec) {
  spec.worker = options.worker;
  spec.worker.job_id = spec.job_id;
  HLAUNCH_ASSIGN_OR_RETURN(spec.worker.inherited_env,
                           InheritedVariables(options.hosts, environment, kEnvToken));
  HLAUNCH_RETURN_IF_ERROR(
      SetProgram(options.script, environment, probes, spec.worker, spec.warnings));
  HLAUNCH_RETURN_IF_ERROR(SetOthers(options, environment, probes, spec));
  HLAUNCH_RETURN_IF_ERROR(CheckStays(spec.worker.argv));
  for (const OtherProgram& other : spec.worker.others) {
    HLAUNCH_RETURN_IF_ERROR(CheckStays(other.argv));
  }
  HLAUNCH_RETURN_IF_ERROR(AssignNodeDevices(options, probes, spec));
  spec.worker_store = WorkerServes(options, spec, spec.worker.nproc);
  HLAUNCH_RETURN_IF_ERROR(SetMpi(options, environment, probes, spec));
  if (spec.mode == JobMode::kSingleNode) {
    HLAUNCH_RETURN_IF_ERROR(CheckPrograms(options.others, spec.worker));
  }
  const bool lone_worker = spec.mode == JobMode::kSingleNode && spec.worker.nproc == 1;
  if (!lone_worker) {
    HLAUNCH_RETURN_IF_ERROR(CheckScriptOfAll(options));
    HLAUNCH_RETURN_IF_ERROR(CheckProgramOfStdin(spec.worker));
  }
  if (lone_worker && !spec.worker.stdin_to) spec.worker.stdin_to = StdinTo::kRank0;
  return CheckWorkerSpec(spec.worker, spec.policy.max_nodes);
}

}  // namespace

HostProbes RealHostProbes() {
  return {
      UsableCpus,    NewJobId,
      ReadTokenFile, MakeWorkerArgv,
      AskShim,       [](const std::string& sysroot) { return FindDevices(DeviceFiles(sysroot)); },
      CountObjects,  LookForMpi,
      FindPmix};
}

absl::StatusOr<JobSpec> MakeMeeting(const Options& options, const Environment& environment,
                                    const HostProbes& probes) {
  JobSpec spec;
  spec.mode = DecideMode(options);
  spec.policy = options.policy;
  spec.policy.lease = MakeLease(options.policy.lease.loss_limit);
  spec.policy.on_host_loss = DecideHostLoss(options);
  spec.node = options.node;
  if (NeedsGrpc(spec)) spec.local_addr = options.meeting.local_addr;
  spec.store = options.store;
  AddNotes(options, spec);
  if (NeedsGrpc(spec)) HLAUNCH_RETURN_IF_ERROR(SetCredentials(options, environment, probes, spec));
  spec.worker_store = WorkerServes(options, spec, options.nproc.value_or(0));
  SetPlace(options, spec);
  spec.job_id = MakeJobId(options, spec.mode, probes);
  if (NeedsGrpc(spec)) spec.store_proxy = options.store.proxy.value_or(false);
  return spec;
}

absl::StatusOr<JobSpec> MakeJobSpec(const Options& options, const Environment& environment,
                                    const HostProbes& probes) {
  HLAUNCH_ASSIGN_OR_RETURN(JobSpec spec, MakeMeeting(options, environment, probes));
  HLAUNCH_RETURN_IF_ERROR(SetWorkers(options, environment, probes, spec));
  spec.worker.hears_boundaries =
      spec.policy.max_nodes > 1 && spec.policy.boundary_limit > Duration::zero();
  SetLogs(options, environment, spec);
  if (spec.policy.max_nodes == 1 && !options.says_size) {
    const std::string alone = CountAlone(environment, spec.worker.nproc);
    if (!alone.empty()) spec.warnings.push_back(alone);
  }
  return spec;
}

}  // namespace hlaunch
