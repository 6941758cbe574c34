// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/round_machine.h"

#include <algorithm>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/table/record_changes.h"

namespace hlaunch {
namespace {

Outcome FailedWith(int exit_code, std::string reason) {
  Outcome outcome;
  outcome.exit_code = exit_code;
  outcome.reason = std::move(reason);
  return outcome;
}

// Returns whether the only thing that this node ever said is that it cannot start.
bool CouldNotStart(const Seat& seat) {
  const bool was_ready = seat.told > 0 || seat.store_port != 0;
  return !was_ready && seat.left_exit_code != 0 && !IsSignalExit(seat.left_exit_code);
}

// Returns whether the reason is on the node's command line or disk: it would fail another time,
// too.
bool ForGood(int exit_code) {
  return exit_code == kExitUsage || exit_code == kExitNotExecutable || exit_code == kExitNotFound;
}

std::optional<Instant> Earliest(std::initializer_list<std::optional<Instant>> instants) {
  std::optional<Instant> earliest;
  for (const std::optional<Instant>& one : instants) {
    if (one && (!earliest || *one < *earliest)) earliest = one;
  }
  return earliest;
}

}  // namespace

RoundMachine::RoundMachine(DurableRecord& record, Membership& membership, NewsBoard& news,
                           std::function<std::string()> make_secret)
    : record_(record),
      membership_(membership),
      news_(news),
      make_secret_(std::move(make_secret)),
      gathering_(record, membership),
      proposal_(record, membership),
      failures_(record, membership),
      draining_(record, membership, news),
      reason_(record->cause) {}

void RoundMachine::Resume(Instant t) {
  for (auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat) || failures_.told_again()) continue;
    for (const WorkerFailure& failure : record_->failures) {  // The node will tell them once more.
      const Rank local = failure.rank - seat.first_rank;
      if (0 <= local && local < seat.info.nproc) ++seat.failures_seen;
    }
  }
  gathering_.Resume();
  const JobState state = record_->state;
  if (state == JobState::kRunning && !record_->failures.empty()) failures_.Resume(t);
  if (state == JobState::kForming) gathering_.Form(t);
  if (state == JobState::kPreflight) proposal_.Resume(t);
  time_line_.Resume(*record_);
  ChooseReporter();
}

void RoundMachine::BeforeJoin(Instant t) {
  time_line_.NodeCame();
  if (membership_.here() == 0 && record_->round == 0) gathering_.FirstJoin(t);
}

void RoundMachine::AbsorbFailures(Seat& seat, const NodeUpdate& update, Instant t) {
  if (!InRound(*record_, seat) || update.round != record_->round) return;
  const bool news = failures_.Absorb(seat, update);
  if (record_->state == JobState::kRunning) return JudgeFailures(t);
  if (record_->state != JobState::kOver || record_->outcome.exit_code == 0) return;
  Outcome& outcome = record_.Note().outcome;
  outcome.total_failures = record_->total_failures;
  if (!news) return;
  outcome.failures = record_->failures;
  membership_.TellAll();  // At most kMaxFailures times.
}

void RoundMachine::Enter(Seat& seat, const NodeUpdate& update, Instant t) {
  seat.seen = update.round;
  seat.phase = update.phase;
  const bool member = InRound(*record_, seat);
  const bool speaks_of_it = member && seat.seen == record_->round;
  if (speaks_of_it && seat.unreached != update.unreached) {
    seat.unreached = update.unreached;
    partition_.NoteWord();
  }
  if (speaks_of_it && !update.workers_lost.empty()) LoseWorkers(seat, update.workers_lost, t);
  switch (update.phase) {
    case NodePhase::kPrepared:
      if (speaks_of_it) proposal_.Answer(seat, update);
      return;
    case NodePhase::kRunning:
      if (speaks_of_it && seat.node_rank == 0) gathering_.TakeBoundaries(update.boundaries);
      return;
    case NodePhase::kFailed:
      return;
    case NodePhase::kSucceeded:
      if (member && !std::exchange(seat.succeeded, true)) ++record_.Note().succeeded;
      return;
    case NodePhase::kReady:
      seat.store_port = update.store_port;
      seat.coordinator_port = update.coordinator_port;
      seat.worker_store = update.worker_store;
      if (speaks_of_it && update.step) TakeStep(record_.Note(), *update.step);
      if (speaks_of_it) MarkStopped(seat);
      return;
    case NodePhase::kLeft:
      return Leave(seat, update, t);
    case NodePhase::kFinished:
      MarkStopped(seat);
      membership_.SetFinished(seat);
      return;
  }
}

