// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/dry_run.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/machine/devices/visible_devices.h"
#include "agent/node_facts.h"
#include "agent/watch/hang/tap.h"
#include "agent/worker_process.h"
#include "agent/workers/fork_server/plan_fork_servers.h"
#include "agent/workers/fork_server/preview_preload.h"
#include "agent/workers/process/program_file.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "launcher/text/shell_words.h"
#include "nlohmann/json.hpp"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/socket/lookup.h"

namespace hlaunch {
namespace {

using nlohmann::ordered_json;

constexpr char kUnknown[] = "?";
constexpr Duration kLookupTime = std::chrono::seconds(2);

const char* ModeName(JobMode mode) {
  switch (mode) {
    case JobMode::kSingleNode:
      return "single node";
    case JobMode::kEndpoint:
      return "endpoint";
    case JobMode::kStatic:
      return "static";
    case JobMode::kListenAndPrint:
      return "print the command";
  }
  return "";
}

std::string MeetingPlace(const JobSpec& spec) {
  switch (spec.mode) {
    case JobMode::kSingleNode:
      return "nowhere: there is one node";
    case JobMode::kListenAndPrint:
      return absl::StrCat("here, on the first free port from ", spec.endpoint.port, " on");
    default:
      return HostPort(spec.endpoint);
  }
}

// Says where workers find the master store, and whom it serves.
std::string StoreText(const JobSpec& spec) {
  if (spec.worker_store) return "rank 0 serves it, to all who reach it";
  const bool any_user = spec.worker.any_user;
  const char* besides = spec.store.server.access.has_value() ? ", and --store-allow" : "";
  if (spec.mode == JobMode::kSingleNode) {
    return absl::StrCat("on loopback, for ", any_user ? "all users" : "the job's user", besides);
  }
  const char* users = any_user ? "for all users of the nodes, as --any-user says"
                      : spec.store_sealed
                          ? "for the job's user, as the agents say whose a connection is"
                          : "for all users of the nodes, since there is no secret to ask agents by";
  const char* way = !spec.store_proxy   ? "at node rank 0, in clear"
                    : spec.store_sealed ? "through each node's agent, encrypted"
                                        : "through each node's agent, in clear";
  return absl::StrCat(way, ", ", users, besides);
}

std::string Count(int count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string NodesText(const JobPolicy& policy) {
  return policy.min_nodes == policy.max_nodes
             ? Count(policy.max_nodes, "node")
             : absl::StrCat(policy.min_nodes, " to ", Count(policy.max_nodes, "node"));
}

const char* StreamsName(Streams streams) {
  switch (streams) {
    case Streams::kNone:
      return "";
    case Streams::kOut:
      return "stdout";
    case Streams::kErr:
      return "stderr";
    case Streams::kBoth:
      return "stdout and stderr";
  }
  return "";
}

// Returns "stdout and stderr of every worker" or "stdout of local rank 2"; empty if there is no
// file.
std::string FilesText(const StreamChoice& choice) {
  std::vector<std::string> parts;
  for (const auto& [rank, streams] : choice.ranks) {
    if (streams == Streams::kNone) continue;
    parts.push_back(absl::StrCat(StreamsName(streams), " of local rank ", rank));
  }
  if (choice.others != Streams::kNone) {
    parts.push_back(absl::StrCat(StreamsName(choice.others), " of every worker"));
  }
  return absl::StrJoin(parts, ", ");
}

std::vector<std::string> OutputLines(const LogSpec& logs) {
  std::vector<std::string> lines;
  const std::string redirects = FilesText(logs.redirects), tee = FilesText(logs.tee);
  if (!tee.empty()) lines.push_back(absl::StrCat("here and in files: ", tee));
  if (!redirects.empty()) lines.push_back(absl::StrCat("in files only: ", redirects));
  if (KeepsFiles(logs)) {
    lines.push_back(
        absl::StrCat("files: ", logs.directory.empty() ? "a folder below TMPDIR" : logs.directory,
                     logs.directory == "/dev/null" ? ", so none at all" : ""));
  }
  if (!logs.shown_ranks.empty()) {
    lines.push_back(absl::StrCat("here only local ranks ", absl::StrJoin(logs.shown_ranks, ", ")));
  }
  if (lines.empty()) lines.emplace_back("here, each line with its rank before it");
  return lines;
}

std::string CommandText(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (const std::string& word : WorkerArgv(argv, 0)) words.push_back(ShellQuote(word));
  return absl::StrJoin(words, " ");
}

// Returns whether each start has a new job id.
bool IdIsInvented(const Options& options, const JobSpec& spec) {
  return options.meeting.job_id.empty() && spec.endpoint.host.empty();
}

ordered_json BindingJson(const JobSpec& spec) {
  ordered_json binding = {{"reason", spec.binding}, {"picture", spec.binding_lines}};
  binding["workers"] = ordered_json::array();
  for (const WorkerBinding& worker : spec.worker.bindings) {
    ordered_json one = {
        {"cpus", FormatIds(worker.cpus)}, {"cores", worker.cores}, {"reason", worker.why}};
    one["memory_node"] = worker.memory_node < 0 ? ordered_json() : ordered_json(worker.memory_node);
    binding["workers"].push_back(std::move(one));
  }
  return binding;
}

std::string Dump(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// Returns a possible round. Every value that this node does not know yet is made from `other`.
Assignment PossibleRound(const JobSpec& spec, int other) {
  const bool alone = spec.mode == JobMode::kSingleNode;
  const auto port = static_cast<uint16_t>(10 + other);
  Assignment round;
  round.round = 1;
  round.max_restarts = spec.policy.max_restarts;
  round.node_rank = alone ? 0 : spec.node.rank.value_or(other);
  round.num_nodes =
      spec.policy.min_nodes == spec.policy.max_nodes ? spec.policy.max_nodes : 1000 + other;
  round.first_rank = alone || round.node_rank == 0 ? 0 : 2000 + other;
  round.world_size = alone ? spec.worker.nproc : 9000 + other;
  round.master_addr = alone ? "127.0.0.1" : absl::StrCat("192.0.2.", other);
  round.master_port = spec.master_port.value_or(port);
  round.coordinator_port = port;
  round.worker_store = spec.worker_store;
  round.comm_secret = absl::StrCat(other);
  return round;
}

NodeFacts PossibleFacts(const JobSpec& spec, int usable_cores, int other) {
  NodeFacts facts;
  facts.usable_cores = usable_cores;
  facts.gloo_interface = absl::StrCat("if", other);
  const bool no_files = spec.logs.directory == "/dev/null";
  facts.error_file = no_files ? "" : absl::StrCat("/", other);
  facts.log_dir = no_files || !KeepsFiles(spec.logs) ? "" : absl::StrCat("/", other);
  facts.host = HostName();
  const int node_rank = spec.node.rank.value_or(other - 1);  // 0 in one of the two rounds.
  if (spec.store_proxy && node_rank != 0)
    facts.store_proxy_port = static_cast<uint16_t>(20 + other);
  if (!spec.endpoint.host.empty()) facts.endpoint = HostPort(spec.endpoint);
  if (spec.worker.mpi == MpiOffer::kDescriptor) {
    facts.pmi_fd = "3";
  } else if (OffersPmi(spec.worker.mpi)) {
    facts.pmi_port = absl::StrCat("127.0.0.1:", other);
    facts.pmi_id = absl::StrCat(other);
  }
  if (OffersPmix(spec.worker.mpi)) {
    facts.pmix_env = {absl::StrCat("PMIX_NAMESPACE=", other), absl::StrCat("PMIX_RANK=", other)};
  }
  if (WantsTap(spec.worker.inherited_env)) {
    facts.tap = absl::StrCat("/", other);
    facts.tap_packages = facts.tap;
  }
  return facts;
}

// What each node imports before it forks ranks, or why nothing; empty if nobody asked for it.
std::string PreloadText(const JobSpec& spec) {
  const Preload& preload = spec.worker.preload;
  if (!preload.wanted()) return "";
  std::vector<Command> ranks;
  for (int local_rank = 0; local_rank < spec.worker.nproc; ++local_rank) {
    ranks.push_back(WorkerCommand(spec.worker, PossibleRound(spec, 1), local_rank,
                                  PossibleFacts(spec, 1, 1), {}));
  }
  const ForkServerPlans plans = PlanForkServers(preload, ranks);
  if (plans.plans.empty()) return absl::StrCat("nothing: ", plans.why_not);
  return absl::StrCat(ToText(PreviewPreload(plans.plans.front())),
                      plans.plans.size() == 1 ? "" : ", once for each NUMA node",
                      plans.why_not.empty() ? "" : absl::StrCat("; not for all: ", plans.why_not));
}

ordered_json JobJson(const Options& options, const JobSpec& spec, const std::string& hosting) {
  ordered_json job;
  job["job_id"] = IdIsInvented(options, spec) ? kUnknown : spec.job_id;
  job["mode"] = ModeName(spec.mode);
  job["min_nodes"] = spec.policy.min_nodes;
  job["max_nodes"] = spec.policy.max_nodes;
  job["workers_here"] = spec.worker.nproc;
  job["max_restarts"] = spec.policy.max_restarts;
  job["meeting_place"] = MeetingPlace(spec);
  job["hosting"] = hosting;
  job["master_store"] = StoreText(spec);
  job["command"] = WorkerArgv(spec.worker.argv, 0);
  for (const OtherProgram& other : spec.worker.others) {
    job["also"].push_back({{"ranks", other.ranks}, {"command", WorkerArgv(other.argv, 0)}});
  }
  job["log_dir"] = spec.logs.directory;
  job["output"] = OutputLines(spec.logs);
  job["mpi"] = spec.mpi;
  if (const std::string preload = PreloadText(spec); !preload.empty()) job["preload"] = preload;
  if (!spec.binding.empty()) job["binding"] = BindingJson(spec);
  job["warnings"] = spec.warnings;
  return job;
}

using NameAndValue = std::pair<std::string, std::string>;

NameAndValue Split(const std::string& entry) {
  const size_t equals = entry.find('=');
  return {entry.substr(0, equals), equals == entry.npos ? "" : entry.substr(equals + 1)};
}

}  // namespace

std::string DescribeJob(const Options& options, const JobSpec& spec, const std::string& hosting) {
  if (options.output.json) return Dump(JobJson(options, spec, hosting));
  std::string text =
      absl::StrCat("job          ", IdIsInvented(options, spec) ? "with a new id" : spec.job_id,
                   ": ", NodesText(spec.policy), ", ", Count(spec.worker.nproc, "worker"),
                   " here, ", Count(spec.policy.max_restarts, "restart"), "\nnodes meet   ",
                   MeetingPlace(spec), "\nthis node    ", hosting, "\nmaster store ",
                   StoreText(spec), "\nlocal rank 0 ", CommandText(spec.worker.argv), "\n");
  for (const OtherProgram& other : spec.worker.others) {
    absl::StrAppend(&text, "also         ", Count(other.ranks, "rank"), ": ",
                    CommandText(other.argv), "\n");
  }
  if (!spec.mpi.empty()) absl::StrAppend(&text, "MPI          ", spec.mpi, "\n");
  if (const std::string preload = PreloadText(spec); !preload.empty()) {
    absl::StrAppend(&text, "preload      ", preload, "\n");
  }
  const char* title = "output       ";
  for (const std::string& line : OutputLines(spec.logs)) {
    absl::StrAppend(&text, std::exchange(title, "             "), line, "\n");
  }
  if (options.binding.report) {
    title = "binding      ";
    for (const std::string& line : spec.binding_lines) {
      absl::StrAppend(&text, std::exchange(title, "             "), line, "\n");
    }
  } else if (!spec.binding.empty()) {
    absl::StrAppend(&text, "binding      ", spec.binding, "\n");
  }
  for (const std::string& warning : spec.warnings)
    absl::StrAppend(&text, "warning      ", warning, "\n");
  return absl::StrCat(text, "\nNothing was started.\n");
}

std::string DescribeEnv(const Options& options, const JobSpec& spec, int usable_cores) {
  const int rank = options.instead.print_env.value_or(0);
  const auto env_of = [&](int other) {
    WorkerSpec worker = spec.worker;
    if (IdIsInvented(options, spec)) worker.job_id = absl::StrCat(other);
    return WorkerEnv(PossibleRound(spec, other), rank, worker,
                     PossibleFacts(spec, usable_cores, other));
  };
  // A value that differs between two possible rounds is not known yet.
  const std::vector<std::string> one = env_of(1), other = env_of(2);
  ordered_json json = ordered_json::object();
  std::string text;
  for (size_t i = 0; i < one.size(); ++i) {
    auto [name, value] = Split(one[i]);
    if (name == "_") continue;  // It belongs to this process; a worker has its own.
    if (i >= other.size() || one[i] != other[i]) value = kUnknown;
    json[name] = value;
    absl::StrAppend(&text, name, "=", ShellQuote(value), "\n");
  }
  const absl::StatusOr<std::string> program = FindProgram(spec.worker.argv[0], one, "");
  if (program.ok()) {
    json["_"] = *program;
    absl::StrAppend(&text, "_=", ShellQuote(*program), "\n");
  }
  if (options.output.json) return Dump(json);
  return absl::StrCat("# Local rank ", rank, "; ? is what is known once the nodes have met.\n",
                      text);
}

int PrintInsteadOfJob(const Options& options, const JobSpec& spec) {
  std::string text;
  if (options.instead.print_env) {
    if (*options.instead.print_env >= spec.worker.nproc) {
      LogError(absl::StrCat("--print-env '", *options.instead.print_env, "': this node has ",
                            Count(spec.worker.nproc, "worker"), ", local ranks from 0"));
      return kExitUsage;
    }
    text = DescribeEnv(options, spec, UsableCores());
  } else {
    std::string hosting = "works alone";
    if (spec.mode == JobMode::kListenAndPrint) {
      hosting = "hosts the rendezvous, and prints what to run on the others";
    } else if (spec.mode != JobMode::kSingleNode) {
      const auto lookup = Lookup::Start(spec.endpoint.host);
      const auto resolved = lookup->Await(MonotonicClock().Now() + kLookupTime);
      const auto local = ListLocalAddresses();
      hosting = DecideHosting(spec, resolved.value_or(absl::UnavailableError("no answer yet")),
                              local.ok() ? *local : std::vector<LocalAddress>(), HostName())
                    .reason;
    }
    text = DescribeJob(options, spec, hosting);
  }
  std::fputs(text.c_str(), stdout);
  return FlushStdout();
}

}  // namespace hlaunch
