// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/run_node.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/agent.h"
#include "agent/node_facts.h"
#include "agent/output/agent_directory.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/watch/hang/tap.h"
#include "agent/workers/process/held_program.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/job/socket/serve_commands.h"
#include "launcher/node/descriptors.h"
#include "launcher/node/first_answer.h"
#include "launcher/node/host_end.h"
#include "launcher/node/join_again.h"
#include "launcher/node/node_identity.h"
#include "launcher/node/observation.h"
#include "launcher/node/tell_end.h"
#include "launcher/node/tell_unable.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/report/job/check_text.h"
#include "launcher/report/status/page_server.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/peer/port_owner.h"
#include "rendezvous/net/socket/lookup.h"

namespace hlaunch {
namespace {

// The time, in addition to the workers' grace, for other nodes to hear the outcome and confirm it.
constexpr Duration kLinger = std::chrono::seconds(10);
// A node that has met no other node for this time logs what may be wrong.
constexpr Duration kBeliefTime = std::chrono::seconds(10);
constexpr Duration kTidyTime = std::chrono::seconds(5);
// The longest wait for the resolver to answer for --local-addr.
constexpr Duration kNamePatience = std::chrono::seconds(10);
constexpr Duration kLingerStep = std::chrono::milliseconds(100);
// How long others are told that this node, which hosted the rendezvous, is dead; and how long at
// once by a node that waits meanwhile.
constexpr Duration kTellDeath = std::chrono::seconds(4);
constexpr Duration kTellStep = std::chrono::seconds(1);
int64_t SecondsUntil(Instant time) {
  return std::chrono::ceil<std::chrono::seconds>(time - Now()).count();
}

// Returns the address of --local-addr as a literal; empty if the route decides.
absl::StatusOr<std::string> NamedAddress(const JobSpec& spec) {
  if (spec.local_addr.empty()) return "";
  const Resolved found =
      FirstAnswer(*Lookup::Start(spec.local_addr), spec.worker.signals_to_handle, kNamePatience);
  if (found.ok()) return found->front();
  return absl::Status(found.status().code(),
                      absl::StrCat("--local-addr ", spec.local_addr, ": ", found.status().message(),
                                   "; give an address of this node as a literal"));
}

// Lets `link` log once, after `limit`, what may be wrong with the rendezvous.
void ArmBelief(const NodeLink& link, Duration limit, asio::steady_timer& timer) {
  timer.expires_after(limit);
  timer.async_wait([&link, limit](const asio::error_code& error) {
    const std::string belief = error ? "" : link.Belief(limit);
    if (!belief.empty()) LogWarning(belief);
  });
}

// Removes what killed agents left below TMPDIR once the job is old enough: a short one does not
// look.
void ArmTidying(asio::steady_timer& timer) {
  timer.expires_after(kTidyTime);
  timer.async_wait([](const asio::error_code& error) {
    if (!error) RemoveAbandonedDirectories(TemporaryDirectory());
  });
}

AgentOptions MakeAgentOptions(const JobSpec& spec, const NodeLink& link, const NodeInfo& info) {
  AgentOptions options;
  options.info = info;
  options.spec = spec.worker;
  options.store = spec.store.server;
  options.worker_store = spec.worker_store;
  options.store_proxy = spec.store_proxy;
  options.store_sealed = spec.store_sealed;
  if (spec.mode == JobMode::kSingleNode) {
    options.store_address = "127.0.0.1";
    options.store_port = spec.master_port.value_or(0);
  } else if (link.shared_store_port() != 0) {
    options.store_port = link.shared_store_port();
    options.store_is_shared = true;
  }
  return options;
}

// Returns the program that checks this node: `hlaunch`, which starts without gRPC, else this
// program.
std::shared_ptr<const HeldProgram> CheckProgram() {
  for (const std::string& program : PlacesOfProgram(PathOfThisProgram(), "hlaunch")) {
    if (::access(program.c_str(), X_OK) == 0) return std::make_shared<HeldProgram>(program);
  }
  return std::make_shared<HeldProgram>(kThisProgram);
}

// Keeps the rendezvous until every node has heard how the job ended. Logs for which nodes it waits.
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
  const std::optional<PortOwner> owner = FindPortOwner(spec.endpoint.port);
  const std::string name = owner ? absl::StrCat(" (", owner->name, ", pid ", owner->pid, ")") : "";
  result.end = absl::AlreadyExistsError(absl::StrCat(
      "port ", spec.endpoint.port, " of this host is in use by ",
      owner && IsHlaunch(*owner)
          ? absl::StrCat("a process of hlaunch", name,
                         " that does not answer as a rendezvous: it stands still, or serves "
                         "another job")
          : absl::StrCat("a program", name, " that is no rendezvous of hlaunch"),
      "; end it, or give all nodes another port with --rdzv-endpoint or --master-port"));
  return result;
}

// Makes the outcome for the other nodes if the node that hosts the rendezvous ends first.
Outcome HostLeft(const NodeInfo& info, const AgentResult& result) {
  Outcome outcome;
  outcome.exit_code = IsSignalExit(result.exit_code) ? kExitNodeStopped : result.exit_code;
  outcome.reason =
      absl::StrCat(info.host, ", which hosts the rendezvous, left: ", result.end.message());
  return outcome;
}

// Logs what was decided before the start, with warnings and notes.
void TellBeginning(const Options& options, const JobSpec& spec) {
  SetLogJob(spec.job_id);
  for (const std::string& warning : spec.warnings) LogWarning(warning);
  for (const std::string& note : spec.notes) LogDebug(note);
  LogDebug(absl::StrCat("MPI: ", spec.mpi));
  if (options.binding.report) {
    for (const std::string& line : spec.binding_lines) LogInfo(line);
  } else if (!spec.worker.bindings.empty() && !options.binding.mode && !options.binding.numa) {
    LogInfo(absl::StrCat(spec.binding, "; --report-bindings shows it, --bind none leaves it"));
  }
}

// This node's part of the job. Belongs to the main thread: Make, then Run, once each.
class NodeRun {
 public:
  // All references outlive this object.
  // `descriptors_before`: the workers' limit; unset: ours.
  NodeRun(const Options& options, const JobSpec& spec, KeeperLink& keeper, EventHook& hook,
          std::optional<uint64_t> descriptors_before)
      : options_(options),
        spec_(spec),
        keeper_(keeper),
        hook_(hook),
        descriptors_before_(descriptors_before) {}