void RoundMachine::Leave(Seat& seat, const NodeUpdate& update, Instant t) {
  seat.left_exit_code = update.left_exit_code;
  seat.left_reason = update.left_reason.substr(0, kMaxTextBytes);
  if (CouldNotStart(seat)) NoteUnable(seat, t);
  if (seat.told > 0) record_.Change();  // The node leaves the record.
  Depart(seat,
         NodeEvent(FailureEvent::Kind::kNodeLeft, seat.info, seat.left_reason, seat.left_exit_code),
         t);
  draining_.Forget(seat);
  membership_.SetLeft(seat);
  membership_.Tell(seat);
}

// People at the other nodes wait for this one.
void RoundMachine::NoteUnable(const Seat& seat, Instant t) {
  if (record_->state == JobState::kOver) return;
  const std::string text = absl::StrCat(seat.info.host, " cannot start: ", seat.left_reason);
  if (seat.local) return Finish(FailedWith(seat.left_exit_code, text), t);
  news_.Say(text);
  membership_.TellAll();
  // A node without a rank may be a surplus one, on the host of the node that is awaited.
  const auto neighbour = [&](const auto& entry) {
    return &entry.second != &seat && !entry.second.left && SameHost(entry.second.info, seat.info);
  };
  const bool surplus = !seat.info.node_rank && std::any_of(membership_.seats().begin(),
                                                           membership_.seats().end(), neighbour);
  if (surplus || !ForGood(seat.left_exit_code) || unable_.size() >= kMaxNodes) return;
  unable_[seat.info.node_id] = FailedWith(seat.left_exit_code, text);
}

// Ends a job whose first round cannot have its fixed number of nodes any more.
void RoundMachine::EndIfHopeless(Instant t) {
  const JobPolicy& policy = record_->policy;
  const bool fixed = policy.min_nodes == policy.max_nodes;
  if (unable_.empty() || !fixed || record_->round > 0 || membership_.here() == 0) return;
  // Forgets nodes that were started again and can start now.
  std::erase_if(unable_, [this](const auto& entry) {
    const Seat* seat = membership_.Find(entry.first);
    return seat != nullptr && !seat->left;
  });
  if (unable_.size() > static_cast<size_t>(policy.spares)) Finish(unable_.begin()->second, t);
}

void RoundMachine::MarkStopped(Seat& seat) {
  if (!InRound(*record_, seat) || seat.stopped) return;
  seat.stopped = true;
  ++record_.Note().stopped;
  if (record_->state == JobState::kStopping) membership_.Tell(seat);
}

// Does what follows for the job if this node is lost or has left.
void RoundMachine::Depart(Seat& seat, const FailureEvent& event, Instant t) {
  const JobState state = record_->state;
  const bool left = event.kind == FailureEvent::Kind::kNodeLeft;
  const bool done = seat.succeeded && !left;  // Its part of the round is done.
  if (left && seat.local && state != JobState::kOver) {
    const JobVerdict verdict = AfterFailure({}, {}, event, t);  // The rendezvous leaves with it.
    Finish(FailedWith(verdict.exit_code, verdict.reason), t);
  } else if (state == JobState::kPreflight && InRound(*record_, seat)) {
    StopRound(DescribeEvent(event));  // Nothing has run: nothing is charged.
  } else if (state == JobState::kRunning && InRound(*record_, seat) && !done) {
    Decide(failures_.WithPart(event, seat), "", t);
  }
  MarkStopped(seat);
}

void RoundMachine::Remove(Seat& seat, const FailureEvent& event, absl::Status status, Instant t) {
  if (!seat.left) Depart(seat, event, t);
  if (seat.told > 0 && !seat.finished) record_.Change();
  draining_.Forget(seat);
  membership_.Remove(seat, std::move(status));
}

void RoundMachine::JudgeFailures(Instant t) {
  const std::optional<FailureJudge::Verdict> verdict = failures_.Judge(t);
  if (verdict) Decide(verdict->event, verdict->cause_reason, t);
}

std::vector<WaysWord> RoundMachine::WaysWords(Instant t) {
  std::vector<WaysWord> words(static_cast<size_t>(record_->round_nodes));
  for (WaysWord& word : words) word.heard = false;
  for (const Seat* seat : membership_.RoundMembers()) {
    const bool heard = !seat->left && !membership_.Suspect(*seat, t);
    words[static_cast<size_t>(seat->node_rank)] = {seat->info.host, seat->unreached, heard,
                                                   seat->local};
  }
  return words;
}

