// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/parse_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/completion.h"
#include "launcher/cli/options/explain_place.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/number_words.h"
#include "launcher/cli/options/option_sources.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cli/options/take_place.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/printable.h"
#include "launcher/text/spelling.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/round/decide/restart_policy.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

// A word of other launchers, and how to say the same here.
struct ForeignWord {
  const char* word;
  const char* instead;
};
constexpr ForeignWord kForeign[] = {
    {"-c", "did you mean --nproc-per-node?"},
    {"--host", "did you mean --hosts?"},
    {"--machinefile", "did you mean --hostfile?"},
    {"-hostfile", "did you mean --hostfile?"},
    {"--tag-output", "every line has its rank without it; --log-prefix changes how"},
    {"--nproc", "did you mean --nproc-per-node?"},
    {"--gpu", "did you mean --nproc-per-node?"},
    {"--ngpu", "did you mean --nproc-per-node?"},
    {"--gpus-per-node", "did you mean --nproc-per-node?"},
    {"--procs-per-node", "did you mean --nproc-per-node?"},
    {"--num-machines", "did you mean --nnodes?"},
    {"--bind-to", "did you mean --bind?"},
    {"--num-nodes", "did you mean --nnodes?"},
    {"--machine-rank", "did you mean --node-rank?"},
    {"--main-process-ip", "did you mean --master-addr?"},
    {"--main-process-port", "did you mean --master-port?"},
    {"--local-rank", "did you mean --pass-local-rank=--local_rank?"},
};

// Refuses a program that is the value of a flag, as in "--standalone true train.py": `true` would
// run, and say nothing.
absl::Status CheckValueOfFlag(const std::string& flag, const std::vector<std::string>& rest) {
  const OptionRow* const row = FindOption(flag);
  const bool is_value = rest[0] == "true" || rest[0] == "false" || rest[0] == "yes";
  if (row == nullptr || row->takes_value() || !is_value || rest.size() == 1) {
    return absl::OkStatus();
  }
  for (const string_view before_program : {"--no-python", "--module"}) {
    if (before_program == row->name) return absl::OkStatus();
  }
  return InvalidArgumentError(absl::StrCat(flag, " takes no value: leave '", rest[0],
                                           "' out; to run that program, write -- before it"));
}

absl::Status UnknownOption(const std::string& word, bool behind_dashes,
                           const std::string& program) {
  const std::string typed = PrintableLine(word.substr(0, word.find('=')));
  const std::string name = absl::StrReplaceAll(typed, {{"_", "-"}});
  HLAUNCH_RETURN_IF_ERROR(CheckDashes(word));
  if (IsNumberWord(typed) && !behind_dashes) {
    return InvalidArgumentError(absl::StrCat(typed, " needs a value, the number of workers"));
  }
  for (const ForeignWord& foreign : kForeign) {
    if (name != foreign.word) continue;
    return InvalidArgumentError(absl::StrCat("unknown option ", typed, "; ", foreign.instead));
  }
  if (FindOption(word) != nullptr || IsNumberWord(typed)) {
    return InvalidArgumentError(absl::StrCat(typed, " stands behind --, where the script begins"));
  }
  return UnknownWord(
      OptionTable(), word,
      absl::StrCat("see ", program, " --help; the script's own options stand after the script"));
}

struct RawOptions {
  std::vector<FoundValue> given;  // In the order of the table.
  std::vector<std::string> rest;  // The words from the first one that no option took.

  const FoundValue* Find(string_view name) const {
    const auto found = std::find_if(given.begin(), given.end(), [name](const FoundValue& value) {
      return value.row->name == name;
    });
    return found == given.end() ? nullptr : &*found;
  }
};

absl::StatusOr<RawOptions> Tokenize(const TypedLine& line, const std::string& program) {
  HLAUNCH_ASSIGN_OR_RETURN(
      TypedWords typed, ReadWords(program, OptionTable(), line.words, OptionPlace::kBeforeScript));
  RawOptions raw;
  raw.rest = std::move(typed.rest);
  for (TypedOption& option : typed.given) {
    const auto spelling = line.spellings.find(option.row->name);
    raw.given.push_back({option.row, std::move(option.value), OptionSource::kCommandLine,
                         spelling == line.spellings.end() ? option.row->name : spelling->second});
  }
  return raw;
}