  // Makes what the agent needs: the log directory, the link, the output relay. Returns kExitOk, or
  // logs the error and returns the exit code.
  int Make(const ConnectFn& connect);

  // Runs the agent to its end, and reports the end unless this node joins again. The host of the
  // rendezvous then waits for the other nodes.
  NodeEnd Run(int restarts_used);

 private:
  void RegisterDeathReport();
  void MakeTap();
  absl::Status MakeScratch();
  AgentOptions MakeOptions();
  void Tell(const Goodput& goodput) const;
  void EndLink();
  void DropLink();
  void ServePageWhereHosted();
  void KeepNewsOf(const NodeEvent& event, const Goodput& goodput);
  void AwaitOthersFence(NodeLink::TellDeath tell);
  bool SpeaksFirst() const;
  void AwaitReceiver();

  const Options& options_;
  const JobSpec& spec_;
  KeeperLink& keeper_;
  EventHook& hook_;
  const std::optional<uint64_t> descriptors_before_;
  std::unique_ptr<LogDirectory> logs_;
  std::unique_ptr<Tap> tap_;  // Null if the user wants none, or if making it failed.
  // For files that the workers need. Null: in the logs' directory.
  std::unique_ptr<AgentDirectory> scratch_;
  std::unique_ptr<NodeLink> link_;
  std::optional<HostSlot> slot_;
  NodeInfo info_;
  asio::io_context loop_{1};
  std::unique_ptr<OutputRelay> relay_;
  std::unique_ptr<PageServer> page_;  // Null if it is not wanted or the rendezvous is elsewhere.
  bool page_tried_ = false;
  std::vector<CheckResult> checked_;  // The results of the last checks.
  AgentResult result_;
  JobNews news_;
  bool cut_off_ = false;     // See IsCutOff.
  Instant none_lives_from_;  // If it is: see NoneLivesFrom.
};

int NodeRun::Make(const ConnectFn& connect) {
  auto logs = LogDirectory::Make(spec_.logs, spec_.job_id);
  if (!logs.ok()) {
    LogError(logs.status().message());
    TellUnable(spec_, options_, connect, std::string(logs.status().message()), kExitUsage);
    return kExitUsage;
  }
  logs_ = std::move(logs).value();
  if (!logs_->to_remove().empty()) keeper_.LeaveBehind(logs_->to_remove());
  MakeTap();
  if (const absl::Status made = MakeScratch(); !made.ok()) {
    LogError(made.message());
    TellUnable(spec_, options_, connect, std::string(made.message()), kExitNoResources);
    return kExitNoResources;
  }
  ReserveDescriptors(DecideCeiling({.nproc = spec_.worker.nproc}, DescriptorLimit()).needed);
  const absl::StatusOr<std::string> address = NamedAddress(spec_);
  if (!address.ok()) {
    const std::string why(address.status().message());
    // A name server that does not answer may do so later.
    const int exit_code = absl::IsInvalidArgument(address.status()) ? kExitUsage : kExitBadEndpoint;
    LogError(why);
    TellUnable(spec_, options_, connect, why, exit_code);
    return exit_code;
  }
  absl::StatusOr<std::unique_ptr<NodeLink>> link =
      NeedsGrpc(spec_) ? connect(spec_, options_) : MakeLocalLink(spec_);
  if (!link.ok()) {
    LogError(link.status().message());
    return ExitCodeOf(FailedStep::kMeet, link.status());
  }
  link_ = std::move(link).value();
  slot_.emplace(spec_.job_id);
  info_ = MakeNodeInfo(spec_, *link_, *slot_, *address);
  link_->Complete(info_);
  RegisterDeathReport();
  link_->WatchDeathReport([this] { RegisterDeathReport(); });
  auto relay = OutputRelay::Make(loop_, STDOUT_FILENO, STDERR_FILENO, spec_.logs.folding);
  if (!relay.ok()) {
    LogError(relay.status().message());
    return kExitNoResources;
  }
  relay_ = std::move(relay).value();
  return kExitOk;
}

void NodeRun::RegisterDeathReport() {
  const NodeLink::DeathReport death_report = link_->death_report(info_);
  if (death_report.argv.empty()) return;
  const absl::Status known = keeper_.RegisterDeathReport(death_report.argv, death_report.env);
  if (!known.ok()) LogDebug(known.message());
}

void NodeRun::MakeTap() {
  if (!WantsTap(spec_.worker.inherited_env)) return;
  auto tap = Tap::Make(logs_->to_remove());
  if (!tap.ok()) {
    return LogWarning(absl::StrCat("a hang of torch cannot be explained: ", tap.status().message(),
                                   "; another TMPDIR may help"));
  }
  tap_ = std::move(tap).value();
  if (!tap_->to_remove().empty()) keeper_.LeaveBehind(tap_->to_remove());
}

absl::Status NodeRun::MakeScratch() {
  const bool needed = OffersPmix(spec_.worker.mpi) || spec_.worker.preload.wanted();
  if (!needed || !logs_->to_remove().empty()) return absl::OkStatus();
  const std::string parent = TemporaryDirectory();
  auto scratch = AgentDirectory::Make(parent);
  if (!scratch.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no directory for ", OffersPmix(spec_.worker.mpi) ? "PMIx" : "--preload", " below ", parent,
        ": ", scratch.status().message(), "; set TMPDIR to a folder that can be written to"));
  }
  scratch_ = *std::move(scratch);
  keeper_.LeaveBehind(scratch_->path());
  return absl::OkStatus();
}