PartitionRule RoundMachine::RuleOfPartition(Instant t) const {
  const FailureEvent cut = NodeEvent(FailureEvent::Kind::kNodeLost, {}, "");
  PartitionRule rule;
  rule.action = record_->policy.on_partition;
  rule.min_nodes = record_->policy.min_nodes;
  rule.may_restart = AfterFailure(record_->policy, record_->restart_log, cut, t).restart;
  for (const auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat) && !seat.left && !membership_.Suspect(seat, t)) ++rule.standing_by;
  }
  return rule;
}

// Nodes reach the rendezvous but not each other, or reach each other again.
void RoundMachine::JudgePartition(Instant t) {
  if (!partition_.Due(t)) return;
  const auto verdict = partition_.Judge(WaysWords(t), RuleOfPartition(t), t);
  if (!verdict) return;
  switch (verdict->kind) {
    case PartitionVerdict::Kind::kFail:
      return Finish(FailedWith(kExitNodeLost, verdict->reason), t);
    case PartitionVerdict::Kind::kExclude:
      return CutOff(*verdict, t);
    case PartitionVerdict::Kind::kNothing:
      news_.Say("all nodes reach each other again");
      return membership_.TellAll();
    case PartitionVerdict::Kind::kName:
      news_.Say(verdict->reason);
      return membership_.TellAll();
    case PartitionVerdict::Kind::kWait:
      return;
  }
}

// The node is here, but its part of the round is gone: the others would wait for it for ever.
void RoundMachine::LoseWorkers(const Seat& seat, const std::string& why, Instant t) {
  if (record_->state != JobState::kRunning || seat.succeeded) return;
  const std::string detail = why.substr(0, kMaxTextBytes);
  Decide(failures_.WithPart(NodeEvent(FailureEvent::Kind::kNodeLost, seat.info, detail), seat), "",
         t);
}

void RoundMachine::CutOff(const PartitionVerdict& verdict, Instant t) {
  PartitionWatch::CutOff cut_off = {{}, verdict.reason};
  const Seat* first = nullptr;  // All of them were heard, so they are here.
  for (const Seat* seat : membership_.RoundMembers()) {
    const auto& ranks = verdict.cut_off;
    if (std::find(ranks.begin(), ranks.end(), seat->node_rank) == ranks.end()) continue;
    if (first == nullptr) first = seat;
    cut_off.node_ids.push_back(seat->info.node_id);
  }
  partition_.MarkCutOff(std::move(cut_off));
  const auto lost = NodeEvent(FailureEvent::Kind::kNodeLost, first->info, verdict.of_first);
  Decide(failures_.WithPart(lost, *first), "", t);
}

// Called when the workers of the nodes that were cut off have stopped.
void RoundMachine::ExcludeCutOff(Instant t) {
  const PartitionWatch::CutOff cut_off = partition_.TakeCutOff();
  if (cut_off.node_ids.empty()) return;
  CountExcluded(record_.Change(), {PreflightVerdict::Kind::kExclude, false, {}, cut_off.reason});
  for (const std::string& id : cut_off.node_ids) {
    gathering_.MarkUnfit(id);
    const auto found = membership_.seats().find(id);
    if (found == membership_.seats().end()) continue;  // It was lost meanwhile.
    Remove(found->second, NodeEvent(FailureEvent::Kind::kNodeLost, found->second.info, ""),
           absl::FailedPreconditionError(absl::StrCat("this node was excluded: ", cut_off.reason)),
           t);
  }
}

void RoundMachine::Decide(const FailureEvent& event, const std::string& cause_reason, Instant t) {
  const JobVerdict verdict = AfterFailure(record_->policy, record_->restart_log, event, t);
  if (verdict.restart) return Restart(event, verdict, t);
  Outcome outcome = FailedWith(verdict.exit_code, verdict.reason);
  outcome.worker_failed = event.kind == FailureEvent::Kind::kWorkerFailed;
  if (outcome.worker_failed) RecallNotice();
  if (event.kind == FailureEvent::Kind::kNodeLost && !notice_.empty()) {
    absl::StrAppend(&outcome.reason, "; before the round: ", notice_);
    outcome.warned = true;
  }
  outcome.cause_reason = cause_reason;
  outcome.awaited = event.awaited;
  Finish(std::move(outcome), t);
}

void RoundMachine::Restart(const FailureEvent& event, const JobVerdict& verdict, Instant t) {
  TakeRestart(record_.Change(), event, verdict, t);
  StopRound(verdict.reason);
  if (verdict.pause == Duration::zero()) return;
  const std::string what = verdict.free ? verdict.reason : DescribeEvent(event);
  reason_ =
      absl::StrCat(what, "; ", DescribePause(record_->policy, record_->restart_log, verdict.pause));
}

