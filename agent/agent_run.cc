// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent_run.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/watch/observe/node_event.h"
#include "agent/worker_group.h"
#include "agent/workers/failure/python_that_ran.h"
#include "agent/workers/process/process.h"
#include "asio/post.hpp"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

// How long the terminal or pipe behind our output may take for the workers' last lines.
constexpr Duration kFlushTime = std::chrono::seconds(5);
// The time between two checks whether the rendezvous has been heard.
constexpr Duration kStartDelay = std::chrono::milliseconds(50);
// How long exits with 0 wait to be sent: usually all workers exit together.
constexpr Duration kExitsDelay = std::chrono::milliseconds(200);
// The time between two looks whether the round still has workers here.
constexpr Duration kWorkersLook = std::chrono::milliseconds(2500);

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
    case absl::StatusCode::kOutOfRange:
      return kExitNodeLost;
    case absl::StatusCode::kResourceExhausted:
      return kExitNoResources;
    default:
      return kExitInternal;
  }
}

int64_t WholeSeconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

std::string DescribeStop(absl::string_view why, Duration grace) {
  return absl::StrCat(why, ": stopping the workers (", WholeSeconds(grace),
                      " s until they are killed",
                      why == "SIGINT" ? "; Ctrl-C once more kills them now)" : ")");
}

}  // namespace

AgentRun::AgentRun(asio::io_context& loop, AgentOptions options, RendezvousClient& client,
                   OutputRelay& relay)
    : loop_(loop),
      options_(std::move(options)),
      client_(client),
      relay_(relay),
      signals_(loop),
      signal_rules_(options_.spec.signals_to_handle),
      news_(loop, options_.on_event),
      updates_(client, options_.info.host),
      preparation_(loop, options_, store_, news_.waiting(),
                   [this](Round round, const std::string& unfit, const NodeHealth& health) {
                     updates_.TellPrepared(round, unfit, health);
                   }),
      workers_(loop, options_, store_, relay),
      life_signs_(
          loop, [this](Instant now) { return client_.AllowanceNow(now); }, options_.show_life,
          [this] { KillInTime(); }),
      stop_notice_(loop),
      drain_watch_(loop, options_.drain,
                   [this](std::string reason) { OnDrain(std::move(reason)); }),
      start_delay_(loop),
      exits_delay_(loop),
      workers_look_(loop),
      time_limit_(loop) {}

AgentResult AgentRun::Run() {
  workers_.OnUnreached(
      [this](std::vector<int> nodes) { updates_.TellUnreached(std::move(nodes)); });
  absl::Status begun =
      signals_.Listen(options_.spec.signals_to_handle,
                      [this](int signal, pid_t sender) { OnSignal(signal, sender); });
  if (begun.ok()) begun = store_.Renew();
  if (!begun.ok()) {
    result_.exit_code = absl::IsAlreadyExists(begun) ? kExitPortInUse : kExitNoResources;
    result_.end = begun;
    return std::move(result_);
  }
  if (options_.keeper_fd >= 0) {
    signals_.WatchKeeper(options_.keeper_fd, [this] { OnKeeperDeath(); });
  }
  ArmTimeLimit();
  updates_.BeReady(store_);
  client_.Join(options_.info, updates_.latest(), this);
  drain_watch_.Begin();
  loop_.run();
  return std::move(result_);
}

void AgentRun::OnDirective(const Directive& directive) {
  asio::post(loop_, [this, directive] { Obey(directive); });
}

void AgentRun::OnQuestion(const NodeQuestion& question) {
  asio::post(loop_, [this, question] {
    workers_.Ask(question, [this](NodeAnswer answer) { client_.Answer(std::move(answer)); });
  });
}

void AgentRun::OnWord(const RoundWord& word) {
  asio::post(loop_, [this, word] { workers_.Hear(word); });
}

void AgentRun::OnContact(bool connected, const std::string& detail) {
  asio::post(loop_, [this, connected, detail] {
    if (!IsEnding()) news_.Contact(connected, detail, updates_.latest().round > 0);
  });
}

