// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/simulator/simulated_agent.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFirstBackoff = milliseconds(50);
constexpr Duration kLastBackoff = seconds(1);
constexpr Duration kFirstAnswer = seconds(5);
constexpr Duration kLastWord = seconds(2);
constexpr Duration kCheckLimit = seconds(8);
constexpr Duration kStopGrace = seconds(30);
constexpr Duration kStartDelay = milliseconds(50);
constexpr Duration kKilling = milliseconds(500);
constexpr Duration kPaused = seconds(1);
constexpr Duration kAfterPause = milliseconds(100);
constexpr Duration kWorkersLook = milliseconds(2500);
constexpr Duration kAsking = seconds(1);

bool IsRefusal(absl::StatusCode code) {
  return code == absl::StatusCode::kFailedPrecondition ||
         code == absl::StatusCode::kAlreadyExists || code == absl::StatusCode::kAborted ||
         code == absl::StatusCode::kOutOfRange || code == absl::StatusCode::kInvalidArgument;
}

bool IsLastWord(NodePhase phase) {
  return phase == NodePhase::kLeft || phase == NodePhase::kFinished;
}

}  // namespace

std::string SimulatedAgent::Name() const { return absl::StrCat(info_.host, "#", index_); }

// ---- The client.

void SimulatedAgent::Start() {
  alive_ = true;
  backoff_ = kFirstBackoff;
  lease_ = info_.policy.lease;
  says_.store_port = static_cast<uint16_t>(1 + around_.Below(60000));
  begun_ = last_heard_ = around_.Now();
  Connect();
  Arm();
}

// Returns when the last message was sent that the rendezvous took.
Instant SimulatedAgent::LastTaken() {
  const Instant taken = around_.TakenElsewhere(*this);
  if (taken <= last_heard_ + lease_.loss_limit) taken_ = std::max(taken_, taken);
  return std::max(last_heard_, taken_);
}

Instant SimulatedAgent::GiveUpAt() {
  if (!contacted_) return begun_ + info_.policy.join_timeout;
  return hlaunch::GiveUpAt(lease_, LastTaken(), forgiven_until_);
}

Allowance SimulatedAgent::AllowanceNow() {
  if (local_) return AllowanceAt(lease_, around_.Now(), {});
  return contacted_ ? AllowanceAt(lease_, LastTaken(), forgiven_until_) : Allowance();
}

void SimulatedAgent::TurnToLeader() {
  if (!contacted_ || over_) return;
  Drop();
  backoff_ = kFirstBackoff;
  Retry();
}

Instant SimulatedAgent::SilentAt() const {
  Duration patience = contacted_ ? lease_.lease : kFirstAnswer;
  if (places_ > 1 && answered_ == 0) patience = std::min<Duration>(kFirstAnswer, patience) / 2;
  return std::max(heard_ + patience, stream_forgiven_until_);
}

void SimulatedAgent::Arm() {
  if (!alive_ || over_ || local_) return;
  Instant at = GiveUpAt();
  if (stream_ != 0) at = std::min({at, SilentAt(), said_ + lease_.lease / 2});
  if (closing_) at = std::min(at, *closing_);
  at = std::max(at, around_.Now());
  if (armed_ && *armed_ <= at) return;  // The timer expires earlier and arms itself again.
  armed_ = at;
  around_.Later(*this, EventKind::kClient, at - around_.Now(), ++armed_token_);
}

void SimulatedAgent::ClientTimer() {
  armed_.reset();
  const Instant now = around_.Now();
  if (over_) return;
  if (closing_ && now >= *closing_) return Exit();
  if (now >= GiveUpAt()) {
    return Ended(contacted_ ? absl::DeadlineExceededError("nothing heard")
                            : absl::UnavailableError("not reached"));
  }
  if (stream_ != 0 && now >= SilentAt()) {
    Drop();
    Retry();
  } else if (stream_ != 0 && now >= said_ + lease_.lease / 2) {
    Transmit(SimulatedMessage::Kind::kBeat);
  }
  Arm();
}

