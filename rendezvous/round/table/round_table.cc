// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/round_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/admission.h"
#include "rendezvous/round/table/directive.h"
#include "rendezvous/round/table/draining.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

// The longest time between ticks: it makes a pause visible.
constexpr Duration kNap = std::chrono::seconds(1);
constexpr Duration kInstant = std::chrono::nanoseconds(1);
constexpr Duration kSlack = std::chrono::seconds(2);  // A tick later than this was a pause.

JobRecord NewRecord(const JobRules& rules) {
  JobRecord record;
  record.job_id = rules.job_id;
  record.policy = rules.policy;
  return record;
}

// Returns `record` without its members, which become seats; times that are not stored in it count
// from now.
JobRecord RestoredRecord(const JobRules& rules, JobRecord record, Instant now) {
  record.job_id = rules.job_id;
  record.policy = rules.policy;
  record.members.clear();
  for (Ghost& ghost : record.ghosts) ghost.heard = now;
  for (Instant& at : record.restart_log.charged) at = now;
  record.restart_log.ran_since = now;
  return record;
}

// Returns whether a node was refused for what it is. It may be the node that is awaited.
bool IsMisfit(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsAlreadyExists(status) ||
         absl::IsInvalidArgument(status);
}

}  // namespace

RoundTable::RoundTable(const JobRules& rules)
    : set_by_(rules.set_by),
      record_(NewRecord(rules)),
      membership_(record_),
      machine_(record_, membership_, news_, rules.make_secret) {}

RoundTable::RoundTable(const JobRules& rules, const JobRecord& record, Instant now)
    : set_by_(rules.set_by),
      record_(RestoredRecord(rules, record, now)),
      membership_(record_),
      machine_(record_, membership_, news_, rules.make_secret),
      last_now_(now),
      ticked_(now) {
  for (const MemberRecord& member : record.members) {
    membership_.SetAttached(membership_.Insert(member, /*local=*/false, now), false);
  }
  machine_.time_line().SetNow(now);
  machine_.Resume(now);
}

JobRecord RoundTable::Record() const {
  JobRecord record = *record_;
  record.members = membership_.Durable();
  return record;
}

Instant RoundTable::Observe(Instant now) {
  const std::optional<Instant> due = stands_by_ ? NextStandBy() : NextDeadline();
  if (!due) ticked_ = now;
  if (due && now > *due + kSlack) {
    // A table that gets calls but no Tick stays at the time of its last call, so that its time
    // never goes back; except for an instant, so that a message after a question is later than the
    // question.
    const Duration stood =
        last_now_ > *due ? std::max(Duration::zero(), now - last_now_ - kInstant) : now - *due;
    paused_ += stood;
    if (now - paused_ > stood_still_at_ + kSlack) stood_still_ = {};
    stood_still_at_ = now - paused_;
    stood_still_ += stood;
  }
  last_now_ = now;
  machine_.time_line().SetNow(now);
  return now - paused_;
}

std::optional<Instant> RoundTable::NextDeadline() const {
  std::optional<Instant> next = machine_.NextDeadline();
  const std::optional<Instant> loss = membership_.NextLoss();
  if (!next || (loss && *loss < *next)) next = loss;
  if (next) next = std::min(*next + paused_, ticked_ + kNap);
  return next;
}

void RoundTable::Tick(Instant now) {
  const Instant t = Observe(now);
  ticked_ = now;
  stands_by_ = false;
  LoseSilent(t);
  machine_.LookForSilence(t);
  machine_.Settle(t);
  machine_.CheckJoinTimeout(t);
}

void RoundTable::StandBy(Instant now) {
  const Instant before = ticked_ - paused_;
  machine_.PutOff(Observe(now) - before);
  ticked_ = now;
  stands_by_ = true;
}

Instant RoundTable::NextStandBy() const { return ticked_ + kNap; }

void RoundTable::LoseSilent(Instant t) {
  membership_.ForgetGhosts(t);
  if (membership_.FindLost(t) == nullptr) return;
  const OwnFault fault = FindOwnFault(t);
  while (Seat* seat = membership_.FindLost(t)) {
    const std::string detail = WhySilent(*seat, fault, t);
    machine_.Remove(
        *seat, NodeEvent(FailureEvent::Kind::kNodeLost, seat->info, detail),
        absl::AbortedError(absl::StrCat("the job gave up ", NodeName(seat->info), ": ", detail)),
        t);
  }
}

// Nodes end by themselves where the rendezvous stood still for so long, and all are silent at once
// where its host is cut off.
RoundTable::OwnFault RoundTable::FindOwnFault(Instant t) const {
  const Lease& lease = record_->policy.lease;
  OwnFault fault;
  int others = 0, silent = 0;
  for (const auto& [node_id, other] : membership_.seats()) {
    if (other.local) fault.host = other.info.host;
    if (other.local || other.left || other.finished) continue;
    ++others;
    if (t - other.heard >= lease.lease) ++silent;
  }
  fault.cut_off = !fault.host.empty() && others > 1 && silent == others;
  if (stood_still_ >= lease.loss_limit) fault.stood_still_until = stood_still_at_ + lease.lease;
  return fault;
}