void AgentRun::OnEnd(const absl::Status& status) {
  asio::post(loop_, [this, status] { BeCutOff(status); });
}

bool AgentRun::IsEnding() const {
  return state_ != AgentState::kTakingPart && state_ != AgentState::kClearing;
}

void AgentRun::Obey(const Directive& directive) {
  if (IsEnding() &&
      (state_ != AgentState::kFinishing || directive.kind != Directive::Kind::kFinish)) {
    return;
  }
  news_.Joined();
  news_.OfJob(directive.news);
  delayed_.reset();
  switch (directive.kind) {
    case Directive::Kind::kWait:
      return news_.waiting().Wait(directive.reason);
    case Directive::Kind::kPrepare:
      if (directive.assignment.round <= updates_.latest().round) return;  // A repeated directive.
      return preparation_.Start(directive.assignment);
    case Directive::Kind::kRun:
      updates_.WantBoundary(directive.wants_boundary);
      return StartWhenHeard(directive);
    case Directive::Kind::kStop:
      return StopRound(directive);
    case Directive::Kind::kFinish:
      return Finish(directive.outcome);
  }
}

void AgentRun::StartWhenHeard(const Directive& directive) {
  const Instant now = MonotonicClock().Now();
  if (now < client_.AllowanceNow(now).starts_until) return StartRound(directive.assignment);
  delayed_ = directive;
  start_delay_.expires_after(kStartDelay);
  start_delay_.async_wait([this](const asio::error_code& error) {
    if (!error && delayed_) Obey(Directive(*delayed_));
  });
}

void AgentRun::StartRound(const Assignment& assignment) {
  cut_off_.clear();
  const NodeUpdate& latest = updates_.latest();
  const bool prepared = assignment.round == latest.round && latest.phase == NodePhase::kPrepared;
  if (assignment.round <= latest.round && !prepared) return;  // A repeated directive.
  preparation_.Cancel();
  updates_.BeginRound(assignment.round);
  result_.store_port = assignment.worker_store ? 0 : assignment.master_port;
  result_.restarts = assignment.restart_count;
  result_.ranks.resize(static_cast<size_t>(options_.spec.nproc));
  std::iota(result_.ranks.begin(), result_.ranks.end(), assignment.first_rank);
  news_.RoundStarts(assignment, options_.spec.nproc);
  WorkerGroup::Events events;
  events.on_failure = [this, assignment](WorkerFailure failure) {
    AddPythonThatRan(options_.spec, assignment, failure);
    updates_.TellFailure(std::move(failure));
  };
  events.on_success = [this] {
    store_.WorkersAreDone();
    updates_.TellSucceeded();
  };
  events.on_stopped = [this] { OnStopped(); };
  events.on_given_up = [this](std::vector<int> local_ranks) {
    updates_.TellGivenUp(std::move(local_ranks));
  };
  events.on_word = [this, round = assignment.round](std::string text) {
    client_.Tell({round, 0, std::move(text)});
  };
  events.on_boundary = [this] { updates_.TellBoundary(); };
  events.on_event = [this](const NodeEvent& event) { OnWorkerEvent(event); };
  life_signs_.Begin();
  if (const absl::Status status = workers_.Start(assignment, std::move(events)); !status.ok()) {
    updates_.AddFailure(StartFailure(status, assignment));
    life_signs_.End();
  }
  updates_.TellBegun();
  LookForWorkers(/*missed=*/false);
}

void AgentRun::LookForWorkers(bool missed) {
  workers_look_.expires_after(kWorkersLook);
  workers_look_.async_wait([this, missed](const asio::error_code& error) {
    if (error || state_ != AgentState::kTakingPart) return;
    if (updates_.latest().phase != NodePhase::kRunning) return;
    const bool none = !workers_.exist() || (!workers_.starting() && workers_.alive() == 0);
    if (none && missed) return LoseWorkers("none of its workers runs, and nothing says why");
    LookForWorkers(none);
  });
}

