// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "agent/health/health_helper.h"
#include "agent/health/health_watch.h"
#include "agent/health/joint/joint_report.h"
#include "agent/health/node_health.h"
#include "agent/master_check.h"
#include "agent/master_ports.h"
#include "agent/node_facts.h"
#include "agent/worker/keeper.h"
#include "agent/worker_group.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/c10d/store_proxy.h"
#include "rendezvous/listening/route.h"
#include "rendezvous/round/first_cause.h"
#include "rendezvous/round/limits.h"

namespace hlaunch {
namespace {

// What workers leave behind after success has this long to end by itself.
constexpr Duration kLeftoverGrace = std::chrono::seconds(5);
constexpr Duration kLeftoverPause = std::chrono::milliseconds(100);  // Before it is spoken of.
constexpr size_t kLeftoversNamed = 5;
// For the terminal or pipe behind our output to take the workers' last lines.
constexpr Duration kFlushTime = std::chrono::seconds(5);
// For the master store of a proposed round to answer; the rendezvous waits longer.
constexpr Duration kCheckLimit = std::chrono::seconds(8);

int ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnavailable:
      return kExitBadEndpoint;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return kExitRefused;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitRendezvousLost;
    case absl::StatusCode::kAborted:
      return kExitNodeLost;
    default:
      return kExitInternal;
  }
}

// A program that could not be started, told as a worker's failure: the job ends as for one.
WorkerFailure StartFailure(const absl::Status& status, const Assignment& assignment) {
  WorkerFailure failure;
  failure.rank = assignment.first_rank;
  failure.node_rank = assignment.node_rank;
  failure.wall_ms = WallMillis();
  failure.message = std::string(status.message());
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      failure.exit_code = kExitNotFound;
      break;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
      failure.exit_code = kExitNotExecutable;
      break;
    case absl::StatusCode::kResourceExhausted:
      failure.exit_code = kExitNoResources;
      break;
    default:
      failure.exit_code = kExitInternal;
  }
  return failure;
}

}  // namespace

class Agent::Impl final : public RendezvousClient::Listener {
 public:
  Impl(asio::io_context& loop, AgentOptions options, RendezvousClient& client, OutputRelay& relay)
      : loop_(loop),
        options_(std::move(options)),
        client_(client),
        relay_(relay),
        signals_(loop),
        keeper_(loop),
        waiting_timer_(loop),
        pause_(loop) {}

  AgentResult Run() {
    absl::Status bound = TakeSignals();
    if (bound.ok()) bound = BindCandidate();
    if (!bound.ok()) {
      result_.exit_code = absl::IsAlreadyExists(bound) ? kExitPortInUse : kExitNoResources;
      result_.end = bound;
      return std::move(result_);
    }
    WatchKeeper();
    client_.Join(options_.info, update_, this);
    loop_.run();
    return std::move(result_);
  }

  // Called by the client from its thread.
  void OnDirective(const Directive& directive) override {
    asio::post(loop_, [this, directive] { Obey(directive); });
  }
  void OnContact(bool connected, const std::string& detail) override {
    asio::post(loop_, [this, connected, detail] { Contact(connected, detail); });
  }
  void OnEnd(const absl::Status& status) override {
    asio::post(loop_, [this, status] { Ended(status); });
  }

 private:
  // --- What the rendezvous wants -------------------------------------------------------------

  void Obey(const Directive& directive) {
    if (leaving_) return;
    if (!std::exchange(joined_, true)) Tell(NodeJoined{});
    switch (directive.kind) {
      case Directive::Kind::kWait:
        return SayWaiting(directive.reason);
      case Directive::Kind::kPrepare:
        return PrepareRound(directive.assignment);
      case Directive::Kind::kRun:
        return StartRound(directive.assignment);
      case Directive::Kind::kStop:
        return StopRound(directive);
      case Directive::Kind::kFinish:
        return Finish(directive.outcome);
    }
  }