std::string RoundTable::WhySilent(const Seat& seat, const OwnFault& fault, Instant t) const {
  const std::string silence =
      absl::StrCat("it was not heard of for ", WholeSeconds(t - seat.heard), " s");
  if (fault.stood_still_until && seat.heard <= *fault.stood_still_until) {
    return absl::StrCat(fault.host.empty() ? "the node" : fault.host,
                        ", which holds the rendezvous, had stood still for ",
                        WholeSeconds(stood_still_), " s; ", silence, " since");
  }
  if (!fault.cut_off) return silence;
  return absl::StrCat(silence, ", nor was any other node: the network of ", fault.host,
                      " itself may be at fault");
}

// Makes room for a node whose id or rank is held by another incarnation.
absl::Status RoundTable::Vacate(const NodeInfo& info, Instant t) {
  while (Seat* holder = membership_.HolderOf(info)) {
    HLAUNCH_RETURN_IF_ERROR(membership_.Claim(*holder, info, t));
    const bool may_run = InRound(*record_, *holder) && !holder->stopped;
    if (may_run && !SameHost(holder->info, info)) membership_.AddGhost(*holder);
    const std::string detail = absl::StrCat("its place was taken by ", NodeName(info));
    machine_.Remove(*holder, NodeEvent(FailureEvent::Kind::kNodeLost, holder->info, detail),
                    absl::AbortedError(detail), t);
  }
  return absl::OkStatus();
}

absl::Status RoundTable::Join(const NodeInfo& info, const NodeUpdate& update, bool local,
                              Instant now) {
  const Instant t = Observe(now);
  const absl::Status status = Admit(info, update, local, t);
  const bool awaited = record_->state == JobState::kForming && membership_.here() > 0;
  if (awaited && IsMisfit(status) && news_.SayRefused(info, status, t)) membership_.TellAll();
  return status;
}

absl::Status RoundTable::Admit(const NodeInfo& info, const NodeUpdate& update, bool local,
                               Instant t) {
  HLAUNCH_RETURN_IF_ERROR(CheckInfo(*record_, info));
  if (const std::string* why = membership_.WhyGivenUp(info.incarnation)) {
    return absl::AbortedError(*why);
  }
  // A node that was dismissed before the rendezvous was restarted must hear so.
  const bool idle = update.phase == NodePhase::kReady || update.phase == NodePhase::kFinished;
  const bool dismissed =
      idle && record_->state != JobState::kOver && FindDrained(*record_, info) != nullptr;
  const auto fits = [&] {
    if (dismissed) return absl::OkStatus();
    return CheckFits(*record_, set_by_, membership_.here(), info, update);
  };
  Seat* seat = membership_.Find(info.node_id, info.incarnation);
  if (seat == nullptr) {
    HLAUNCH_RETURN_IF_ERROR(fits());
    HLAUNCH_RETURN_IF_ERROR(Vacate(info, t));
    HLAUNCH_RETURN_IF_ERROR(fits());  // Losing the node it replaces may have ended the job.
    machine_.BeforeJoin(t);
    seat = &membership_.Insert({info}, local, t);
  } else {
    HLAUNCH_RETURN_IF_ERROR(CheckPossible(*record_, *seat, update));
    membership_.SetAttached(*seat, true);
    // Another rendezvous may have known this node as one on its own host.
    if (IsLoopback(seat->info.address)) seat->info.address = info.address;
    // No record keeps the following, and a host may have got new addresses.
    seat->info.seen_address = info.seen_address;
    seat->info.other_addresses = info.other_addresses;
    membership_.Touch(*seat, t);
  }
  Apply(*seat, update, t);
  membership_.Tell(*seat);
  machine_.Settle(t);
  return absl::OkStatus();
}

bool RoundTable::Holds(absl::string_view node_id, Incarnation incarnation) const {
  const Seat* seat = membership_.Find(node_id);
  return seat != nullptr && seat->info.incarnation == incarnation;
}

absl::Status RoundTable::Update(absl::string_view node_id, Incarnation incarnation,
                                const NodeUpdate& update, Instant now, bool counts) {
  const Instant t = Observe(now);
  Seat* seat = membership_.Find(node_id, incarnation);
  if (seat == nullptr) {
    const std::string* why = membership_.WhyGivenUp(incarnation);
    return absl::AbortedError(why != nullptr ? *why : "this incarnation holds no place in the job");
  }
  if (counts) membership_.Touch(*seat, t);
  absl::Status status = CheckPossible(*record_, *seat, update);
  if (status.ok()) Apply(*seat, update, t);
  machine_.Settle(t);
  return status;
}

