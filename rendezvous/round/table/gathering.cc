// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/gathering.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/decide/restart_policy.h"
#include "rendezvous/round/table/draining.h"

namespace hlaunch {
namespace {

constexpr size_t kSmallJob = 64;  // Up to here every change is looked at in full, at once.
// The least time between looks in a larger job: the longer of kPause and its nodes times
// kPausePerNode.
constexpr Duration kPause = std::chrono::seconds(1);
constexpr Duration kPausePerNode = std::chrono::milliseconds(1);

void TakeEarlier(std::optional<Instant>& next, const std::optional<Instant>& t) {
  if (t) next = next ? std::min(*next, *t) : *t;
}

}  // namespace

Gathering::Gathering(const DurableRecord& record, Membership& membership)
    : record_(record), membership_(membership) {
  if (record_->policy.started_nodes > 0) Expect(record_->policy.started_nodes, 0);
}

void Gathering::FirstJoin(Instant t) {
  join_deadline_ = t + record_->policy.join_timeout;
  forming_since_ = t;
}

void Gathering::Form(Instant t) {
  const Duration pause = record_->restart_log.pause;
  FirstJoin(t);
  *join_deadline_ += pause;
  begins_at_.reset();
  if (pause > Duration::zero()) begins_at_ = t + pause;
  last_call_ends_.reset();
  looked_ = t - Pause();
  look_at_.reset();  // It was meant for the previous round.
}

void Gathering::Start() {
  join_deadline_.reset();
  last_call_ends_.reset();
  ForgetGrowth();
  moment_.Begin();
  largest_ = std::max(largest_, record_->round_nodes);
}

void Gathering::ForgetGrowth() {
  grow_at_.reset();
  growth_ = {};
  moment_.Forget();
}

void Gathering::MarkUnfit(const std::string& node_id) {
  if (unfit_.size() < kMaxNodes) unfit_.insert(node_id);
}

Duration Gathering::Pause() const {
  return std::max<Duration>(kPause, kPausePerNode * membership_.seats().size());
}

// Returns false in a large job that has looked just now; the look is put off.
bool Gathering::MayLook(bool at_once, Instant t) {
  if (!at_once && membership_.seats().size() > kSmallJob && t < looked_ + Pause()) {
    look_at_ = looked_ + Pause();
    return false;
  }
  looked_ = t;
  look_at_.reset();
  return true;
}

QuorumRule Gathering::Rule() const {
  const JobPolicy& policy = record_->policy;
  QuorumRule rule{policy.min_nodes, policy.max_nodes, policy.last_call, record_->round_nodes,
                  policy.node_multiple};
  const int largest = std::max(largest_, record_->round_nodes);
  if (policy.on_join == OnJoin::kIgnore && largest > 0) rule.max_nodes = largest;
  if (expected_) rule.expected_nodes = ExpectedNodes();
  if (grew_at_) rule.grows_from = *grew_at_ + policy.grow_interval;
  return rule;
}

void Gathering::NoteWhoIsHere() {
  if (!expected_) return;
  for (const auto& [id, seat] : membership_.seats()) {
    if (!seat.left && came_.size() < kMaxNodes) came_.insert(id);
  }
}

// Who was seen to go may be the same as one that was told to have ended, so only the larger number
// counts. Requires: `expected_` is set.
int Gathering::ExpectedNodes() const {
  const int gone = static_cast<int>(came_.size()) - membership_.here();
  return expected_->nodes - std::max(expected_->ended, gone);
}

// Returns whether the round that forms must have as many nodes as the previous one, for now.
bool Gathering::AwaitsReplacement(Instant t) const {
  return record_->policy.on_loss == OnLoss::kWait && join_deadline_ && t < *join_deadline_;
}

std::vector<Candidate> Gathering::Candidates(std::vector<Seat*>* seats, Instant t) {
  std::vector<Candidate> candidates;
  const bool enough = record_->drained.empty() || EnoughUndrained(*record_, membership_, t);
  for (auto& [id, seat] : membership_.seats()) {
    if (seat.left) continue;
    // A drained member goes on if the job cannot do without it.
    const bool dispensable = enough || !InRound(*record_, seat);
    if (dispensable && FindDrained(*record_, seat.info) != nullptr) continue;
    Candidate candidate{id,
                        seat.info.host,
                        seat.info.node_rank,
                        {},
                        !membership_.Suspect(seat, t),
                        std::max(seat.since, forming_since_)};
    const auto held = record_->held_ranks.find(id);
    if (held != record_->held_ranks.end()) candidate.held_rank = held->second;
    candidates.push_back(candidate);
    seats->push_back(&seat);
  }
  return candidates;
}

std::optional<Gathering::Look> Gathering::LookForRound(Instant t) {
  if (membership_.here() == 0 && record_->round == 0) {
    join_deadline_.reset();
    last_call_ends_.reset();
    return std::nullopt;
  }
  if (begins_at_ && t < *begins_at_) {
    return Look{std::nullopt, WaitForPause(record_->policy, record_->restart_log)};
  }
  begins_at_.reset();
  NoteWhoIsHere();
  QuorumRule rule = Rule();
  if (AwaitsReplacement(t)) rule.min_nodes = std::max(rule.min_nodes, rule.previous_nodes);
  const int attached = membership_.attached();
  const bool at_last = join_deadline_ && t >= *join_deadline_;
  const bool may_start = at_last || attached >= rule.max_nodes || attached >= rule.expected_nodes ||
                         attached == rule.min_nodes || attached == rule.previous_nodes ||
                         (last_call_ends_ && t >= *last_call_ends_);
  if (!MayLook(may_start, t)) return std::nullopt;
  if (EnoughUndrained(*record_, membership_, t)) {
    // The round does not wait for drained members.
    rule.previous_nodes -= DrainedMembers(*record_, membership_);
  }
  std::vector<Seat*> seats;
  const QuorumVerdict verdict = DecideQuorum(Candidates(&seats, t), rule, t);
  last_call_ends_ = verdict.last_call_ends;
  if (verdict.order && record_->ghosts.empty()) {
    std::vector<Seat*> order;
    for (const size_t index : *verdict.order) order.push_back(seats[index]);
    return Look{std::move(order), ""};
  }
  std::string reason = verdict.reason;
  if (verdict.order) {
    const Ghost& ghost = record_->ghosts.front();
    reason = absl::StrCat(
        "waiting until ", ghost.host, " (pid ", ghost.pid,
        ") must have stopped its workers: it was not heard of when its place was taken");
  }
  if (rule.min_nodes > record_->policy.min_nodes) {
    absl::StrAppend(&reason, "; with --on-loss wait fewer begin only after --join-timeout");
  }
  absl::StrAppend(&reason, DrainedWords(*record_, membership_));
  if (!record_->cause.empty()) absl::StrAppend(&reason, " (", record_->cause, ")");
  return Look{std::nullopt, std::move(reason)};
}

std::vector<Candidate> Gathering::Waiting(Instant t) const {
  std::vector<Candidate> waiting;
  for (const auto& [id, seat] : membership_.seats()) {
    if (InRound(*record_, seat) || seat.left) continue;
    const bool drained = FindDrained(*record_, seat.info) != nullptr;
    const bool counts = !membership_.Suspect(seat, t) && !unfit_.contains(id) && !drained;
    waiting.push_back({id, seat.info.host, {}, {}, counts, seat.since});
  }
  return waiting;
}

// No node waits any more.
void Gathering::StopGrowing() {
  grow_at_.reset();
  look_at_.reset();
  growth_ = {};
  if (moment_.Forget()) membership_.TellAll();
}

// The round must end for the waiting nodes.
void Gathering::Want(const GrowthVerdict& verdict, Instant t) {
  const bool news = moment_.Want(record_->policy.boundary_limit, t);
  grow_at_ = verdict.at;
  growth_ = verdict;
  if (news && !moment_.Due(t)) membership_.TellAll();
}

// Tells the waiting nodes when their round comes, if that is news.
void Gathering::Announce(const GrowthVerdict& verdict) {
  if (moment_.Forget()) membership_.TellAll();
  const bool same = grow_at_ == verdict.at && growth_.reason == verdict.reason;
  grow_at_ = verdict.at;
  growth_ = verdict;
  if (same) return;
  for (auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat)) membership_.Tell(seat);
  }
}