  // Whether this node can run that round: node rank 0 opens the master store, the others ask it.
  void PrepareRound(const Assignment& assignment) {
    if (assignment.round <= std::max(preparing_, update_.round)) return;  // Once more.
    StopWaiting();
    preparing_ = assignment.round;
    unfit_.reset();
    health_.reset();
    CheckNode(assignment);
    if (assignment.node_rank == 0) {
      unfit_ = std::string(OpenStore(assignment).message());
      return Prepared(assignment.round);
    }
    SayWaiting(absl::StrCat("waiting for the master store at ",
                            HostPort(assignment.master_addr, assignment.master_port),
                            " to answer"));
    check_.emplace(
        loop_, assignment.master_addr, assignment.master_port,
        assignment.worker_store ? MasterCheck::Expect::kHost : MasterCheck::Expect::kStore,
        kCheckLimit, [this, round = assignment.round](std::string unfit) {
          unfit_ = std::move(unfit);
          Prepared(round);
        });
  }

  // At the same time: what the node finds out about itself.
  void CheckNode(const Assignment& assignment) {
    const double clock = static_cast<double>(WallMillis()) / 1000;
    const auto found = [this, clock](const std::vector<CheckResult>& results) {
      for (const CheckResult& result : results) {
        if (const auto joint = JointReportOf(result); joint && joint->node_rank == 0) {
          for (const std::string& line : DescribeFigures(*joint)) LogInfo(line);
        }
        if (result.state == CheckState::kOk) continue;
        LogDebug(absl::StrCat("check of ", result.name, ": ", StateName(result.state), ": ",
                              result.reason));
      }
      if (options_.on_checks) options_.on_checks(results);
      health_ = NodeHealthOf(results, hardware_);
      health_->figures[Figure::kClock] = clock;
    };
    if (!options_.check_command) return found({});
    if (hardware_.empty()) {
      hardware_ = HardwareName(DeviceFiles(options_.checks.sysroot), options_.spec.nproc);
    }
    CheckPlan plan = PlanChecks(assignment);
    plan.full = assignment.preflight == Preflight::kFull;
    if (plan.joint) plan.joint->full = plan.full;
    helper_.emplace(loop_, options_.check_command(plan), ChecksToAwait(plan),
                    [this, found, round = assignment.round](std::vector<CheckResult> results) {
                      found(results);
                      Prepared(round);
                    });
  }

  CheckPlan PlanChecks(const Assignment& assignment) const {
    CheckPlan plan = options_.checks;
    if (!assignment.worker_store) {  // Else there is no store to meet at.
      plan.joint = {assignment.master_addr, assignment.master_port, assignment.round,
                    assignment.node_rank,   assignment.num_nodes,   options_.info.host};
    }
    return plan;
  }

  // Once both are known.
  void Prepared(Round round) {
    if (leaving_ || result_.outcome || round <= update_.round || !unfit_) return;
    StopWaiting();
    SayWaiting(
        absl::StrCat("waiting for the other nodes to reach the master store of round ", round));
    if (!health_) return;
    update_ = {};
    update_.round = round;
    update_.phase = NodePhase::kPrepared;
    update_.unfit = *unfit_;
    update_.health = *health_;
    client_.Send(update_);
  }

  absl::Status OpenStore(const Assignment& assignment) {
    if (options_.store_is_shared || options_.worker_store || store_ != nullptr) {
      return absl::OkStatus();
    }
    C10dServerOptions options = options_.store;
    options.access =
        AccessOfRound(options.access.value_or(StoreAccess()), assignment.members,
                      IsOwnAddress(assignment.master_addr) ? assignment.master_addr : "");
    HLAUNCH_ASSIGN_OR_RETURN(store_, C10dServer::Start(std::move(candidate_.store), options));
    return absl::OkStatus();
  }

  // Node rank 0's workers have the store beside them.
  absl::Status OpenProxy(const Assignment& assignment) {
    if (!options_.store_proxy || assignment.node_rank == 0 || assignment.worker_store) {
      return absl::OkStatus();
    }
    HLAUNCH_ASSIGN_OR_RETURN(ListeningSocket listener, Listen("127.0.0.1", 0));
    StoreProxyOptions options{assignment.master_addr, assignment.master_port};
    options.max_unread_bytes =
        std::max(options.max_unread_bytes, 2 * MaxC10dMessageBytes(options_.store.limits));
    HLAUNCH_ASSIGN_OR_RETURN(proxy_, StoreProxy::Start(std::move(listener), options));
    return absl::OkStatus();
  }