void SimulatedAgent::Connect() {
  if (over_ || stream_ != 0) return;
  stream_ = ++last_stream_;
  written_ = answered_ = 0;
  unanswered_.clear();
  heard_ = read_ = around_.Now();
  Transmit(SimulatedMessage::Kind::kJoin);
  Arm();
}

void SimulatedAgent::Drop() {
  if (stream_ == 0) return;
  around_.Closed(*this, std::exchange(stream_, 0));
}

void SimulatedAgent::Retry() {
  const int whole = static_cast<int>(std::chrono::duration_cast<milliseconds>(backoff_).count());
  backoff_ = std::min(2 * backoff_, kLastBackoff / places_);
  around_.Later(*this, EventKind::kConnects, milliseconds(whole / 2 + around_.Below(whole / 2 + 1)),
                last_stream_);
}

void SimulatedAgent::Transmit(SimulatedMessage::Kind kind) {
  auto message = std::make_shared<SimulatedMessage>();
  message->kind = kind;
  message->stream = stream_;
  message->number = ++written_;
  message->made_after = read_;
  if (kind != SimulatedMessage::Kind::kBeat) {
    message->update = says_;
    sent_ = version_;
  }
  said_ = around_.Now();
  unanswered_.push_back(said_);
  around_.Send(*this, std::move(message));
}

// The agent has something new to say.
void SimulatedAgent::Tell() {
  ++version_;
  if (std::exchange(saying_, true)) return;
  around_.Later(*this, EventKind::kSays,
                local_ ? Duration::zero() : milliseconds(around_.Below(20)), 0);
}

void SimulatedAgent::Say() {
  saying_ = false;
  if (!over_ && stream_ != 0 && sent_ != version_) Transmit(SimulatedMessage::Kind::kUpdate);
}

void SimulatedAgent::Hear(const SimulatedMessage& message) {
  if (over_ || message.stream != stream_) return;
  const Instant now = around_.Now();
  if (message.kind == SimulatedMessage::Kind::kEnd) {
    around_.Closed(*this, std::exchange(stream_, 0));
    if (message.end.ok() && IsLastWord(says_.phase)) return Exit();
    if (IsRefusal(message.end.code())) return Ended(message.end);
    return Retry();
  }
  heard_ = now;
  read_ = message.sent;
  contacted_ = true;
  backoff_ = kFirstBackoff;
  // The rendezvous was alive at least when it got our last answered message: count from its
  // sending.
  while (answered_ < message.number && !unanswered_.empty()) {
    last_heard_ = std::max(last_heard_, unanswered_.front());
    if (last_heard_ >= paused_until_) excused_ = false;
    unanswered_.pop_front();
    ++answered_;
  }
  if (message.kind == SimulatedMessage::Kind::kProbe) Transmit(SimulatedMessage::Kind::kBeat);
  if (message.kind == SimulatedMessage::Kind::kDirective) {
    inbox_.push_back(message.directive);
    around_.Later(*this, EventKind::kObeys,
                  local_ ? Duration::zero() : milliseconds(around_.Below(30)), 0);
  }
  Arm();
}

void SimulatedAgent::Ended(const absl::Status& status) {
  over_ = true;
  Drop();
  if (closing_) return Exit();
  posted_end_ = status;
  around_.Later(*this, EventKind::kObeys, milliseconds(around_.Below(30)), 0);
}

void SimulatedAgent::Pause(Instant until, StandsStill what) {
  const bool whole_node = what == StandsStill::kNode;
  if (what != StandsStill::kAgent) {
    keeper_paused_until_ = until;
    around_.Later(*this, EventKind::kFence, until - around_.Now(), ++fence_token_);
  }
  if (what == StandsStill::kKeeper) return;
  pause_begun_ = around_.Now();
  paused_until_ = until;
  if (whole_node) frozen_until_ = until;
  // Workers must end before the rendezvous gives this node's place away. If the whole node is
  // frozen for longer, they may still live.
  const Instant heard = contacted_ ? LastTaken() : pause_begun_ - kFirstAnswer;
  const Instant last = heard + lease_.loss_limit + lease_.margin - kKilling;
  if (whole_node && until + kAsking > last) excused_ = true;
  if (pause_begun_ < heard + lease_.loss_limit) asks_until_ = until + TimeToAsk(lease_);
  around_.Later(*this, EventKind::kWakes, until - around_.Now(), 0);
}