// Checks that is_host does not contradict the other options, which may decide who hosts.
absl::Status CheckHost(const Options& options, bool has_place) {
  if (!options.node.is_host.has_value()) return absl::OkStatus();
  if (!has_place && !*options.node.is_host) {
    return InvalidArgumentError(
        "--rdzv-conf is_host=0: nobody else is named who could host; add --rdzv-endpoint HOST");
  }
  const bool by_rank = options.node.rank.has_value() && (!options.meeting.endpoint.has_value() ||
                                                         options.meeting.backend == "static");
  if (by_rank && *options.node.is_host != (options.node.rank == 0)) {
    return InvalidArgumentError(absl::StrCat(
        "--rdzv-conf is_host=", *options.node.is_host ? 1 : 0, " with --node-rank ",
        *options.node.rank, ": in the static form node rank 0 hosts; leave is_host out"));
  }
  return absl::OkStatus();
}

// Returns whether this command starts the job on other hosts.
bool NamesHosts(const RawOptions& raw) {
  return raw.Find("--hosts") != nullptr || raw.Find("--hostfile") != nullptr;
}

// Returns whether a source says how many nodes there are, or how many ranks in all.
bool SaysSize(const TypedLine& line, const RawOptions& raw) {
  const bool total = line.number.has_value() && line.number->counts != NumberCounts::kEachNode;
  return total || raw.Find("--nnodes") != nullptr || raw.Find("--standalone") != nullptr ||
         raw.Find("--cluster") != nullptr;
}

// Returns whether the list of hosts is from a stronger source than --nproc-per-node.
bool ListOutranksWorkers(const RawOptions& raw) {
  const FoundValue* const workers = raw.Find("--nproc-per-node");
  const FoundValue* hosts = raw.Find("--hosts");
  if (hosts == nullptr) hosts = raw.Find("--hostfile");
  return workers != nullptr && hosts != nullptr && workers->source < hosts->source;
}

// Refuses options that need --hosts without it, and options that --hosts excludes with it.
absl::Status CheckHosts(const RawOptions& raw) {
  if (!NamesHosts(raw)) {
    for (const char* name :
         {"--include", "--exclude", "--launch-agent", "--agent-path", "--push"}) {
      if (raw.Find(name) == nullptr) continue;
      return InvalidArgumentError(absl::StrCat(
          name, " is for a job that is started on other hosts: add --hosts or --hostfile"));
    }
    return absl::OkStatus();
  }
  for (const string_view name : OptionsOfEachHost()) {
    if (raw.Find(name) == nullptr) continue;
    return InvalidArgumentError(
        absl::StrCat(name, " is for a command that is run on each host, and ",
                     raw.Find("--hosts") != nullptr ? "--hosts" : "--hostfile",
                     " starts all of them from here: leave one of them out"));
  }
  return absl::OkStatus();
}

absl::Status CheckMultiple(const JobPolicy& policy) {
  const int n = policy.node_multiple;
  if (policy.min_nodes % n == 0 && policy.max_nodes % n == 0) return absl::OkStatus();
  const int bad = policy.min_nodes % n != 0 ? policy.min_nodes : policy.max_nodes;
  return InvalidArgumentError(absl::StrCat("--node-multiple ", n, ": the job has ", bad,
                                           bad == 1 ? " node" : " nodes",
                                           ", which is no multiple of ", n));
}