// Requires: `update` is possible.
void RoundTable::Apply(Seat& seat, const NodeUpdate& update, Instant t) {
  const bool overtaken = IsOvertaken(seat, update);
  if (!overtaken) machine_.draining().Note(seat, update);
  machine_.AbsorbFailures(seat, update, t);
  if (!overtaken) machine_.Enter(seat, update, t);
}

bool RoundTable::Counts(absl::string_view node_id, Incarnation incarnation, Duration age,
                        Instant now) {
  const Instant t = Observe(now);
  const Seat* seat = membership_.Find(node_id, incarnation);
  const Duration lease = record_->policy.lease.lease;
  if (seat == nullptr) return true;
  if (membership_.OwesAnswer(*seat, t) && t - age <= seat->asked) return false;
  if (age < lease || t - seat->heard < lease) return true;
  membership_.Ask(*seat);
  return false;
}

bool RoundTable::HeardFromVoter(absl::string_view node_id, Incarnation incarnation, Instant now) {
  const Instant t = Observe(now);
  Seat* seat = membership_.Find(node_id, incarnation);
  if (seat == nullptr || seat->left || seat->finished) return false;
  if (membership_.OwesAnswer(*seat, t)) return false;  // The answer may be older than the question.
  const Lease& lease = record_->policy.lease;
  if (!seat->local && t - seat->spoke > lease.loss_limit + lease.lease) return false;
  membership_.NoteHeard(*seat, t);
  return true;
}

void RoundTable::Heard(absl::string_view node_id, Incarnation incarnation, Instant now) {
  const Instant t = Observe(now);
  Seat* seat = membership_.Find(node_id, incarnation);
  if (seat == nullptr) return;
  const bool was_suspect = membership_.Suspect(*seat, t);
  membership_.Touch(*seat, t);
  if (was_suspect) machine_.Settle(t);
}

void RoundTable::Disconnected(absl::string_view node_id, Incarnation incarnation, Instant now) {
  const Instant t = Observe(now);
  Seat* seat = membership_.Find(node_id, incarnation);
  if (seat == nullptr || !seat->attached) return;
  membership_.Detach(*seat, t);
  machine_.Settle(t);
}

absl::Status RoundTable::NodeDied(absl::string_view node_id, Incarnation incarnation,
                                  absl::string_view reason, Instant now) {
  const Instant t = Observe(now);
  Seat* seat = membership_.Find(node_id, incarnation);
  if (seat != nullptr) {
    const std::string detail(reason.substr(0, kMaxTextBytes));
    machine_.Remove(
        *seat, NodeEvent(FailureEvent::Kind::kNodeLost, seat->info, detail),
        absl::AbortedError(absl::StrCat(NodeName(seat->info), " was reported dead: ", detail)), t);
  } else if (!membership_.EraseGhost(node_id, incarnation)) {
    return absl::AbortedError("this incarnation holds no place in the job");
  }
  machine_.Settle(t);
  return absl::OkStatus();
}

absl::StatusOr<std::string> RoundTable::Drain(const DrainRequest& request, Instant now) {
  const Instant t = Observe(now);
  absl::StatusOr<std::string> follows = machine_.draining().Take(request, t);
  machine_.Settle(t);
  return follows;
}

void RoundTable::Expect(int nodes, int ended, Instant now) {
  const Instant t = Observe(now);
  machine_.Expect(nodes, ended);
  machine_.Settle(t);
}

void RoundTable::End(const Outcome& outcome, Instant now) {
  machine_.Finish(outcome, Observe(now));
}

Directive RoundTable::DirectiveFor(absl::string_view node_id) const {
  const Seat* seat = membership_.Find(node_id);
  return seat == nullptr ? Directive() : DirectiveOf(machine_.View(), *seat);
}

Assignment RoundTable::FirstAssignment() const { return AssignmentOf(machine_.View(), 0, 0); }

std::vector<const Seat*> RoundTable::Members() const {
  std::vector<const Seat*> members;
  for (const auto& [node_id, seat] : membership_.seats()) {
    if (InRound(*record_, seat)) members.push_back(&seat);
  }
  std::sort(members.begin(), members.end(),
            [](const Seat* a, const Seat* b) { return a->first_rank < b->first_rank; });
  return members;
}

std::vector<NodeInfo> RoundTable::Nodes() const {
  std::vector<const Seat*> seats = Members();
  for (const auto& [node_id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat)) seats.push_back(&seat);
  }
  std::vector<NodeInfo> nodes;
  for (const Seat* seat : seats) {
    if (!seat->left && !seat->finished) nodes.push_back(seat->info);
  }
  return nodes;
}

void RoundTable::Say(const std::string& text) {
  news_.Say(text);
  membership_.TellAll();
}

std::string RoundTable::Explain(Instant now) const {
  return hlaunch::Explain(machine_.View(), now - paused_);
}

JobStatus RoundTable::Status(Instant now, int64_t wall_ms) const {
  JobStatus status = StatusOf(machine_.View(), now - paused_);
  machine_.time_line().Tell(status, now, wall_ms);
  return status;
}

}  // namespace hlaunch