  void StartRound(const Assignment& assignment) {
    const bool prepared =
        assignment.round == update_.round && update_.phase == NodePhase::kPrepared;
    if (assignment.round <= update_.round && !prepared) return;  // The same directive once more.
    StopWaiting();
    EndChecks();
    if (!assignment.notice.empty()) LogWarning(assignment.notice);
    update_ = {};
    update_.round = assignment.round;
    update_.phase = NodePhase::kRunning;
    result_.store_port = assignment.worker_store ? 0 : assignment.master_port;
    if (assignment.restart_count > restart_count_) {
      Tell(JobRestarted{assignment.round, assignment.restart_count});
    }
    restart_count_ = assignment.restart_count;
    Tell(RoundStarted{assignment, options_.spec.nproc});
    if (const absl::Status status = StartWorkers(assignment); !status.ok()) {
      update_.phase = NodePhase::kFailed;
      AddFailure(StartFailure(status, assignment));
    }
    client_.Send(update_);
  }

  absl::Status StartWorkers(const Assignment& assignment) {
    if (assignment.node_rank == 0) HLAUNCH_RETURN_IF_ERROR(OpenStore(assignment));
    NodeFacts facts = options_.facts;
    facts.host = options_.info.host;
    HLAUNCH_RETURN_IF_ERROR(OpenProxy(assignment));
    facts.store_proxy_port = proxy_ != nullptr ? proxy_->port() : 0;
    if (assignment.num_nodes > 1) facts.gloo_interface = InterfaceTowards(assignment.master_addr);
    if (const std::string chosen = ChosenDefaults(assignment, options_.spec, facts);
        !chosen.empty()) {
      LogInfo(chosen);
    }
    WorkerGroup::Events events;
    events.on_failure = [this](WorkerFailure failure) {
      update_.phase = NodePhase::kFailed;
      AddFailure(std::move(failure));
      client_.Send(update_);
    };
    events.on_success = [this] {
      if (watch_) watch_->Finished();
      update_.phase = NodePhase::kSucceeded;
      client_.Send(update_);
    };
    events.on_stopped = [this] { OnStopped(); };
    events.on_event = options_.on_event;
    auto group = WorkerGroup::Start(loop_, assignment, options_.spec, std::move(facts),
                                    options_.logs, relay_, std::move(events));
    if (!group.ok()) return group.status();
    group_ = std::move(group).value();
    WatchHealth(assignment);
    return absl::OkStatus();
  }

  void WatchHealth(const Assignment& assignment) {
    if (!options_.check_command || options_.health_interval == Duration::zero()) return;
    CheckPlan plan = PlanChecks(assignment);
    plan.watch = options_.health_interval;
    plan.log_directory.clear();  // A file server would hear of it from each node every time.
    watch_.emplace(loop_, options_.check_command(plan),
                   [this, round = assignment.round](const CheckResult& change) {
                     group_->Spare(watch_->pid());
                     TellHealth(round, change);
                   });
    group_->Spare(watch_->pid());
  }

  void TellHealth(Round round, const CheckResult& change) const {
    const bool better = change.state == CheckState::kOk;
    const std::string words = absl::StrCat(change.name, ": ", change.reason,
                                           change.advice.empty() ? "" : "; ", change.advice);
    if (better) {
      LogInfo(words);
    } else {
      LogWarning(words);
    }
    Tell(HealthChanged{round, change.name, !better, change.reason});
  }

  // Before the workers are stopped: then every child that is left is theirs.
  void EndWatch() {
    watch_.reset();
    if (group_) group_->Spare(0);
  }

  void AddFailure(WorkerFailure failure) {
    failure.host = options_.info.host;
    // The last place is for one that failed by itself, however many failed for it before.
    const size_t room = kMaxFailures - update_.failures.size();
    if (room > 1 || (room == 1 && KindOf(failure) == FailureKind::kOriginal)) {
      update_.failures.push_back(std::move(failure));
    }
  }