void AgentRun::LoseWorkers(std::string why) {
  if (updates_.TellWorkersLost(why)) LogWarning(absl::StrCat("this node's part is lost: ", why));
}

void AgentRun::OnWorkerEvent(const NodeEvent& event) {
  if (options_.on_event) options_.on_event(event);
  const auto* ended = std::get_if<WorkerEnded>(&event);
  if (ended == nullptr || ended->stopped || ended->exit_code != 0 || ended->signal != 0) return;
  updates_.AddExit(ended->local_rank);
  exits_delay_.expires_after(kExitsDelay);
  exits_delay_.async_wait([this](const asio::error_code& error) {
    const NodePhase phase = updates_.latest().phase;
    if (error || state_ != AgentState::kTakingPart) return;
    if (phase == NodePhase::kRunning || phase == NodePhase::kFailed) updates_.TellExits();
  });
}

void AgentRun::StopRound(const Directive& directive) {
  const NodeUpdate& latest = updates_.latest();
  if (directive.round < latest.round) return;
  const bool again = state_ == AgentState::kClearing && directive.round == latest.round;
  if (again) return;  // The workers are being stopped already.
  preparation_.Cancel();
  if (directive.round == latest.round && latest.phase == NodePhase::kReady) return;
  if (directive.round > latest.round) updates_.PassOver(directive.round);
  if (!directive.reason.empty()) LogInfo(directive.reason);
  TellStop("");
  StopWorkers(AgentState::kClearing, directive.reason, SIGTERM, options_.spec.stop_grace);
}

void AgentRun::Finish(const Outcome& outcome) {
  result_.outcome = outcome;
  if (state_ == AgentState::kFinishing) {  // Repeated, with failures that came later.
    result_.outcome->exit_code = result_.exit_code;
    return;
  }
  result_.exit_code = outcome.exit_code;
  const bool apart = outcome.exit_code == 0 && !outcome.reason.empty();
  if (apart) LogWarning(outcome.reason);  // The job continues without this node.
  if (updates_.latest().phase == NodePhase::kSucceeded && workers_.HasLeftovers()) {
    Enter(AgentState::kFinishing, outcome.reason);
    return workers_.EndLeftovers();
  }
  TellStop(outcome.reason);
  StopWorkers(AgentState::kFinishing, outcome.reason, SIGTERM, options_.spec.stop_grace);
}

void AgentRun::TellStop(const std::string& reason) {
  if (!workers_.exist()) return;
  stop_notice_.Begin(reason, options_.spec.stop_grace, [this] { return workers_.alive(); });
}

void AgentRun::BeCutOff(const absl::Status& status) {
  if (IsEnding()) return;
  result_.exit_code = ExitCodeFor(status);
  result_.end = status;
  const bool stopping = workers_.exist();
  StopWorkers(AgentState::kCutOff, std::string(status.message()), SIGTERM, options_.lost_grace);
  if (stopping) LogError(absl::StrCat(status.message(), "; stopping this node's workers"));
}

void AgentRun::OnSignal(int signal, pid_t sender) {
  const bool counts = options_.keeper_fd < 0 || sender == ::getppid();
  switch (signal_rules_.Take(signal, counts, IsEnding())) {
    case SignalRequest::kNothing:
      return BeStoppedToo(signal);
    case SignalRequest::kReap:
      return workers_.ReapOrphans();
    case SignalRequest::kForward:
      return workers_.Forward(signal);
    case SignalRequest::kLeave:
      return LeaveFor(signal);
    case SignalRequest::kKill:
      BeStoppedToo(signal);
      workers_.Stop(SIGKILL, Duration::zero());
      return LogWarning("SIGINT once more: killing the workers now");
  }
}

void AgentRun::BeStoppedToo(int signal) {
  if (state_ != AgentState::kFinishing || result_.exit_code != kExitNodeStopped) return;
  result_.exit_code = result_.outcome->exit_code = kExitSignalBase + signal;
}