// Checks that the values fit together. Each value by itself is valid already.
absl::Status CheckTogether(const Options& options, bool standalone) {
  HLAUNCH_RETURN_IF_ERROR(CheckRestartPolicy(options.policy));
  if (options.worker.stdin_to == StdinTo::kAll && options.hosts.any()) {
    return InvalidArgumentError(
        "--stdin all is for the ranks of one host: of several hosts, rank 0 alone reads; give the "
        "others a file that all hosts have");
  }
  if (options.devices.starts_others && !options.others.empty()) {
    return InvalidArgumentError(
        "--also is for some ranks, and with --per-node workers give them: leave one of them out");
  }
  if (options.devices.starts_others && options.nproc != 1) {
    return InvalidArgumentError(
        "--per-node starts one worker, which starts the others itself: leave --nproc-per-node out");
  }
  if (options.devices.starts_others &&
      (options.binding.numa || options.binding.mode.value_or(BindMode::kNone) != BindMode::kNone)) {
    return InvalidArgumentError(
        "--per-node: the worker starts its node's others, and all would be bound as one; leave "
        "--bind and --numa-binding out");
  }
  if (options.node.rank.has_value() && *options.node.rank >= options.policy.max_nodes) {
    const int nodes = options.policy.max_nodes;
    return InvalidArgumentError(
        nodes == 1 ? absl::StrCat("--node-rank ", *options.node.rank,
                                  ": the job has one node, of rank 0; --nnodes gives it more")
                   : absl::StrCat("--node-rank ", *options.node.rank, ": with --nnodes ", nodes,
                                  " ranks go from 0 to ", nodes - 1));
  }
  HLAUNCH_RETURN_IF_ERROR(CheckMultiple(options.policy));
  if (options.store.proxy.value_or(false) && options.store.in_worker.value_or(false)) {
    return InvalidArgumentError(
        "--store-proxy leads to hlaunch's own store and --master-store worker has none: leave one "
        "of them out");
  }
  if (options.store.server.limits.value_bytes > options.store.server.limits.total_bytes) {
    return InvalidArgumentError(
        absl::StrCat("a value of the store may have ", options.store.server.limits.value_bytes,
                     " bytes and the whole store ", options.store.server.limits.total_bytes,
                     ": let --store-max-total be at least --store-max-value"));
  }
  if (options.policy.max_nodes == 1) return absl::OkStatus();
  if (standalone) {
    return InvalidArgumentError(absl::StrCat("--standalone is for one node and --nnodes says ",
                                             options.policy.max_nodes, ": leave one of them out"));
  }
  const bool has_place =
      options.meeting.endpoint.has_value() || !options.meeting.master_addr.empty();
  // Node 0 of a job of the cluster listens. Its node daemon tells the other nodes where.
  const bool listens = options.node.rank == 0 && !options.detached_directory.empty();
  const char* needs_place = options.node.rank.has_value() && !listens ? "--node-rank"
                            : options.meeting.master_port.has_value() ? "--master-port"
                            : options.meeting.backend == "static"     ? "--rdzv-backend static"
                                                                      : nullptr;
  if (needs_place != nullptr && !has_place) {
    return InvalidArgumentError(
        absl::StrCat(needs_place, " needs the place where the nodes meet: add --master-addr HOST",
                     options.meeting.backend == "static" ? "" : " or --rdzv-endpoint HOST"));
  }
  HLAUNCH_RETURN_IF_ERROR(CheckHost(options, has_place));
  const bool several = !options.meeting.other_endpoints.empty();
  if (several && options.meeting.backend == "static") {
    return InvalidArgumentError(
        "--rdzv-endpoint names several services, and --rdzv-backend static meets at one node");
  }
  const auto no_port = [](const Endpoint& endpoint) { return endpoint.port == 0; };
  const auto& others = options.meeting.other_endpoints;
  if ((options.meeting.endpoint.has_value() && no_port(*options.meeting.endpoint)) ||
      std::any_of(others.begin(), others.end(), no_port)) {
    return InvalidArgumentError(
        "--rdzv-endpoint: several nodes must know the port; write one instead of 0, such as 29400");
  }
  if (options.meeting.master_port == 0) {
    return InvalidArgumentError(
        "--master-port: several nodes must know the port; write one instead of 0, such as 29500");
  }
  return absl::OkStatus();
}

size_t TableIndex(const FoundValue& found) {
  return static_cast<size_t>(found.row - OptionTable().data());
}