AgentOptions NodeRun::MakeOptions() {
  AgentOptions agent = MakeAgentOptions(spec_, *link_, info_);
  agent.facts.usable_cores = UsableCores();
  if (!spec_.endpoint.host.empty()) agent.facts.endpoint = HostPort(spec_.endpoint);
  if (tap_) {
    agent.facts.tap = tap_->directory();
    agent.facts.tap_packages = tap_->directory();
  }
  agent.facts.scratch = scratch_ ? scratch_->path() : logs_->to_remove();
  agent.logs = logs_->logs();
  agent.checks.sysroot = options_.sysroot;
  if (agent.logs.kept) agent.checks.log_directory = agent.logs.directory;
  // One that was replaced meanwhile may have other words.
  agent.check_command = [program = CheckProgram()](const CheckPlan& plan) {
    return CheckCommand(program->IsUnchanged() ? program->path() : kThisProgram, plan);
  };
  if (!options_.instead.doctor) agent.health_interval = options_.health_interval;
  agent.drain = options_.drain;
  agent.on_checks = [this](const std::vector<CheckResult>& results) { checked_ = results; };
  agent.time_limit = options_.time_limit;
  agent.keeper_fd = keeper_.fd();
  agent.show_life = [this](Instant until) { keeper_.ShowLife(until); };
  agent.spec.descriptor_limit = descriptors_before_;
  return agent;
}