void AgentRun::LeaveFor(int signal) {
  departure_ = {SignalName(signal), kExitSignalBase + signal};
  const bool stopping = workers_.exist();
  StopWorkers(AgentState::kLeaving, departure_.reason, signal, options_.spec.stop_grace);
  if (stopping) LogWarning(DescribeStop(departure_.reason, options_.spec.stop_grace));
}

void AgentRun::OnDrain(std::string reason) {
  if (IsEnding()) return;
  LogWarning(reason.empty() ? std::string("this node stays: the notice is gone")
                            : absl::StrCat("this node is to be replaced: ", reason));
  updates_.TellDrain(std::move(reason));
}

void AgentRun::ArmTimeLimit() {
  if (options_.time_limit == Duration::zero()) return;
  time_limit_.expires_after(options_.time_limit);
  time_limit_.async_wait([this](const asio::error_code& cancelled) {
    if (!cancelled && !IsEnding()) OnTimeLimit();
  });
}

void AgentRun::OnTimeLimit() {
  const std::chrono::duration<double> limit = options_.time_limit;
  departure_ = {absl::StrCat("the job took longer than --timeout, ", limit.count(), " s"),
                kExitTimeout};
  const bool stopping = workers_.exist();
  StopWorkers(AgentState::kLeaving, departure_.reason, SIGTERM, options_.spec.stop_grace);
  if (stopping) LogWarning(DescribeStop("--timeout", options_.spec.stop_grace));
}

void AgentRun::OnKeeperDeath() {
  if (state_ == AgentState::kLeaving || state_ == AgentState::kCutOff) return;
  departure_ = {"its keeper was killed", kExitAgentLost};
  StopWorkers(AgentState::kLeaving, departure_.reason, SIGTERM, options_.lost_grace);
  LogError("the keeper of this agent was killed; stopping the workers");
}

void AgentRun::KillInTime() {
  workers_.Stop(SIGKILL, Duration::zero());
  if (state_ == AgentState::kCutOff) return;
  const Instant now = MonotonicClock().Now();
  const Duration silence =
      now - client_.AllowanceNow(now).starts_until + options_.info.policy.lease.loss_limit;
  const std::string why =
      absl::StrCat("nothing heard from the rendezvous for ", WholeSeconds(silence), " s");
  LogWarning(absl::StrCat(why, ": killing the workers now"));
  cut_off_ = absl::StrCat(": ", why);
}

void AgentRun::Enter(AgentState state, const std::string& reason) {
  state_ = state;
  news_.waiting().Stop();
  if (workers_.exist()) news_.RoundStops(updates_.latest().round, reason);
}

void AgentRun::StopWorkers(AgentState state, const std::string& reason, int signal,
                           Duration grace) {
  Enter(state, reason);
  if (!workers_.exist()) return OnStopped();
  workers_.Stop(signal, grace);
}

void AgentRun::OnStopped() {
  stop_notice_.End();
  if (workers_.exist()) updates_.NoteStep(workers_.step());
  workers_.Clear();
  life_signs_.End();
  switch (state_) {
    case AgentState::kTakingPart:
      return LoseWorkers(absl::StrCat("its agent ended the workers", cut_off_));
    case AgentState::kClearing:
      return BeReady();
    case AgentState::kFinishing:
      updates_.TellFinished();
      return End();
    case AgentState::kLeaving:
      return Leave();
    case AgentState::kCutOff:
      return End();
  }
}

void AgentRun::BeReady() {
  state_ = AgentState::kTakingPart;
  if (const absl::Status bound = store_.Renew(); !bound.ok()) {
    departure_ = {std::string(bound.message()), kExitNoResources};
    return Leave();
  }
  updates_.BeReady(store_);
  updates_.TellReady();
}

void AgentRun::Leave() {
  state_ = AgentState::kLeaving;
  result_.exit_code = departure_.exit_code;
  result_.end = absl::CancelledError(departure_.reason);
  updates_.TellLeft(departure_.reason, departure_.exit_code);
  End();
}

void AgentRun::End() {
  result_.saved_imports = workers_.saved_imports();
  relay_.Flush(MonotonicClock().Now() + kFlushTime);
  loop_.stop();
}

}  // namespace hlaunch