void Drop(RawOptions& raw, const FoundValue* value) {
  if (value != nullptr) raw.given.erase(raw.given.begin() + (value - raw.given.data()));
}

// Adds values from a weaker source. Requires: the source of `weaker` is not stronger than those of
// `raw`.
void Merge(std::vector<FoundValue> weaker, RawOptions& raw) {
  for (FoundValue& value : weaker) {
    const FoundValue* stronger = raw.Find(value.row->name);
    const bool repeated = stronger != nullptr && value.row->repeats &&
                          stronger->source == value.source && stronger->origin == value.origin;
    if (stronger == nullptr || repeated) raw.given.push_back(std::move(value));
  }
}

// Adds HLAUNCH_HOSTS, unless an option says that the job has one node or that this is one of
// several.
void AddHostsVariable(const Environment& environment, RawOptions& raw) {
  const std::string hosts = environment.Get(kEnvHosts);
  if (hosts.empty() || NamesHosts(raw)) return;
  for (const char* name : {"--standalone", "--rdzv-endpoint", "--master-addr", "--node-rank"}) {
    if (raw.Find(name) != nullptr) return;
  }
  Options one_node;  // --nnodes 1:1 is one node, too.
  const FoundValue* const nnodes = raw.Find("--nnodes");
  if (nnodes != nullptr && nnodes->row->set(nnodes->value, one_node).ok() &&
      one_node.policy.max_nodes == 1) {
    return;
  }
  raw.given.push_back({FindOption("--hosts"), hosts, OptionSource::kEnvironment, kEnvHosts});
}

void AddClusterFileVariable(const Environment& environment, RawOptions& raw) {
  const std::string path = environment.Get(kEnvClusterFile);
  if (path.empty() || raw.Find("--cluster-file") != nullptr) return;
  raw.given.push_back(
      {FindOption("--cluster-file"), path, OptionSource::kEnvironment, kEnvClusterFile});
}

// Adds the file of --config, if there is one, then the variables. The command in the file counts
// only if no command was typed.
absl::Status AddOtherSources(const Environment& environment, RawOptions& raw) {
  if (const FoundValue* config = raw.Find("--config")) {
    HLAUNCH_ASSIGN_OR_RETURN(Config found, ReadConfig(config->value));
    if (raw.rest.empty()) raw.rest = std::move(found.command);
    Merge(std::move(found.values), raw);
  }
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<FoundValue> found, FindInEnvironment(environment));
  Merge(std::move(found), raw);
  AddHostsVariable(environment, raw);
  AddClusterFileVariable(environment, raw);
  raw.given.erase(std::remove_if(raw.given.begin(), raw.given.end(),
                                 [](const FoundValue& value) {
                                   return value.source != OptionSource::kCommandLine &&
                                          !value.row->takes_value() && value.value == "false";
                                 }),
                  raw.given.end());
  if (raw.Find("--run-path") != nullptr) {  // As in torchrun.
    for (const char* name : {"--module", "--no-python"}) Drop(raw, raw.Find(name));
  }
  return absl::OkStatus();
}

// Puts one value into `options`. Requires: its row has a setter.
absl::Status SetValue(const FoundValue& found, Options& options) {
  const absl::Status status = found.row->set(found.value, options);
  if (status.ok()) return status;
  return InvalidArgumentError(
      absl::StrCat(found.origin, " '", PrintableLine(found.value), "': ", status.message()));
}

// Removes --hosts if it asks for the hosts of the allocation; returns whether it did. The
// surroundings then give the hosts.
bool DropHostsOfAllocation(RawOptions& raw) {
  const FoundValue* const hosts = raw.Find("--hosts");
  if (hosts == nullptr || hosts->value != kHostsOfAllocation) return false;
  Drop(raw, hosts);
  return true;
}