std::string Gathering::LookForGrowth(Instant t) {
  // Until a node has succeeded, all members are here.
  if (record_->succeeded > 0 || membership_.here() <= record_->round_nodes ||
      record_->round_nodes >= record_->policy.max_nodes ||
      record_->policy.on_join != OnJoin::kRestart) {
    StopGrowing();
    return "";
  }
  const bool due = moment_.wanted() ? moment_.Due(t) : grow_at_ && t >= *grow_at_;
  if (!MayLook(due, t)) return "";
  const GrowthVerdict verdict = DecideGrowth(Waiting(t), Rule(), t);
  if (!verdict.at || t < *verdict.at) {
    Announce(verdict);
    return "";
  }
  Want(verdict, t);
  if (!moment_.Due(t)) return "";
  grew_at_ = t;
  return verdict.reason;
}

GrowthView Gathering::growth() const {
  if (moment_.wanted()) return {growth_.reason, growth_.hold, moment_.ends(), true};
  return {growth_.reason, growth_.hold, grow_at_, false};
}

std::optional<Instant> Gathering::NextLookForRound() const {
  std::optional<Instant> next = join_deadline_;
  TakeEarlier(next, begins_at_);
  TakeEarlier(next, last_call_ends_);
  TakeEarlier(next, look_at_);
  return next;
}

std::optional<Instant> Gathering::NextLookForGrowth() const {
  std::optional<Instant> next = moment_.wanted() ? moment_.ends() : grow_at_;
  TakeEarlier(next, look_at_);
  return next;
}

}  // namespace hlaunch