// Does what the client's ForgivePause does.
void SimulatedAgent::Wake() {
  const Instant now = around_.Now();
  const Instant wanted = std::max(pause_begun_, armed_.value_or(pause_begun_));
  if (now - wanted < lease_.lease / 2) return;
  forgiven_until_ = ForgivenUntil(lease_, LastTaken(), forgiven_until_, wanted, now);
  stream_forgiven_until_ = now + lease_.lease;
  Arm();
}

// ---- The agent.

void SimulatedAgent::Handle(const Event& event) {
  if (!alive_) return;
  switch (event.kind) {
    case EventKind::kReaches:
      return Hear(*event.message);
    case EventKind::kBreaks:
      if (event.token != stream_ || over_) return;
      stream_ = 0;
      return Retry();
    case EventKind::kClient:
      if (event.token == armed_token_) ClientTimer();
      return;
    case EventKind::kConnects:
      if (event.token == last_stream_) Connect();
      return;
    case EventKind::kSays:
      return Say();
    case EventKind::kObeys:
      return Obey();
    case EventKind::kChecked:
      return Checked(event.token);
    case EventKind::kExits:
      return WorkersExit(event.token);
    case EventKind::kGone:
      return WorkersGone(event.token);
    case EventKind::kWakes:
      return Wake();
    case EventKind::kShowsLife:
      if (event.token == signs_token_) ShowLife();
      return;
    case EventKind::kLooksForWorkers:
      if (event.token == look_token_) LookForWorkers();
      return;
    default:
      return;
  }
}

void SimulatedAgent::Obey() {
  if (inbox_.empty()) {
    if (!posted_end_ || leaving_ || outcome_) return;
    leaving_ = true;
    end_ = *posted_end_;
    return StopWorkers(kLostGrace, Then::kQuit);
  }
  const Directive directive = std::move(inbox_.front());
  inbox_.pop_front();
  if (leaving_) return;
  switch (directive.kind) {
    case Directive::Kind::kWait:
      return;
    case Directive::Kind::kPrepare:
      return Prepare(directive.assignment);
    case Directive::Kind::kRun:
      NameMoment(directive);
      if (around_.Now() < AllowanceNow().starts_until) return Run(directive.assignment);
      if (!inbox_.empty()) return;
      if (posted_end_) return Obey();
      inbox_.push_back(directive);
      return around_.Later(*this, EventKind::kObeys, kStartDelay, 0);
    case Directive::Kind::kStop:
      return Stop(directive);
    case Directive::Kind::kFinish:
      return Finish(directive.outcome);
  }
}

void SimulatedAgent::Prepare(const Assignment& assignment) {
  if (assignment.round <= std::max(preparing_, says_.round)) return;
  preparing_ = assignment.round;
  checking_ = assignment;
  const bool quick = assignment.node_rank == 0 || around_.MasterAnswers(assignment);
  around_.Later(*this, EventKind::kChecked, quick ? milliseconds(around_.Below(100)) : kCheckLimit,
                ++check_);
}

void SimulatedAgent::Checked(uint32_t token) {
  if (token != check_ || leaving_ || outcome_ || checking_.round <= says_.round) return;
  const bool fit = !unfit_ && (checking_.node_rank == 0 || around_.MasterAnswers(checking_));
  std::string drain_reason = std::move(says_.drain_reason);
  says_ = {};
  says_.drain_reason = std::move(drain_reason);
  says_.round = checking_.round;
  says_.phase = NodePhase::kPrepared;
  if (!fit) says_.unfit = "cannot reach the master store";
  const bool bad = bad_one_in_ > 0 && says_.round % bad_one_in_ == 0;
  says_.health.figures[Figure::kProcessor] = bad ? 9 : 3;
  Tell();
}