// Changes `place` for a task that stands for its whole node and has no workers in the node's other
// tasks.
ClusterPlace WithoutTasks(ClusterPlace place) {
  if (!place.tasks) return place;
  place.tasks.reset();
  place.values.erase(std::remove_if(place.values.begin(), place.values.end(),
                                    [](const PlaceValue& value) {
                                      return value.name == "--devices" || value.name == "--bind";
                                    }),
                     place.values.end());
  return place;
}

// The scheduler whose own starter reaches the hosts that `raw` names of its job; empty: none.
std::string SystemOfStarter(const Surroundings& surroundings, const RawOptions& raw) {
  const FoundValue* const starter = raw.Find("--launch-agent");
  if (starter == nullptr || !NamesHosts(raw)) return "";
  const ClusterPlace job = AllocationPlace(surroundings);
  const bool own =
      std::any_of(job.values.begin(), job.values.end(), [starter](const PlaceValue& value) {
        return value.name == "--launch-agent" && value.value == starter->value;
      });
  return own ? job.cluster : "";
}

// Adds what the surroundings say about this node's place and stronger sources leave open. With
// --explain-cluster, returns its text instead.
absl::StatusOr<std::optional<std::string>> AddPlace(const Surroundings& surroundings,
                                                    RawOptions& raw, Options& options) {
  for (const char* name : {"--cluster-file", "--cluster"}) {
    const FoundValue* const found = raw.Find(name);
    if (found != nullptr) HLAUNCH_RETURN_IF_ERROR(SetValue(*found, options));
  }
  // The host of a command with --hosts is not a node of the job, so it has no place.
  if (NamesHosts(raw) && options.cluster != kOwnCluster) {
    HLAUNCH_RETURN_IF_ERROR(CheckFirstTask(surroundings.environment));
    options.cluster = "none";
  }
  const bool whole = DropHostsOfAllocation(raw);
  ClusterPlace place =
      whole ? AllocationPlace(surroundings)
            : ChooseStart(FindPlace(surroundings, options.cluster, options.cluster_systems),
                          raw.given, options.program, options.cluster);
  if (surroundings.alone) place = WithoutTasks(std::move(place));
  // With ssh, a node would not learn its scheduler's job. With the scheduler's own starter it does.
  const bool own_starter =
      std::any_of(place.values.begin(), place.values.end(),
                  [](const PlaceValue& value) { return value.name == "--launch-agent"; });
  const std::string system = own_starter ? place.cluster : SystemOfStarter(surroundings, raw);
  // Grid Engine's list of hosts and slots is a file of the first host alone.
  if (system != "sge") options.hosts.system = system;
  absl::StatusOr<TakenPlace> taken = TakePlace(place, raw.given);
  if (raw.Find("--explain-cluster") != nullptr) {
    return ExplainPlace(place, raw.given, taken, raw.Find("--json") != nullptr);
  }
  if (!taken.ok() && place.told_elsewhere) {
    options.tasks = place.tasks;  // Task 0 prints the error and tells the other nodes.
    return InvalidArgumentError("");
  }
  HLAUNCH_RETURN_IF_ERROR(taken.status());
  options.tasks = std::move(taken->tasks);
  options.policy.started_nodes = taken->started_nodes;
  options.cluster_warnings = std::move(taken->warnings);
  for (FoundValue& value : raw.given) {
    const bool is_nnodes = string_view(value.row->name) == "--nnodes";
    if (is_nnodes && !taken->nnodes.empty()) value.value = taken->nnodes;
  }
  Merge(std::move(taken->values), raw);
  std::stable_sort(
      raw.given.begin(), raw.given.end(),
      [](const FoundValue& a, const FoundValue& b) { return TableIndex(a) < TableIndex(b); });
  return std::nullopt;
}