NodeEnd NodeRun::Run(int restarts_used) {
  Observation observation(loop_, *relay_, options_,
                          spec_.logs.directory.empty() ? "" : logs_->logs().directory, spec_.job_id,
                          info_.host);
  observation.TellOthers(&hook_, SpeaksFirst());
  AgentOptions agent_options = MakeOptions();
  bool kept = options_.detached_directory.empty();
  agent_options.on_event = [&](const NodeEvent& event) {
    observation.Tell(event);
    ServePageWhereHosted();
    KeepNewsOf(event, observation.goodput());
    if (kept || !std::holds_alternative<WorkerStarted>(event)) return;
    kept = true;
    KeepStarted(options_.detached_directory).IgnoreError();
  };
  keeper_.SayBegun();
  asio::steady_timer tidy(loop_);
  ArmTidying(tidy);
  asio::steady_timer belief(loop_);
  ArmBelief(*link_, std::min<Duration>(kBeliefTime, spec_.policy.join_timeout / 2), belief);
  Agent agent(loop_, std::move(agent_options), link_->client(), *relay_);
  std::unique_ptr<JobServer> socket = ServeCommands(
      loop_, {spec_, options_, logs_->logs(), keeper_, [this] { return link_->meeting_places(); },
              [this] { return link_->Status(); },
              [this](const RankQuestion& question, JobServer::Answers::RanksDone done) {
                return link_->Ask(question, std::move(done));
              }});
  result_ = agent.Run();
  socket.reset();  // From now on nobody would answer.
  if (link_->port_was_taken() && absl::IsUnavailable(result_.end)) result_ = PortTaken(spec_);
  const Allowance allowance = link_->client().AllowanceNow(Now());
  none_lives_from_ = NoneLivesFrom(spec_.policy.lease, allowance);
  cut_off_ = !result_.outcome && IsCutOff(result_.end, allowance, Now());
  const bool in_pod = std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  const bool round_begun = !result_.ranks.empty() || link_->round_begun();
  const JoinAgain again =
      DecideJoinAgain(result_, restarts_used, spec_.policy.max_restarts, {in_pod, round_begun});
  if (again.joins && !link_->hosts() && !TerminationPending(spec_.worker.signals_to_handle)) {
    LogWarning(again.reason);
    DropLink();  // Before the agent is destroyed, because the link calls it.
    if (round_begun) AwaitOthersFence(nullptr);
    return {result_.exit_code, again.used, descriptors_before_};
  }
  const NodeFinished finished{result_.exit_code, EndReason(result_)};
  observation.Tell(finished);
  KeepNewsOf(finished, observation.goodput());
  const bool goes_first = link_->hosts() && !result_.outcome;
  const bool outlived = goes_first && !EndsWithHost(result_.exit_code) && link_->outlived();
  if (goes_first && !outlived) link_->End(HostLeft(info_, result_));
  Tell(observation.goodput());  // Before the wait for the other nodes, so the user sees it now.
  // A node that ends because it was cut off has no worker either, and others need not wait for it.
  const bool ends_apart = cut_off_ && !goes_first && spec_.policy.on_host_loss != HostLoss::kEnd;
  NodeLink::TellDeath tell;
  if (outlived || ends_apart) {
    page_.reset();
    tell = link_->Die(info_, std::string(result_.end.message()));
    DropLink();
    if (tell && tell(Now() + (outlived ? kTellDeath : kTellStep))) tell = nullptr;
  } else {
    EndLink();  // Also before the agent is destroyed.
  }
  AwaitOthersFence(tell);
  AwaitReceiver();
  return {result_.exit_code, std::nullopt, std::nullopt};
}

// Returns whether this node sends the events of --on-event while no rank is known.
bool NodeRun::SpeaksFirst() const {
  return spec_.mode == JobMode::kSingleNode || link_->hosts() || info_.node_rank == 0;
}

// Waits until the last events are delivered: the end of this process may end its container, and
// with it the process that delivers them.
void NodeRun::AwaitReceiver() {
  hook_.Finish();
  const Instant limit = Now() + EventHook::kDeliverLimit + EventHook::kLastWords;
  while (!hook_.AwaitGiven(std::min(limit, Now() + kLingerStep))) {
    if (Now() >= limit || TerminationPending(spec_.worker.signals_to_handle)) return;
  }
}