void SimulatedAgent::Run(const Assignment& assignment) {
  const bool prepared = assignment.round == says_.round && says_.phase == NodePhase::kPrepared;
  if (outcome_ || (assignment.round <= says_.round && !prepared)) return;
  ++check_;
  std::string drain_reason = std::move(says_.drain_reason);
  says_ = {};
  says_.drain_reason = std::move(drain_reason);
  if (gone_from_ && assignment.round >= *gone_from_) says_.drain_reason = "the host goes down";
  says_.round = assignment.round;
  says_.phase = NodePhase::kRunning;
  assignment_ = assignment;
  group_ = true;
  workers_ = assignment.round;
  if (assignment.node_rank == 0) says_.boundaries = around_.Below(2);
  due_ = forgave_ = missed_ = false;
  look_at_ = around_.Now();
  ShowLife();
  around_.Later(*this, EventKind::kLooksForWorkers, kWorkersLook, ++look_token_);
  around_.Started(*this, assignment);
  const auto [runs, fails] = around_.WorkersFate(*this, assignment.round);
  fails_ = fails;
  around_.Later(*this, EventKind::kExits, runs, ++workers_token_);
  Tell();
}

// In some rounds rank 0 says when it is at a good moment; it does not answer every question.
void SimulatedAgent::NameMoment(const Directive& directive) {
  const bool asked = directive.wants_boundary && directive.round == says_.round;
  if (!asked || says_.boundaries == 0 || says_.phase != NodePhase::kRunning) return;
  if (assignment_.node_rank != 0 || around_.Below(4) == 0) return;
  ++says_.boundaries;
  Tell();
}

// Does what LifeSigns does.
void SimulatedAgent::ShowLife() {
  ++signs_token_;
  if (!group_) return ShowKeeper(Instant::max());
  const Instant now = around_.Now();
  forgave_ = now > look_at_ + kPaused && !forgave_;
  if (forgave_) return ShowLifeAfter(kAfterPause);
  const Instant until = AllowanceNow().workers_until;
  ShowKeeper(until);
  if (now + kKilling >= until && !std::exchange(due_, true)) StopWorkers(Duration::zero(), then_);
  ShowLifeAfter(NextSignOfLife(until, now));
}

void SimulatedAgent::ShowLifeAfter(Duration delay) {
  look_at_ = around_.Now() + delay;
  around_.Later(*this, EventKind::kShowsLife, delay, signs_token_);
}

void SimulatedAgent::ShowKeeper(Instant until) {
  unread_.push_back(until);
  const Instant now = around_.Now();
  around_.Later(*this, EventKind::kFence, std::max(keeper_paused_until_ - now, Duration::zero()),
                ++fence_token_);
}

// Does what the keeper's WaitForAgent does.
bool SimulatedAgent::KeeperLooks(uint32_t token) {
  const Instant now = around_.Now();
  if (!alive_ || token != fence_token_) return false;
  if (!unread_.empty()) {
    fence_.Allow(unread_.front(), now);
    unread_.pop_front();
  }
  if (fence_.Fallen(now)) return true;
  std::optional<Instant> next = fence_.NextLook(now);
  if (!unread_.empty()) next = now;
  if (next) around_.Later(*this, EventKind::kFence, *next - now, ++fence_token_);
  return false;
}

// Does what the agent's function of this name does.
void SimulatedAgent::LookForWorkers() {
  if (says_.phase != NodePhase::kRunning || leaving_ || outcome_ || then_ != Then::kNothing) return;
  if (!group_ && std::exchange(missed_, true)) return LoseWorkers();
  around_.Later(*this, EventKind::kLooksForWorkers, kWorkersLook, look_token_);
}

void SimulatedAgent::LoseWorkers() {
  const bool ran = says_.phase == NodePhase::kRunning || says_.phase == NodePhase::kFailed;
  if (!ran || !says_.workers_lost.empty()) return;
  says_.workers_lost = "its agent ended the workers";
  Tell();
}

void SimulatedAgent::ForgetWorkers() {
  if (workers_ == 0 || gone_at_) return;
  group_ = false;
  workers_ = 0;
  around_.Gone(*this);
}