// Puts the values into `options`, notes their sources, and completes `option_words`.
absl::Status Apply(const RawOptions& raw, Options& options) {
  for (const FoundValue& found : raw.given) {
    if (found.row->is_flag() && found.value != "true") {
      return InvalidArgumentError(
          absl::StrCat(found.origin, " takes no value; leave out ", PrintableLine(found.value)));
    }
    if (found.row->set == nullptr) continue;
    HLAUNCH_RETURN_IF_ERROR(SetValue(found, options));
    if (found.source == OptionSource::kCommandLine) continue;
    const bool bare = !found.row->takes_value() && found.value == "true";
    const std::string typed =
        bare ? found.row->name : absl::StrCat(found.row->name, "=", found.value);
    options.sources.push_back(absl::StrCat(found.origin, " gives ", PrintableLine(typed)));
    // Another host gets these values from its own surroundings.
    if (found.source != OptionSource::kCluster) options.option_words.push_back(typed);
  }
  return absl::OkStatus();
}

// Replaces the option `name` in `message` by how it was typed.
std::string WithSpelling(absl::string_view message, absl::string_view name,
                         const std::string& typed) {
  std::vector<std::string> words = absl::StrSplit(message, ' ');
  for (std::string& word : words) {
    const size_t size = word.find_first_of(":,;=");
    if (absl::string_view(word).substr(0, size) == name) word.replace(0, name.size(), typed);
  }
  return absl::StrJoin(words, " ");
}

// Names the options that `status` mentions as they were typed, and adds which variables and keys
// gave the others.
absl::Status NameSources(const absl::Status& status, const RawOptions& raw) {
  std::string message(status.message());
  std::vector<std::string> sources;
  for (const FoundValue& found : raw.given) {
    if (found.source == OptionSource::kCommandLine) {
      message = WithSpelling(message, found.row->name, found.origin);
      continue;
    }
    if (!absl::StrContains(absl::StrCat(message, " "), absl::StrCat(found.row->name, " ")))
      continue;
    sources.push_back(absl::StrCat(found.row->name, " is from ", found.origin));
  }
  if (sources.empty()) return InvalidArgumentError(message);
  return InvalidArgumentError(absl::StrCat(message, " (", absl::StrJoin(sources, ", "), ")"));
}

// Removes the weaker of two options that exclude each other if they come from different sources;
// refuses two from one source if their rows say so.
absl::Status Exclude(RawOptions& raw) {
  for (const OptionRow& row : OptionTable()) {
    for (const string_view other : absl::StrSplit(row.excludes, ' ', absl::SkipEmpty())) {
      const FoundValue* const a = raw.Find(row.name);
      const FoundValue* const b = raw.Find(other);
      if (a == nullptr || b == nullptr) continue;
      if (a->source != b->source) {
        Drop(raw, a->source < b->source ? a : b);
      } else if (row.refusal != nullptr) {
        const absl::Status refused = InvalidArgumentError(
            row.refusal == kLeaveOneOut ? absl::StrCat(row.name, " and ", other, kLeaveOneOut)
                                        : row.refusal);
        return NameSources(refused, raw);
      }
    }
  }
  return absl::OkStatus();
}

// Returns the text to print instead of running a job; unset if there is none.
absl::StatusOr<std::optional<std::string>> TextToPrint(const RawOptions& raw,
                                                       const std::string& program) {
  if (raw.Find("--help") != nullptr) return HelpText(program);
  if (raw.Find("--version") != nullptr) {
    return absl::StrCat("hlaunch ", VersionText(), "\n",
                        raw.Find("--verbose") != nullptr ? kBuiltWith : "");
  }
  const FoundValue* shell = raw.Find("--print-completion");
  if (shell == nullptr) return std::nullopt;
  if (shell->value == "bash") return BashCompletion(program);
  if (shell->value == "zsh") return ZshCompletion(program);
  return InvalidArgumentError(
      absl::StrCat("--print-completion '", PrintableLine(shell->value), "': expected bash or zsh"));
}