// A worker that could not reach another one, or waited in vain, may have failed because of what the
// preflight warned of.
void RoundMachine::RecallNotice() {
  if (notice_.empty() || record_->failures.empty()) return;
  WorkerFailure& first = record_.Note().failures.front();
  if (KindOf(first) == CauseKind::kOriginal || !first.evidence.empty()) return;
  first.kind = FailureKind::kWarnedBefore;
  first.evidence = absl::StrCat("before the round: ", notice_);
}

void RoundMachine::StopRound(std::string cause) {
  reason_ = cause;
  time_line_.RoundStops(cause, record_->failures);
  SetStopping(record_.Change(), std::move(cause));
  gathering_.ForgetGrowth();
  failures_.Stop();
  membership_.TellAll();
}

void RoundMachine::Finish(Outcome outcome, Instant t) {
  if (record_->state == JobState::kOver) return;
  time_line_.RoundStops(outcome.reason, record_->failures);
  SetOutcome(record_.Change(), std::move(outcome), t);
  failures_.Stop();
  ChooseReporter();
  membership_.TellAll();
}

// Chooses the local node, whose terminal is likely the user's; else the first node that is here.
void RoundMachine::ChooseReporter() {
  const Seat* chosen = nullptr;
  const auto worth = [](const Seat& seat) {
    return std::tuple(seat.local, seat.attached && !seat.left, seat.told, -seat.node_rank);
  };
  for (const auto& [id, seat] : membership_.seats()) {
    if (chosen == nullptr || worth(seat) > worth(*chosen)) chosen = &seat;
  }
  reporter_ = chosen == nullptr ? "" : chosen->info.node_id;
}

void RoundMachine::Settle(Instant t) {
  const JobState& state = record_->state;
  if (state == JobState::kPreflight) JudgePreflight(t);
  if (state == JobState::kRunning && record_->succeeded == record_->round_nodes) Finish({}, t);
  if (failures_.due()) JudgeFailures(t);
  if (state == JobState::kRunning) JudgePartition(t);
  LookForDrained(t);
  // A round that is about to be stopped does not grow.
  if (state == JobState::kRunning && !failures_.due()) {
    const std::string reason = gathering_.LookForGrowth(t);
    if (!reason.empty()) StopRound(reason);
  }
  if (state == JobState::kStopping && record_->stopped == record_->round_nodes) {
    ExcludeCutOff(t);
    CountStuck(record_.Note());
    time_line_.RoundStopped();
    record_.Note().state = JobState::kForming;
    gathering_.Form(t);
    if (std::string stuck = WhyStuck(*record_); !stuck.empty()) {
      TakeBackRestart(record_.Change());
      Finish(FailedWith(kExitNoProgress, std::move(stuck)), t);
    }
  }
  DismissDrained(t);
  if (state == JobState::kForming) EndIfHopeless(t);
  if (state == JobState::kForming) LookForRound(t);
}

void RoundMachine::CheckJoinTimeout(Instant t) {
  const std::optional<Instant> deadline = gathering_.join_deadline();
  if (record_->state != JobState::kForming || !deadline || t < *deadline) return;
  if (membership_.here() > 0 || record_->round > 0) LookForRound(t);  // To get the latest reason.
  if (record_->state != JobState::kForming) return;
  const std::string& refused = news_.last_refusal();  // It may be the node that is missing.
  Outcome outcome = FailedWith(
      kExitJoinTimeout, absl::StrCat("gave up after ", WholeSeconds(record_->policy.join_timeout),
                                     " s: ", reason_, refused.empty() ? "" : "; ", refused));
  outcome.refused = !refused.empty();
  Finish(std::move(outcome), t);
}

void RoundMachine::LookForSilence(Instant t) {
  if (record_->state == JobState::kOver) return;
  const std::vector<std::string> lines = silence_.Look(membership_, record_->policy, t);
  for (const std::string& line : lines) news_.Say(line);
  if (!lines.empty()) membership_.TellAll();
}

std::optional<Instant> RoundMachine::NextDeadline() const {
  switch (record_->state) {
    case JobState::kForming:
      return gathering_.NextLookForRound();
    case JobState::kPreflight:
      return proposal_.ends();
    case JobState::kRunning:
      return Earliest({failures_.due(), partition_.due(),
                       failures_.due() ? std::nullopt : gathering_.NextLookForGrowth()});
    case JobState::kStopping:
    case JobState::kOver:
      break;
  }
  return std::nullopt;
}

// Ends a round if one of its members must not be used any more; nothing is charged.
void RoundMachine::LookForDrained(Instant t) {
  const JobState state = record_->state;
  const bool runs = state == JobState::kRunning || state == JobState::kPreflight;
  if (!runs || failures_.due()) return;
  const std::string reason = draining_.Look(t);
  if (!reason.empty()) StopRound(reason);
}