void SimulatedAgent::WorkersExit(uint32_t token) {
  if (workers_token_ != token || workers_ == 0) return;
  if (!fails_) {
    if (gone_at_ || says_.phase != NodePhase::kRunning) return;  // The workers are being stopped.
    workers_ = 0;
    says_.phase = NodePhase::kSucceeded;
    around_.Succeeded(*this);
  } else {
    says_.phase = NodePhase::kFailed;
    WorkerFailure failure;
    failure.rank = assignment_.first_rank + static_cast<int>(says_.failures.size()) % info_.nproc;
    failure.node_rank = assignment_.node_rank;
    failure.host = info_.host;
    failure.exit_code = 1 + around_.Below(3);
    // In every other round the failures look like consequences; the table judges them later.
    if (assignment_.round % 2 == 0) failure.message = "RuntimeError: Connection closed by peer";
    if (assignment_.round % 4 == 0) failure.message = "RuntimeError: Socket Timeout";
    says_.failures.push_back(failure);
    around_.Failed(*this);
    if (says_.failures.size() < 3 && around_.Below(2) == 0) {
      around_.Later(*this, EventKind::kExits, milliseconds(around_.Below(500)), token);
    }
  }
  Tell();
}

void SimulatedAgent::Stop(const Directive& directive) {
  if (directive.round < says_.round) return;
  ++check_;
  if (directive.round == says_.round && says_.phase == NodePhase::kReady) return;
  if (directive.round > says_.round) {
    says_.round = directive.round;
    says_.failures.clear();
  }
  StopWorkers(std::min(kStopGrace, slow_stop_), Then::kReady);
}

void SimulatedAgent::Finish(const Outcome& outcome) {
  const bool again = outcome_.has_value();
  outcome_ = outcome;
  if (!again) StopWorkers(std::min(kStopGrace, slow_stop_), Then::kFinished);
}

void SimulatedAgent::Leave() {
  if (leaving_ || outcome_) return;
  leaving_ = true;
  StopWorkers(std::min(kStopGrace, slow_stop_), Then::kLeft);
}

void SimulatedAgent::EndWorkers(Duration within, bool fail) {
  if (workers_ == 0) return;
  fails_ = fail;
  around_.Later(*this, EventKind::kExits, within, workers_token_);
}

void SimulatedAgent::StopWorkers(Duration at_most, Then then) {
  then_ = then;
  if (!group_) return OnStopped();
  Duration takes = workers_ == 0 ? Duration::zero() : at_most;
  if (workers_ != 0 && around_.Below(2) == 0) takes = std::min(takes, Duration(milliseconds(50)));
  const Instant at = around_.Now() + takes;
  if (gone_at_ && *gone_at_ <= at) return;
  gone_at_ = at;
  around_.Later(*this, EventKind::kGone, takes, ++gone_token_);
}

void SimulatedAgent::WorkersGone(uint32_t token) {
  if (token != gone_token_ || !gone_at_) return;
  gone_at_.reset();
  group_ = false;
  workers_ = 0;
  ShowLife();
  around_.Gone(*this);
  excused_ = false;
  OnStopped();
}

void SimulatedAgent::OnStopped() {
  switch (std::exchange(then_, Then::kNothing)) {
    case Then::kNothing:
      return LoseWorkers();
    case Then::kReady:
      says_.phase = NodePhase::kReady;
      says_.workers_lost.clear();
      says_.store_port = static_cast<uint16_t>(1 + around_.Below(60000));
      return Tell();
    case Then::kFinished:
      return LastWord(NodePhase::kFinished);
    case Then::kLeft:
      says_.left_reason = "SIGINT";
      says_.left_exit_code = 130;
      end_ = absl::CancelledError("SIGINT");
      return LastWord(NodePhase::kLeft);
    case Then::kQuit:
      return Exit();
  }
}

void SimulatedAgent::LastWord(NodePhase phase) {
  says_.phase = phase;
  if (over_ || (!contacted_ && !local_)) return Exit();
  closing_ = around_.Now() + kLastWord;
  Tell();
  Arm();
}

void SimulatedAgent::Exit() {
  alive_ = false;
  if (stream_ != 0) Drop();
  around_.Exited(*this);
}

void SimulatedAgent::Kill(bool workers_too) {
  alive_ = false;
  inbox_.clear();
  stream_ = 0;
  if (workers_too) SweptByKeeper();
}

void SimulatedAgent::SweptByKeeper() {
  group_ = false;
  workers_ = 0;
  around_.Gone(*this);
  excused_ = false;
}

}  // namespace hlaunch
