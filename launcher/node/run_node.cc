// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/run_node.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/agent.h"
#include "agent/node_facts.h"
#include "agent/output/console.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/node/descriptors.h"
#include "launcher/node/observation.h"
#include "launcher/report/check_text.h"
#include "launcher/report/doctor.h"
#include "launcher/report/json_report.h"
#include "launcher/report/summary.h"
#include "launcher/report/termination_message.h"
#include "launcher/words/exit_codes.h"
#include "launcher/words/programs.h"
#include "proto/base/log.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/listening/local_addresses.h"

namespace hlaunch {
namespace {

// Beyond the workers' own grace: what other nodes need to hear the outcome and say so.
constexpr Duration kLinger = std::chrono::seconds(10);
// After so long without meeting anybody a node says what it believes.
constexpr Duration kBeliefTime = std::chrono::seconds(10);
constexpr Duration kLingerStep = std::chrono::milliseconds(100);

// The first of this host's places in the job that no other agent here holds. The claim is an
// abstract socket, which belongs to the network namespace and ends with the process.
class Slot {
 public:
  explicit Slot(const std::string& job_id) {
    for (number_ = 0; number_ < kMaxSlots; ++number_) {
      if (Claim(absl::StrCat("hlaunch/", job_id.substr(0, 64), "/", number_))) return;
    }
  }
  int number() const { return number_; }

 private:
  static constexpr int kMaxSlots = 1024;

  bool Claim(const std::string& name) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0;
  }