  void StopRound(const Directive& directive) {
    if (directive.round < update_.round) return;
    EndChecks();
    if (directive.round == update_.round && update_.phase == NodePhase::kReady) return;
    if (directive.round > update_.round) {  // kRun was overtaken: nothing of that round will start.
      update_.round = directive.round;
      update_.failures.clear();  // They are of a round before.
    }
    StopWaiting();
    TellStop(directive.reason);
    StopWorkers(SIGTERM, options_.spec.stop_grace, [this] { BeReady(); });
    if (!directive.reason.empty()) LogInfo(directive.reason);
  }

  void Finish(const Outcome& outcome) {
    const bool again = result_.outcome.has_value();  // With failures that came later.
    result_.outcome = outcome;
    result_.exit_code = outcome.exit_code;
    if (again) return;
    StopWaiting();
    TellStop(outcome.reason);
    const auto leave = [this] { Leave(NodePhase::kFinished); };
    if (group_ && update_.phase == NodePhase::kSucceeded && !group_->Leftovers().empty()) {
      then_ = leave;                         // Also where Ctrl-C ends them meanwhile.
      pause_.expires_after(kLeftoverPause);  // Much of it is about to end.
      pause_.async_wait([this](const asio::error_code& error) {
        if (!error && group_) EndLeftovers();
      });
      return;
    }
    StopWorkers(SIGTERM, options_.spec.stop_grace, leave);
  }

  void EndLeftovers() {
    std::vector<std::string> left = group_->Leftovers();
    const size_t count = left.size();
    if (count > kLeftoversNamed) left.resize(kLeftoversNamed);
    if (count > 0) {
      LogWarning(absl::StrCat("the workers exited and left ", count,
                              count == 1 ? " process" : " processes",
                              " behind: ", absl::StrJoin(left, ", "),
                              count > left.size() ? " …" : "", "; ending them"));
    }
    StopWorkers(SIGTERM, kLeftoverGrace, then_);
  }

  void EndChecks() {
    check_.reset();
    helper_.reset();
  }

  // --- Workers -------------------------------------------------------------------------------

  // Stops what runs, if anything does, then goes on with `then`. A later call replaces `then`.
  void StopWorkers(int signal, Duration grace, std::function<void()> then) {
    then_ = std::move(then);
    EndWatch();
    if (group_) {
      group_->Stop(signal, grace);
    } else {
      OnStopped();
    }
  }

  void OnStopped() {
    group_.reset();
    if (auto then = std::exchange(then_, nullptr)) then();
  }

  void BeReady() {
    proxy_.reset();
    store_.reset();  // The old listener and its connections are closed before the new is bound.
    if (const absl::Status bound = BindCandidate(); !bound.ok()) {
      Depart(std::string(bound.message()), kExitNoResources);
      return;
    }
    client_.Send(update_);
  }

  absl::Status BindCandidate() {
    update_.phase = NodePhase::kReady;  // Failures stay: an earlier word may have been overtaken.
    // The ports may be the same.
    candidate_ = {};
    HLAUNCH_ASSIGN_OR_RETURN(candidate_,
                             OpenMasterPorts({options_.store_address, options_.store_port,
                                              options_.store_is_shared, options_.worker_store}));
    update_.store_port = candidate_.store.port;
    update_.coordinator_port = candidate_.coordinator.port;
    update_.worker_store = options_.worker_store;
    return absl::OkStatus();
  }

  // --- Leaving -------------------------------------------------------------------------------

  // This node's own decision to go: its workers are stopped by the caller or do not run.
  void Depart(const std::string& reason, int exit_code) {
    update_.left_reason = reason;
    update_.left_exit_code = exit_code;
    result_.exit_code = exit_code;
    result_.end = absl::CancelledError(reason);
    Leave(NodePhase::kLeft);
  }

  // Says the last word and ends the loop.
  void Leave(NodePhase last) {
    update_.phase = last;
    client_.Send(update_);
    relay_.Flush(MonotonicClock().Now() + kFlushTime);
    loop_.stop();
  }