void NodeRun::EndLink() {
  if (link_->hosts()) {
    Linger(*link_, spec_.worker.signals_to_handle, kLinger + spec_.worker.stop_grace);
  }
  DropLink();
}

// The page goes first, because it asks the link from a thread of its own.
void NodeRun::DropLink() {
  page_.reset();
  link_.reset();
}

// Writes news for those who look into the folder of a detached job.
void NodeRun::KeepNewsOf(const NodeEvent& event, const Goodput& goodput) {
  const auto* const started = std::get_if<RoundStarted>(&event);
  const bool changes = started != nullptr || std::holds_alternative<RoundStopped>(event) ||
                       std::holds_alternative<NodeFinished>(event);
  if (!changes || options_.detached_directory.empty()) return;
  if (started != nullptr) {
    news_.round = static_cast<int>(started->assignment.round);
    news_.restarts = started->assignment.restart_count;
  }
  const Instant now = Now();
  const auto milliseconds = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  news_.runs = started != nullptr;
  news_.ran_ms = milliseconds(goodput.Ran(now));
  news_.whole_ms = milliseconds(goodput.Whole(now));
  news_.at_ms = WallMillis();
  KeepNews(options_.detached_directory, news_).IgnoreError();
}

// Called after every event: this node may begin to host late, once other nodes have died.
void NodeRun::ServePageWhereHosted() {
  if (page_tried_ || !options_.output.status_page || !link_->hosts()) return;
  page_tried_ = true;
  StatusPages::Source source;
  source.job = [this](const std::string&) { return link_->Status(); };
  if (!spec_.endpoint.host.empty()) {
    source.how_to_ask = absl::StrCat("--rdzv-endpoint ", HostPort(spec_.endpoint));
  }
  source.elsewhere = "the job is decided by another node now; its page is there";
  page_ = ServePages(
      *options_.output.status_page, spec_.token,
      spec_.worker.any_user ? PageServer::Audience::kThisHost : PageServer::Audience::kOwnUser,
      std::move(source));
}

// If this node is cut off from a job whose record its agents keep, delays the end of this process,
// so that its scheduler does not start it again too early; see NoneLivesFrom. Meanwhile it tells
// its death with `tell`, if that is set: the network may come back.
void NodeRun::AwaitOthersFence(NodeLink::TellDeath tell) {
  if (!cut_off_ || spec_.policy.on_host_loss == HostLoss::kEnd || none_lives_from_ <= Now()) return;
  LogInfo(absl::StrCat("ending in ", SecondsUntil(none_lives_from_), " s: until then workers of ",
                       "nodes that are cut off from this one may live, and must not meet others"));
  while (Now() < none_lives_from_ && !TerminationPending(spec_.worker.signals_to_handle)) {
    if (tell && tell(Now() + kTellStep)) tell = nullptr;
    std::this_thread::sleep_for(kLingerStep);
  }
}

void NodeRun::Tell(const Goodput& goodput) const {
  if (const std::string lost = logs_->logs().losses->Summary(); !lost.empty()) LogWarning(lost);
  TellEnd(options_, spec_, result_, checked_, goodput);
}

}  // namespace

NodeEnd RunNode(const Options& options, const JobSpec& spec, KeeperLink& keeper, EventHook& hook,
                const ConnectFn& connect, int restarts_used) {
  TellBeginning(options, spec);
  const std::optional<uint64_t> descriptors_before = RaiseDescriptorLimit();
  const uint64_t least = LeastDescriptors(spec.worker.nproc, NeedsGrpc(spec));
  if (const absl::Status room = CheckDescriptors(least); !room.ok()) {
    LogError(room.message());
    const bool enough = CheckDescriptors(LeastDescriptors(0, true)).ok();
    if (enough) TellUnable(spec, options, connect, std::string(room.message()), kExitNoResources);
    return {kExitNoResources, std::nullopt, std::nullopt};
  }
  NodeRun node(options, spec, keeper, hook, descriptors_before);
  if (const int refused = node.Make(connect); refused != kExitOk) {
    return {refused, std::nullopt, std::nullopt};
  }
  return node.Run(restarts_used);
}

}  // namespace hlaunch