  int number_ = 0;
  UniqueFd fd_;
};

NodeInfo MakeNodeInfo(const JobSpec& spec, const NodeLink& link, const Slot& slot) {
  NodeInfo info;
  info.job_id = spec.job_id;
  info.node_id =
      spec.node.rank ? absl::StrCat("rank-", *spec.node.rank) : HostNodeId(slot.number());
  info.incarnation = NewIncarnation();
  info.host = HostName();
  info.pid = ::getpid();
  info.started_ms = BootMillis();
  info.nproc = spec.worker.nproc;
  info.node_rank = spec.node.rank;
  // Where the master store shares the rendezvous' port, its node must be the first.
  if (!info.node_rank && link.shared_store_port() != 0) info.node_rank = 0;
  info.policy = spec.policy;
  if (spec.mode == JobMode::kSingleNode) info.address = "127.0.0.1";
  return info;
}

// Has `link` say once what it believes if it has met nobody for long.
void ArmBelief(const NodeLink& link, Duration limit, asio::steady_timer& timer) {
  timer.expires_after(limit);
  timer.async_wait([&link, limit](const asio::error_code& error) {
    const std::string belief = error ? "" : link.Belief(limit);
    if (!belief.empty()) LogWarning(belief);
  });
}

AgentOptions MakeAgentOptions(const JobSpec& spec, const NodeLink& link, const NodeInfo& info) {
  AgentOptions options;
  options.info = info;
  options.spec = spec.worker;
  options.store = spec.store.server;
  options.worker_store = spec.store.in_worker;
  options.store_proxy = spec.store.proxy;
  if (spec.mode == JobMode::kSingleNode) {
    options.store_address = "127.0.0.1";
    options.store_port = spec.master_port.value_or(0);
  } else if (link.shared_store_port() != 0) {
    options.store_port = link.shared_store_port();
    options.store_is_shared = true;
  }
  return options;
}

// The program that checks this node: `hlaunch`, which starts without gRPC, else this.
std::string CheckProgram() {
  for (const std::string& program : PlacesOfProgram(PathOfThisProgram(), "hlaunch")) {
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return kThisProgram;
}

void PrintFindings(const std::vector<CheckResult>& checked, bool json) {
  std::fputs((json ? DoctorJson(checked) : DoctorText(checked)).c_str(), stdout);
  std::fflush(stdout);
}

// Keeps the rendezvous until every node has heard how the job ended; says for whom.
void Linger(NodeLink& link, const SignalNumbers& named, Duration limit) {
  const Instant begin = MonotonicClock().Now();
  bool said = false;
  while (true) {
    const Instant now = MonotonicClock().Now();
    const auto awaited = link.AwaitOthers(now + kLingerStep);
    if (awaited.empty()) return;
    if (now - begin > limit || TerminationPending(named)) {
      LogWarning(absl::StrCat("leaving though ", absl::StrJoin(awaited, ", "),
                              " did not confirm the end of the job"));
      return;
    }
    if (!said && now - begin > std::chrono::seconds(1)) {
      said = true;
      LogInfo(absl::StrCat("waiting for ", absl::StrJoin(awaited, ", "),
                           " to confirm the end of the job"));
    }
  }
}

AgentResult PortTaken(const JobSpec& spec) {
  AgentResult result;
  result.exit_code = kExitPortInUse;
  result.end = absl::AlreadyExistsError(
      absl::StrCat("port ", spec.endpoint.port,
                   " of this host is in use by a program that is no rendezvous of hlaunch; end "
                   "it, or give all nodes another port with --rdzv-endpoint or --master-port"));
  return result;
}

// What the others hear if the node that hosts the rendezvous goes first.
Outcome HostLeft(const NodeInfo& info, const AgentResult& result) {
  Outcome outcome;
  outcome.exit_code = result.exit_code;
  outcome.reason =
      absl::StrCat(info.host, ", which hosts the rendezvous, left: ", result.end.message());
  return outcome;
}

// On the node that prints the report, and on one that never heard how the job ended.
void KeepReport(const std::string& file, const JobSpec& spec, const NodeInfo& info,
                const AgentResult& result) {
  if (file.empty() || (result.outcome && !result.outcome->report)) return;
  Outcome outcome;
  outcome.exit_code = result.exit_code;
  outcome.reason = std::string(result.end.message());
  const std::string json = JsonReport(
      {spec.job_id, info.host, spec.policy.max_restarts, result.store_port, WallMillis()},
      result.outcome.value_or(outcome));
  if (const absl::Status kept = WriteReport(file, json); !kept.ok()) LogError(kept.message());
}

// On every node that fails, since each has a container of its own.
void KeepTermination(const std::string& file, const JobSpec& spec, const AgentResult& result) {
  if (result.exit_code == 0) return;
  SummaryStyle style;
  style.max_restarts = spec.policy.max_restarts;
  style.store_port = result.store_port;
  const std::vector<std::string> lines = result.outcome
                                             ? SummaryLines(*result.outcome, style)
                                             : std::vector{std::string(result.end.message())};
  const std::string failed =
      KeepTerminationMessage(file.empty() ? kTerminationLog : file, TerminationMessage(lines));
  if (!failed.empty()) LogWarning(failed);
}

std::string EndReason(const AgentResult& result) {
  return result.outcome ? result.outcome->reason : std::string(result.end.message());
}

void PrintSummary(const JobSpec& spec, const AgentResult& result, const Options& options) {
  if (!result.outcome) {
    if (absl::IsCancelled(result.end)) {
      LogWarning(absl::StrCat("this node left the job: ", result.end.message()));
    } else if (!result.end.ok()) {
      LogError(result.end.message());
    }
    return;
  }
  if (!result.outcome->report) {  // One for the job; the others say it in a line.
    const std::string line = SummaryLine(*result.outcome);
    if (!line.empty()) LogError(line);
    return;
  }
  SummaryStyle style;
  style.verbose = options.output.log_level == LogLevel::kDebug;
  style.colour = !options.output.json && ConsoleStyleOf(STDERR_FILENO).colour;
  style.max_restarts = spec.policy.max_restarts;
  style.store_port = result.store_port;
  for (const std::string& line : SummaryLines(*result.outcome, style)) LogError(line);
}

}  // namespace

int RunNode(const Options& options, const JobSpec& spec, KeeperLink keeper,
            const ConnectFn& connect) {
  const std::string host = HostName();
  if (spec.policy.max_nodes > 1) SetLogName(host);
  SetLogJob(spec.job_id);
  for (const std::string& warning : spec.warnings) LogWarning(warning);
  for (const std::string& note : spec.notes) LogDebug(note);
  if (options.binding.report) {
    for (const std::string& line : spec.binding_lines) LogInfo(line);
  } else if (!spec.worker.bindings.empty() && !options.binding.mode && !options.binding.numa) {
    LogInfo(absl::StrCat(spec.binding, "; --report-bindings shows it, --bind none leaves it"));
  }

  const auto logs = LogDirectory::Make(spec.logs, spec.job_id);
  if (!logs.ok()) {
    LogError(logs.status().message());
    return kExitUsage;
  }
  const std::optional<uint64_t> descriptors_before = RaiseDescriptorLimit();
  absl::StatusOr<std::unique_ptr<NodeLink>> link =
      NeedsGrpc(spec) ? connect(spec, options) : MakeLocalLink(spec);
  if (!link.ok()) {
    LogError(link.status().message());
    return ExitCodeOf(FailedStep::kMeet, link.status());
  }
  const Slot slot(spec.job_id);
  const NodeInfo info = MakeNodeInfo(spec, **link, slot);
  if (auto obituary = (*link)->obituary(info); !obituary.argv.empty()) {
    const absl::Status known = keeper.RegisterObituary(obituary.argv, obituary.env);
    if (!known.ok()) LogDebug(known.message());
  }

  asio::io_context loop(1);
  const absl::StatusOr<std::unique_ptr<OutputRelay>> relay = OutputRelay::Make(loop);
  if (!relay.ok()) {
    LogError(relay.status().message());
    return kExitNoResources;
  }
  AgentOptions agent_options = MakeAgentOptions(spec, **link, info);
  agent_options.facts.usable_cores = UsableCores();
  if (!spec.endpoint.host.empty()) agent_options.facts.endpoint = HostPort(spec.endpoint);
  agent_options.logs = (*logs)->logs();
  agent_options.checks.sysroot = options.sysroot;
  if (agent_options.logs.kept) agent_options.checks.log_directory = agent_options.logs.directory;
  agent_options.check_command = [](const CheckPlan& plan) {
    return CheckCommand(CheckProgram(), plan);
  };
  if (!options.instead.doctor) agent_options.health_interval = options.health_interval;
  std::vector<CheckResult> checked;  // The last time.
  agent_options.on_checks = [&](const std::vector<CheckResult>& results) { checked = results; };
  agent_options.keeper_fd = keeper.fd();
  agent_options.spec.descriptor_limit = descriptors_before;
  Observation observation(loop, **relay, options,
                          spec.logs.directory.empty() ? "" : (*logs)->logs().directory, spec.job_id,
                          host);
  agent_options.on_event = [&](const NodeEvent& event) { observation.Tell(event); };
  asio::steady_timer belief(loop);
  ArmBelief(**link, std::min<Duration>(kBeliefTime, spec.policy.join_timeout / 2), belief);
  Agent agent(loop, std::move(agent_options), (*link)->client(), **relay);
  AgentResult result = agent.Run();
  if ((*link)->port_was_taken() && absl::IsUnavailable(result.end)) {
    result = PortTaken(spec);
  }

  observation.Tell(NodeFinished{result.exit_code, EndReason(result)});
  if ((*link)->hosts()) {
    if (!result.outcome) (*link)->End(HostLeft(info, result));
    Linger(**link, spec.worker.signals_to_handle, kLinger + spec.worker.stop_grace);
  }
  link->reset();  // Before the agent, which it calls.
  if (const std::string lost = (*logs)->logs().losses->Summary(); !lost.empty()) LogWarning(lost);
  KeepReport(options.output.report_file, spec, info, result);
  KeepTermination(options.output.termination_log, spec, result);
  if (options.instead.doctor) PrintFindings(checked, options.instead.doctor_json);
  PrintSummary(spec, result, options);
  return result.exit_code;
}

}  // namespace hlaunch