  void Ended(const absl::Status& status) {
    if (leaving_ || result_.outcome) return;
    leaving_ = true;
    StopWaiting();
    result_.exit_code = ExitCodeFor(status);
    result_.end = status;
    const bool stopping = group_ != nullptr;
    TellStop(std::string(status.message()));
    StopWorkers(SIGTERM, options_.lost_grace, [this] {
      relay_.Flush(MonotonicClock().Now() + kFlushTime);
      loop_.stop();
    });
    if (stopping) LogError(absl::StrCat(status.message(), "; stopping this node's workers"));
  }

  // --- Signals and the keeper ----------------------------------------------------------------

  absl::Status TakeSignals() {
    HLAUNCH_ASSIGN_OR_RETURN(UniqueFd fd, AgentSignals(options_.spec.signals_to_handle));
    signals_.assign(fd.Release());
    AwaitSignals();
    return absl::OkStatus();
  }

  void AwaitSignals() {
    signals_.async_wait(
        asio::posix::descriptor_base::wait_read, [this](const asio::error_code& error) {
          if (error) return;
          signalfd_siginfo info = {};
          while (::read(signals_.native_handle(), &info, sizeof info) ==
                 static_cast<ssize_t>(sizeof info)) {
            OnSignal(static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid));
          }
          AwaitSignals();
        });
  }

  void OnSignal(int signal, pid_t sender) {
    const SignalNumbers ending = EndingSignals(options_.spec.signals_to_handle);
    if (signal == SIGCHLD) {
      if (group_) group_->ReapOrphans();
    } else if (std::find(ending.begin(), ending.end(), signal) != ending.end()) {
      Interrupt(signal, sender);
    } else if (group_) {
      group_->Forward(signal);
    }
  }

  // The first asks the workers to stop, Ctrl-C once more kills them. scancel and systemd signal
  // every process, so one SIGINT of theirs comes twice, directly and by the keeper: only what the
  // keeper forwards is counted. And they may repeat SIGTERM while the grace runs.
  void Interrupt(int signal, pid_t sender) {
    const std::string name = SignalName(signal);
    const bool counts = options_.keeper_fd < 0 || sender == ::getppid();
    if (signal == SIGINT && counts) ++ctrl_c_;
    if (first_signal_ != 0 || leaving_ || result_.outcome) {  // The workers are being stopped.
      if (ctrl_c_ < (first_signal_ == SIGINT ? 2 : 1)) return;
      EndWatch();
      if (group_) group_->Stop(SIGKILL, Duration::zero());
      LogWarning("SIGINT once more: killing the workers now");
      return;
    }
    first_signal_ = signal;
    leaving_ = true;
    StopWaiting();
    const bool stopping = group_ != nullptr;
    TellStop(name);
    StopWorkers(signal, options_.spec.stop_grace,
                [this, name, signal] { Depart(name, kExitSignalBase + signal); });
    if (stopping) {
      LogWarning(absl::StrCat(name, ": stopping the workers (", Seconds(options_.spec.stop_grace),
                              " s until they are killed",
                              signal == SIGINT ? "; Ctrl-C once more kills them now)" : ")"));
    }
  }

  void WatchKeeper() {
    if (options_.keeper_fd < 0) return;
    keeper_.assign(::fcntl(options_.keeper_fd, F_DUPFD_CLOEXEC, 0));  // The link keeps its own.
    keeper_.async_wait(asio::posix::descriptor_base::wait_read, [this](const asio::error_code& e) {
      if (e || leaving_) return;
      leaving_ = true;
      TellStop("its keeper was killed");
      StopWorkers(SIGTERM, options_.lost_grace,
                  [this] { Depart("its keeper was killed", kExitAgentLost); });
      LogError("the keeper of this agent was killed; stopping the workers");
    });
  }

  // --- Who looks on --------------------------------------------------------------------------

  void Tell(const NodeEvent& event) const {
    if (options_.on_event) options_.on_event(event);
  }

  void TellStop(const std::string& reason) const {
    if (group_) Tell(RoundStopped{update_.round, reason});
  }

  // --- Words ---------------------------------------------------------------------------------

  static int64_t Seconds(Duration d) {
    return std::chrono::duration_cast<std::chrono::seconds>(d).count();
  }

  void Contact(bool connected, const std::string& detail) {
    if (leaving_ || result_.outcome) return;
    if (connected) {
      StopWaiting();
      if (lost_contact_) {
        LogInfo(detail);
        Tell(ContactChanged{true, detail});
      }
      lost_contact_ = false;
    } else if (update_.round > 0) {
      lost_contact_ = true;
      Tell(ContactChanged{false, detail});
      LogWarning(detail);
    } else {
      SayWaiting(absl::StrCat("waiting for ", detail));
    }
  }

  // Says `reason` after a second, then ever more rarely, with the time waited.
  void SayWaiting(const std::string& reason) {
    const bool fresh = waiting_for_.empty();
    if (reason == waiting_for_) return;
    waiting_for_ = reason;
    if (fresh) {
      waiting_since_ = MonotonicClock().Now();
      next_word_ = std::chrono::seconds(1);
    }
    ArmWaiting();
  }

  void ArmWaiting() {
    const Instant now = MonotonicClock().Now();
    waiting_timer_.expires_at(std::max(waiting_since_ + next_word_, now + kSettle));
    waiting_timer_.async_wait([this](const asio::error_code& error) {
      if (error || waiting_for_.empty()) return;
      const Duration waited = MonotonicClock().Now() - waiting_since_;
      absl::string_view reason = waiting_for_;
      const std::string words = absl::ConsumePrefix(&reason, "waiting for ")
                                    ? absl::StrCat("waiting ", Seconds(waited), " s for ", reason)
                                    : absl::StrCat(reason, " (", Seconds(waited), " s)");
      LogInfo(words);
      Tell(NodeWaiting{words});
      next_word_ = waited + std::min<Duration>(std::max<Duration>(waited, kFirstPause), kLongPause);
      ArmWaiting();
    });
  }

  void StopWaiting() {
    waiting_for_.clear();
    waiting_timer_.cancel();
  }

  // Changes of the reason within this time make one line.
  static constexpr Duration kSettle = std::chrono::milliseconds(300);
  static constexpr Duration kFirstPause = std::chrono::seconds(5);
  static constexpr Duration kLongPause = std::chrono::seconds(60);

  asio::io_context& loop_;
  const AgentOptions options_;
  RendezvousClient& client_;
  OutputRelay& relay_;
  asio::posix::stream_descriptor signals_;
  asio::posix::stream_descriptor keeper_;
  asio::steady_timer waiting_timer_;
  asio::steady_timer pause_;

  NodeUpdate update_;      // What the rendezvous knows, or will, of this node.
  MasterPorts candidate_;  // For this node as node rank 0.
  Round preparing_ = 0;    // The last round this node was told to prepare.
  std::optional<MasterCheck> check_;
  std::optional<HealthHelper> helper_;
  std::optional<std::string> unfit_;  // Of the round being prepared: what the former said,
  std::optional<NodeHealth> health_;  // and the latter.
  std::string hardware_;
  std::unique_ptr<C10dServer> store_;   // While this node is node rank 0.
  std::unique_ptr<StoreProxy> proxy_;   // While it is not, where workers are to have one.
  std::unique_ptr<WorkerGroup> group_;  // While workers live,
  std::optional<HealthWatch> watch_;    // and are not being stopped.
  std::function<void()> then_;          // What follows once they do not.
  bool leaving_ = false;                // This node goes whatever the rendezvous wants.
  int first_signal_ = 0;                // That asked this node to leave.
  int ctrl_c_ = 0;
  bool joined_ = false;
  int restart_count_ = 0;  // Of the latest round.
  bool lost_contact_ = false;
  std::string waiting_for_;
  Instant waiting_since_;
  Duration next_word_;
  AgentResult result_;
};

Agent::Agent(asio::io_context& loop, AgentOptions options, RendezvousClient& client,
             OutputRelay& relay)
    : impl_(std::make_unique<Impl>(loop, std::move(options), client, relay)) {}
Agent::~Agent() = default;
AgentResult Agent::Run() { return impl_->Run(); }

}  // namespace hlaunch