// The agents of these nodes end like those of nodes that have left, but with 0: this is no failure
// of the job.
void RoundMachine::DismissDrained(Instant t) {
  for (const std::string& id : NodesToDismiss(*record_, membership_, t)) {
    Seat& seat = membership_.seats().find(id)->second;
    seat.left_exit_code = kExitOk;
    seat.left_reason = absl::StrCat("it is drained: ", FindDrained(*record_, seat.info)->reason);
    if (seat.told > 0) record_.Change();  // The node leaves the record.
    membership_.SetLeft(seat);
    membership_.Tell(seat);
  }
}

// Starts a round if it may; else tells all nodes what is awaited, if that has changed.
void RoundMachine::LookForRound(Instant t) {
  std::optional<Gathering::Look> look = gathering_.LookForRound(t);
  if (!look) return;
  if (look->order) return Start(*look->order, t);
  if (look->reason == reason_) return;
  reason_ = std::move(look->reason);
  membership_.TellAll();
}

void RoundMachine::Start(const std::vector<Seat*>& order, Instant t) {
  BeginRound(record_.Change(), order, make_secret_ ? make_secret_() : "");
  record_.Note().restart_log.ran_since = t;  // If the round is checked first, Run sets it again.
  time_line_.RoundBegins(*record_);
  gathering_.Start();
  proposal_.Begin(t);
  failures_.BeginRound();
  partition_.BeginRound();
  notice_.clear();
  reason_.clear();
  membership_.TellAll();
}

void RoundMachine::JudgePreflight(Instant t) {
  if (!proposal_.Due(t)) return;
  const std::vector<Seat*> nodes = membership_.RoundMembers();
  const PreflightVerdict verdict = proposal_.Judge(nodes, t);
  const std::string reason =
      absl::StrCat("round ", record_->round, " cannot start: ", verdict.reason);
  const bool local = std::any_of(verdict.nodes.begin(), verdict.nodes.end(),
                                 [&](size_t i) { return nodes[i]->local; });
  switch (verdict.kind) {
    case PreflightVerdict::Kind::kPass:
      return Run(verdict.reason, t);
    case PreflightVerdict::Kind::kAgain:
      proposal_.MeasureAgain(verdict, nodes);
      return StopRound(
          absl::StrCat("round ", record_->round, " is measured once more: ", verdict.reason));
    case PreflightVerdict::Kind::kExclude:
      if (!local) return Exclude(verdict, nodes, reason, t);
      break;
    case PreflightVerdict::Kind::kFail:
      break;
  }
  if (!verdict.bad && RestartInstead(nodes[verdict.nodes.front()]->info, reason, t)) return;
  Finish(FailedWith(kExitPreflight, reason), t);
}

// What kept the round from starting may be over soon, such as the pause of a host. A restart that
// is left is spent on it, and charged whatever the policy lets go free, so that there is an end.
bool RoundMachine::RestartInstead(const NodeInfo& first, const std::string& reason, Instant t) {
  const FailureEvent event = NodeEvent(FailureEvent::Kind::kNodeLost, first, reason);
  JobPolicy policy = record_->policy;
  policy.free_on.clear();
  JobVerdict follows = AfterFailure(policy, record_->restart_log, event, t);
  if (!follows.restart) return false;
  follows.reason = absl::StrCat(reason, follows.reason.substr(DescribeEvent(event).size()));
  Restart(event, follows, t);
  return true;
}

void RoundMachine::Run(const std::string& notice, Instant t) {
  record_.Change().state = JobState::kRunning;
  record_.Note().restart_log.ran_since = t;
  time_line_.RoundRuns();
  notice_ = notice;
  membership_.TellAll();
}

void RoundMachine::Exclude(const PreflightVerdict& verdict, const std::vector<Seat*>& nodes,
                           const std::string& reason, Instant t) {
  StopRound(reason);
  CountExcluded(record_.Change(), verdict);
  for (const size_t index : verdict.nodes) {
    Seat& seat = *nodes[index];
    gathering_.MarkUnfit(seat.info.node_id);
    Remove(seat, NodeEvent(FailureEvent::Kind::kNodeLost, seat.info, reason),
           absl::FailedPreconditionError(absl::StrCat("this node was excluded: ", verdict.reason)),
           t);
  }
}

TableView RoundMachine::View() const {
  return {*record_, membership_, reason_,        gathering_.growth(),
          notice_,  reporter_,   news_.latest(), gathering_.begins_at()};
}

}  // namespace hlaunch