// Reads --install-links and --install-copies, with which no job runs.
absl::Status SetInstall(const RawOptions& raw, Options& options) {
  for (const char* name : {"--install-links", "--install-copies"}) {
    const FoundValue* found = raw.Find(name);
    if (found == nullptr) continue;
    if (options.instead.installs()) {
      return InvalidArgumentError("--install-links and --install-copies: leave one of them out");
    }
    HLAUNCH_RETURN_IF_ERROR(SetValue(*found, options));
    if (!raw.rest.empty()) {
      return InvalidArgumentError(
          absl::StrCat(name, " runs nothing: leave out ", PrintableLine(raw.rest.front())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Environment& environment) {
  return ParseOptions(argc, argv, Surroundings{environment, "", {}, ""});
}

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Surroundings& surroundings) {
  HLAUNCH_CHECK(argc > 0);
  Options options;
  options.program = ProgramName(argv[0]);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedLine line,
                           ReadTypedLine(std::vector<std::string>(argv + 1, argv + argc)));
  HLAUNCH_ASSIGN_OR_RETURN(RawOptions raw, Tokenize(line, options.program));
  HLAUNCH_ASSIGN_OR_RETURN(options.text_to_print, TextToPrint(raw, options.program));
  if (options.text_to_print) return options;
  HLAUNCH_RETURN_IF_ERROR(SetInstall(raw, options));
  if (options.instead.installs()) return options;
  options.option_words = {argv[0]};
  options.option_words.insert(options.option_words.end(), line.words.begin(),
                              line.words.end() - static_cast<std::ptrdiff_t>(raw.rest.size()));
  const bool behind_dashes = !raw.rest.empty() && raw.rest.front() == "--";
  if (behind_dashes) raw.rest.erase(raw.rest.begin());
  if (!raw.rest.empty() && absl::StartsWith(raw.rest.front(), "-")) {
    return UnknownOption(raw.rest.front(), behind_dashes, options.program);
  }
  if (!raw.rest.empty() && !behind_dashes) {
    HLAUNCH_RETURN_IF_ERROR(CheckValueOfFlag(options.option_words.back(), raw.rest));
  }
  if (!raw.rest.empty()) HLAUNCH_RETURN_IF_ERROR(CheckDashes(raw.rest.front()));
  // torchrun's argparse takes the first -- for its own, also behind the script.
  const bool as_torchrun = options.program == "torchrun" && !behind_dashes;
  if (as_torchrun && raw.rest.size() > 1 && raw.rest[1] == "--") {
    raw.rest.erase(raw.rest.begin() + 1);
  }
  HLAUNCH_RETURN_IF_ERROR(AddOtherSources(surroundings.environment, raw));
  HLAUNCH_RETURN_IF_ERROR(Exclude(raw));
  HLAUNCH_ASSIGN_OR_RETURN(options.text_to_print, AddPlace(surroundings, raw, options));
  if (options.text_to_print) return options;
  if (raw.rest.empty() || raw.rest.front().empty()) {
    return InvalidArgumentError(absl::StrCat("no script given; usage: ", options.program,
                                             " [options] script.py [args...]"));
  }
  options.script.command = raw.rest;
  HLAUNCH_RETURN_IF_ERROR(Apply(raw, options));
  options.detached_directory = surroundings.environment.Get(kEnvDetached);
  absl::Status fit = CheckTogether(options, raw.Find("--standalone") != nullptr);
  fit.Update(CheckHosts(raw));
  if (!fit.ok()) return NameSources(fit, raw);
  options.hosts.numbers_count = ListOutranksWorkers(raw);
  options.says_size = SaysSize(line, raw);
  HLAUNCH_RETURN_IF_ERROR(TakeNumber(line, options));
  return options;
}

Options ParseWhatIsRight(int argc, const char* const* argv, const Surroundings& surroundings) {
  HLAUNCH_CHECK(argc > 0);
  Options options;
  options.program = ProgramName(argv[0]);
  const absl::StatusOr<TypedLine> line =
      ReadTypedLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return options;
  absl::StatusOr<RawOptions> raw = Tokenize(*line, options.program);
  if (!raw.ok()) return options;
  AddOtherSources(surroundings.environment, *raw).IgnoreError();
  Exclude(*raw).IgnoreError();
  AddPlace(surroundings, *raw, options).status().IgnoreError();
  for (const FoundValue& found : raw->given) {
    if (found.row->set != nullptr) found.row->set(found.value, options).IgnoreError();
  }
  return options;
}

}  // namespace hlaunch
