// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/round_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/round/first_cause.h"
#include "rendezvous/round/limits.h"
#include "rendezvous/round/master_address.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxAwaited = 3;     // Workers that are named because they did not fail.
constexpr size_t kRemembered = 1024;  // Incarnations that were given up, or two for each node.
constexpr size_t kSmallJob = 64;      // Up to here every change is looked at in full, at once.
constexpr Duration kLook = std::chrono::seconds(1);  // Between full looks in a larger job, at least
constexpr Duration kLookPerNode = std::chrono::milliseconds(1);  // this times its nodes.
constexpr Duration kNap = std::chrono::seconds(1);    // Between ticks: what makes a pause visible.
constexpr Duration kSlack = std::chrono::seconds(2);  // A tick later than this was a pause.
// For a live holder of a place to answer; and how long its answer holds.
constexpr Duration kAsk = std::chrono::seconds(1);
constexpr Duration kAskAgain = std::chrono::seconds(10);

int64_t Seconds(Duration d) { return std::chrono::duration_cast<std::chrono::seconds>(d).count(); }

std::string Name(const NodeInfo& info) { return absl::StrCat(info.host, " (pid ", info.pid, ")"); }

// Two nodes want the same explicit rank.
bool SameRank(const NodeInfo& a, const NodeInfo& b) {
  return a.node_rank && a.node_rank == b.node_rank;
}

// What `claimant` wants of `holder`, as the start of a sentence.
std::string Claim(const NodeInfo& holder, const NodeInfo& claimant) {
  return absl::StrCat(SameRank(holder, claimant) ? absl::StrCat("node rank ", *claimant.node_rank)
                                                 : "the place of this node",
                      " in job ", holder.job_id, " is held by ", Name(holder));
}

std::string Nodes(int n) { return absl::StrCat(n, n == 1 ? " node" : " nodes"); }

std::string Range(int min, int max) {
  return min == max ? absl::StrCat(min) : absl::StrCat(min, ":", max);
}

// How far a node is within one round.
int Order(NodePhase phase) {
  switch (phase) {
    case NodePhase::kPrepared:
      return 1;
    case NodePhase::kRunning:
      return 2;
    case NodePhase::kSucceeded:
    case NodePhase::kFailed:
      return 3;
    case NodePhase::kReady:
      return 4;
    case NodePhase::kLeft:
      return 5;
    case NodePhase::kFinished:
      return 6;
  }
  return 0;
}

// What is told of it where the report is not printed.
void Shorten(WorkerFailure& failure) {
  if (failure.message.empty()) failure.message = ExceptionOf(failure);
  failure.log_tail.clear();
  failure.traceback.clear();
}

FailureEvent NodeEvent(FailureEvent::Kind kind, const NodeInfo& info, absl::string_view detail,
                       int exit_code = 0) {
  FailureEvent event;
  event.kind = kind;
  event.host = info.host;
  event.detail = std::string(detail);
  event.left_exit_code = exit_code;
  return event;
}

}  // namespace

RoundTable::RoundTable(const JobRules& rules) : rules_(rules) {}

RoundTable::RoundTable(const JobRules& rules, const JobRecord& record, Instant now)
    : rules_(rules),
      state_(record.state),
      round_(record.round),
      ghosts_(record.ghosts),
      cause_(record.cause),
      reason_(record.cause),
      round_nodes_(record.round_nodes),
      succeeded_(record.succeeded),
      stopped_(record.stopped),
      world_size_(record.world_size),
      master_addr_(record.master_addr),
      master_port_(record.master_port),
      coordinator_port_(record.coordinator_port),
      worker_store_(record.worker_store),
      held_ranks_(record.held_ranks.begin(), record.held_ranks.end()),
      restarts_(record.restarts),
      failures_(record.failures),
      total_failures_(record.total_failures),
      history_(record.history),
      outcome_(record.outcome),
      last_now_(now) {
  for (const Incarnation incarnation : record.given_up) {
    GiveUp(incarnation, "the job went on without this node");
  }
  for (const MemberRecord& member : record.members) {
    Place& place = Insert(member.info, /*local=*/false, now);
    Count(place, -1);
    place.attached = false;
    Count(place, +1);
    place.told = member.told;
    place.node_rank = member.node_rank;
    place.first_rank = member.first_rank;
    place.succeeded = member.succeeded;
    place.stopped = member.stopped;
    if (!InRound(place)) continue;
    for (const WorkerFailure& failure : failures_) {  // It will tell them once more.
      const Rank local = failure.rank - place.first_rank;
      if (0 <= local && local < place.info.nproc) ++place.failures_seen;
    }
  }
  for (const WorkerFailure& failure : failures_) failed_ranks_.insert(failure.rank);
  excluded_ = record.excluded;
  total_excluded_ = record.total_excluded;
  if (state_ == State::kRunning && !failures_.empty()) judge_at_ = now;
  for (Ghost& ghost : ghosts_) ghost.heard = now;
  if (state_ == State::kForming) Form(now);
  if (state_ == State::kPreflight) preflight_ends_ = now + rules_.policy.lease.loss_limit;
  ChooseReporter();
}

JobRecord RoundTable::Record() const {
  JobRecord record;
  record.job_id = rules_.job_id;
  record.policy = rules_.policy;
  record.state = state_;
  record.round = round_;
  record.restarts = restarts_;
  for (const auto& [id, place] : places_) {
    if (place.told == 0 || place.left || place.finished) continue;
    record.members.push_back({place.info, place.told, place.node_rank, place.first_rank,
                              place.succeeded, place.stopped});
  }
  record.ghosts = ghosts_;
  record.given_up.assign(given_up_order_.begin(), given_up_order_.end());
  record.held_ranks.assign(held_ranks_.begin(), held_ranks_.end());
  record.round_nodes = round_nodes_;
  record.succeeded = succeeded_;
  record.stopped = stopped_;
  record.world_size = world_size_;
  record.master_addr = master_addr_;
  record.master_port = master_port_;
  record.coordinator_port = coordinator_port_;
  record.worker_store = worker_store_;
  record.cause = cause_;
  record.excluded = excluded_;
  record.total_excluded = total_excluded_;
  record.failures = failures_;
  record.total_failures = total_failures_;
  record.history = history_;
  record.outcome = outcome_;
  return record;
}

// ---- Time.

Instant RoundTable::Observe(Instant now) {
  const std::optional<Instant> due = NextDeadline();
  if (due && now > *due + kSlack) paused_ += now - *due;
  last_now_ = now;
  return now - paused_;
}

std::optional<Instant> RoundTable::NextDeadline() const {
  std::optional<Instant> next;
  const auto at = [&](Instant t) { next = next ? std::min(*next, t) : t; };
  const Duration limit = rules_.policy.lease.loss_limit + rules_.policy.lease.margin;
  if (state_ == State::kForming) {
    if (join_deadline_) at(*join_deadline_);
    if (last_call_ends_) at(*last_call_ends_);
    if (consider_at_) at(*consider_at_);
  }
  if (state_ == State::kPreflight && preflight_ends_) at(*preflight_ends_);
  if (state_ == State::kRunning) {
    // A round that is about to be stopped does not grow: see Settle.
    if (judge_at_) {
      at(*judge_at_);
    } else {
      if (grow_at_) at(*grow_at_);
      if (consider_at_) at(*consider_at_);
    }
  }
  if (!by_silence_.empty()) at(by_silence_.front()->heard + limit);
  for (const Ghost& ghost : ghosts_) at(ghost.heard + limit);
  if (next) next = std::min(*next + paused_, last_now_ + kNap);
  return next;
}

bool RoundTable::Suspect(const Place& place, Instant t) const {
  return !place.local && (!place.attached || t - place.heard >= rules_.policy.lease.lease);
}

void RoundTable::Touch(Place& place, Instant t) {
  place.heard = t;
  if (!place.local) by_silence_.splice(by_silence_.end(), by_silence_, place.silence);
}

void RoundTable::LoseSilent(Instant t) {
  const Duration limit = rules_.policy.lease.loss_limit + rules_.policy.lease.margin;
  std::erase_if(ghosts_, [&](const Ghost& ghost) { return t - ghost.heard >= limit; });
  while (!by_silence_.empty() && t - by_silence_.front()->heard >= limit) {
    Place& place = *by_silence_.front();
    const std::string detail =
        absl::StrCat("it was not heard of for ", Seconds(t - place.heard), " s");
    Remove(
        place, NodeEvent(FailureEvent::Kind::kNodeLost, place.info, detail),
        absl::AbortedError(absl::StrCat("the job gave up node ", Name(place.info), ": ", detail)));
  }
}

void RoundTable::Tick(Instant now) {
  const Instant t = Observe(now);
  LoseSilent(t);
  Settle(t);
  if (state_ == State::kForming && join_deadline_ && t >= *join_deadline_) {
    if (here_ > 0 || round_ > 0) Consider(t);  // For the latest reason.
    if (state_ != State::kForming) return;
    Outcome outcome;
    outcome.exit_code = kExitJoinTimeout;
    outcome.reason =
        absl::StrCat("gave up after ", Seconds(rules_.policy.join_timeout), " s: ", reason_);
    Finish(std::move(outcome));
  }
}

// ---- Joining.

absl::Status RoundTable::CheckInfo(const NodeInfo& info) const {
  if (info.node_id.empty() || info.incarnation == 0) {
    return absl::InvalidArgumentError("a node joins with its node id and incarnation");
  }
  for (const std::string* name :
       {&info.node_id, &info.host, &info.address, &info.route_address, &info.seen_address}) {
    if (name->size() > kMaxNameBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name of ", name->size(), " bytes in a join; at most ", kMaxNameBytes));
    }
  }
  if (info.job_id != rules_.job_id) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job at this endpoint is '", rules_.job_id, "', not '", info.job_id,
                     "': give both the same --rdzv-id, or each its own port"));
  }
  const JobPolicy& said = info.policy;
  if (said.min_nodes < 1 || said.max_nodes < said.min_nodes || said.max_nodes > kMaxNodes) {
    return absl::InvalidArgumentError(absl::StrCat("node ", Name(info), " says --nnodes ",
                                                   Range(said.min_nodes, said.max_nodes),
                                                   ": it takes N or MIN:MAX of 1 to ", kMaxNodes));
  }
  if (info.nproc < 1 || info.nproc > kMaxNproc) {
    return absl::InvalidArgumentError(absl::StrCat("node ", Name(info), " says --nproc-per-node ",
                                                   info.nproc, ": it takes 1 to ", kMaxNproc));
  }
  const int places = said.max_nodes + std::max(said.spares, rules_.policy.spares);
  if (info.node_rank && (*info.node_rank < 0 || *info.node_rank >= places)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "node rank ", *info.node_rank, " of node ", Name(info), " is not in 0 to ", places - 1,
        " (--nnodes ", Range(said.min_nodes, said.max_nodes),
        places > said.max_nodes ? absl::StrCat(" --spares ", places - said.max_nodes) : "", ")"));
  }
  return absl::OkStatus();
}

absl::Status RoundTable::CheckFits(const NodeInfo& info, const NodeUpdate& update) const {
  if (state_ == State::kOver) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", rules_.job_id, " is over",
                     outcome_.reason.empty() ? "" : absl::StrCat(": ", outcome_.reason)));
  }
  const bool fresh = update.phase == NodePhase::kReady || update.phase == NodePhase::kLeft;
  if (update.round != 0 || !fresh) {
    return absl::AbortedError(absl::StrCat("node ", Name(info), " comes from round ", update.round,
                                           ", in which this job does not know it"));
  }
  Place newcomer;
  newcomer.info = info;
  HLAUNCH_RETURN_IF_ERROR(Contradiction(newcomer, update));
  const JobPolicy& policy = rules_.policy;
  if (info.policy.min_nodes != policy.min_nodes || info.policy.max_nodes != policy.max_nodes) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", rules_.job_id, " has --nnodes ", Range(policy.min_nodes, policy.max_nodes),
        rules_.set_by.empty() ? "" : absl::StrCat(", set by ", rules_.set_by), ", and node ",
        Name(info), " says ", Range(info.policy.min_nodes, info.policy.max_nodes)));
  }
  if (here_ >= kMaxNodes) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", rules_.job_id, " has ", here_, " nodes; more cannot join"));
  }
  return absl::OkStatus();
}

// Whether the holder of a place still lives, though nothing says that it does not: silence after
// a question is an answer long before the lease is over.
absl::Status RoundTable::Ask(Place& holder, const NodeInfo& claimant, Instant t) {
  const bool asked = holder.claimant == claimant.incarnation && t - holder.asked < kAskAgain;
  if (holder.local || (asked && holder.heard > holder.asked)) {
    return absl::AlreadyExistsError(absl::StrCat(
        Claim(holder.info, claimant), SameRank(holder.info, claimant)
                                          ? ": stop that one, or give this node another --node-rank"
                                          : ": stop that one first"));
  }
  if (asked && t - holder.asked >= kAsk) return absl::OkStatus();
  if (!asked) {
    holder.claimant = claimant.incarnation;
    holder.asked = t;
    asked_.push_back(holder.info.node_id);
  }
  return absl::UnavailableError(
      absl::StrCat(Claim(holder.info, claimant), ", which is being asked"));
}

// Makes room for a node whose id or rank is held by another incarnation.
absl::Status RoundTable::Vacate(const NodeInfo& info, Instant t) {
  const auto by_id = places_.find(info.node_id);
  Place* holder = by_id != places_.end() ? &by_id->second : nullptr;
  if (holder == nullptr && info.node_rank) {
    const auto by_rank = by_rank_.find(*info.node_rank);
    if (by_rank != by_rank_.end()) holder = by_rank->second;
  }
  if (holder == nullptr) return absl::OkStatus();
  if (!holder->left && !Suspect(*holder, t)) HLAUNCH_RETURN_IF_ERROR(Ask(*holder, info, t));
  const bool same_host = holder->info.host == info.host && holder->info.address == info.address;
  // Of two on one host the later one lives; the other's word may be that of a dead process, which
  // was long on its way. If it lives, it comes again until this is settled.
  if (same_host && !holder->left && info.started_ms < holder->info.started_ms) {
    return absl::UnavailableError(
        absl::StrCat(Claim(holder->info, info), ", which started later on this host"));
  }
  if (InRound(*holder) && !holder->stopped && !same_host) {
    ghosts_.push_back({holder->info.node_id, holder->info.incarnation, holder->info.host,
                       holder->info.pid, holder->heard});
    ++durable_version_;
  }
  const std::string detail = absl::StrCat("its place was taken by ", Name(info));
  Remove(*holder, NodeEvent(FailureEvent::Kind::kNodeLost, holder->info, detail),
         absl::AbortedError(detail));
  if (info.node_rank && by_rank_.contains(*info.node_rank)) return Vacate(info, t);
  return absl::OkStatus();
}

RoundTable::Place& RoundTable::Insert(const NodeInfo& info, bool local, Instant t) {
  if (here_ == 0 && round_ == 0) {
    join_deadline_ = t + rules_.policy.join_timeout;
    forming_since_ = t;
  }
  Place& place = places_[info.node_id];
  place.info = info;
  place.local = local;
  place.attached = true;
  place.heard = place.since = t;
  if (!local) place.silence = by_silence_.insert(by_silence_.end(), &place);
  if (info.node_rank) by_rank_[*info.node_rank] = &place;
  Count(place, +1);
  return place;
}

absl::Status RoundTable::Join(const NodeInfo& info, const NodeUpdate& update, bool local,
                              Instant now) {
  const Instant t = Observe(now);
  HLAUNCH_RETURN_IF_ERROR(CheckInfo(info));
  if (const auto it = given_up_.find(info.incarnation); it != given_up_.end()) {
    return absl::AbortedError(it->second);
  }
  Place* place = Find(info.node_id, info.incarnation);
  if (place == nullptr) {
    HLAUNCH_RETURN_IF_ERROR(CheckFits(info, update));
    HLAUNCH_RETURN_IF_ERROR(Vacate(info, t));
    HLAUNCH_RETURN_IF_ERROR(CheckFits(info, update));  // The one it replaced may have been the end.
    place = &Insert(info, local, t);
  } else {
    HLAUNCH_RETURN_IF_ERROR(Contradiction(*place, update));
    Count(*place, -1);
    place->attached = true;
    Count(*place, +1);
    Touch(*place, t);
  }
  HLAUNCH_CHECK(Apply(*place, update, t).ok());
  Change(*place);
  Settle(t);
  return absl::OkStatus();
}

RoundTable::Place* RoundTable::Find(absl::string_view node_id, Incarnation incarnation) {
  const auto it = places_.find(node_id);
  if (it == places_.end() || it->second.info.incarnation != incarnation) return nullptr;
  return &it->second;
}

bool RoundTable::Holds(absl::string_view node_id, Incarnation incarnation) const {
  const auto it = places_.find(node_id);
  return it != places_.end() && it->second.info.incarnation == incarnation;
}

void RoundTable::Count(const Place& place, int sign) {
  if (place.left) return;
  here_ += sign;
  if (place.attached) attached_ += sign;
  if (place.finished) finished_ += sign;
}

// ---- What nodes say.

absl::Status RoundTable::Update(absl::string_view node_id, Incarnation incarnation,
                                const NodeUpdate& update, Instant now) {
  const Instant t = Observe(now);
  Place* place = Find(node_id, incarnation);
  if (place == nullptr) {
    const auto it = given_up_.find(incarnation);
    return absl::AbortedError(it != given_up_.end() ? it->second
                                                    : "this incarnation holds no place in the job");
  }
  Touch(*place, t);
  absl::Status status = Apply(*place, update, t);
  Settle(t);
  return status;
}

void RoundTable::Heard(absl::string_view node_id, Incarnation incarnation, Instant now) {
  const Instant t = Observe(now);
  Place* place = Find(node_id, incarnation);
  if (place == nullptr) return;
  const bool was_suspect = Suspect(*place, t);
  Touch(*place, t);
  if (was_suspect) Settle(t);
}

void RoundTable::Disconnected(absl::string_view node_id, Incarnation incarnation, Instant now) {
  const Instant t = Observe(now);
  Place* place = Find(node_id, incarnation);
  if (place == nullptr || !place->attached) return;
  Count(*place, -1);
  place->attached = false;
  Count(*place, +1);
  Settle(t);
}

absl::Status RoundTable::NodeDied(absl::string_view node_id, Incarnation incarnation,
                                  absl::string_view reason, Instant now) {
  const Instant t = Observe(now);
  Place* place = Find(node_id, incarnation);
  if (place != nullptr) {
    const std::string detail(reason.substr(0, kMaxTextBytes));
    Remove(*place, NodeEvent(FailureEvent::Kind::kNodeLost, place->info, detail),
           absl::AbortedError(
               absl::StrCat("node ", Name(place->info), " was reported dead: ", detail)));
  } else if (std::erase_if(ghosts_, [&](const Ghost& ghost) {
               return ghost.incarnation == incarnation && ghost.node_id == node_id;
             }) == 0) {
    return absl::AbortedError("this incarnation holds no place in the job");
  }
  Settle(t);
  return absl::OkStatus();
}

// Only what no order of messages can bring about is a contradiction.
absl::Status RoundTable::Contradiction(const Place& place, const NodeUpdate& update) const {
  const auto nonsense = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("node ", Name(place.info), " says it ", what));
  };
  if (update.round < 0 || update.round > place.told) {
    return nonsense(absl::StrCat("is in round ", update.round, " and was told ", place.told));
  }
  if (update.round == 0 && Order(update.phase) <= Order(NodePhase::kFailed)) {
    return nonsense("runs workers and was told no round");
  }
  if (update.phase == NodePhase::kFailed && update.failures.empty()) {
    return nonsense("has failed and names no failure");
  }
  if (update.phase == NodePhase::kReady && update.store_port == 0) {
    return nonsense("is ready and names no port");
  }
  if (update.phase == NodePhase::kFinished && state_ != State::kOver && !place.left) {
    return nonsense("has finished and was not told to");
  }
  const bool round_is_on = state_ == State::kPreflight || state_ == State::kRunning;
  if (update.phase == NodePhase::kReady && round_is_on && InRound(place) &&
      update.round == round_) {
    return nonsense(absl::StrCat("is ready and was not told to stop round ", round_));
  }
  const bool runs = Order(NodePhase::kRunning) <= Order(update.phase) &&
                    Order(update.phase) <= Order(NodePhase::kFailed);
  if (runs && state_ == State::kPreflight && InRound(place) && update.round == round_) {
    return nonsense(absl::StrCat("runs round ", round_, " and was told to prepare it"));
  }
  return absl::OkStatus();
}

absl::Status RoundTable::Apply(Place& place, const NodeUpdate& update, Instant t) {
  HLAUNCH_RETURN_IF_ERROR(Contradiction(place, update));
  // A later state may have overtaken the one that told them first.
  AbsorbFailures(place, update, t);
  const auto is = std::pair(update.round, Order(update.phase));
  const auto was = std::pair(place.seen, Order(place.phase));
  const bool last_word = place.left || place.finished;  // Only kFinished follows.
  if (last_word ? is.second <= was.second : is < was) return absl::OkStatus();
  if (is == was && update.phase != place.phase) return absl::OkStatus();
  Enter(place, update);
  return absl::OkStatus();
}

void RoundTable::AbsorbFailures(Place& place, const NodeUpdate& update, Instant t) {
  if (!InRound(place) || update.round != round_) return;
  for (size_t i = place.failures_seen; i < std::min(update.failures.size(), kMaxFailures); ++i) {
    ++place.failures_seen;
    ++total_failures_;
    failed_ranks_.insert(update.failures[i].rank);
    WorkerFailure failure = update.failures[i];
    if (failures_.size() >= kMaxFailures) {
      if (state_ != State::kRunning || KindOf(failure) != FailureKind::kOriginal) continue;
      failures_.pop_back();  // The cause may be the last to be heard of.
      judged_ = 0;
    }
    for (std::string* text :
         {&failure.message, &failure.traceback, &failure.evidence, &failure.log_file}) {
      if (text->size() > kMaxTextBytes) text->resize(kMaxTextBytes);
    }
    if (failure.log_tail.size() > kMaxTailBytes) failure.log_tail.resize(kMaxTailBytes);
    failures_.push_back(std::move(failure));
    if (state_ == State::kOver && outcome_.exit_code != 0) {
      outcome_.failures = failures_;
      ChangeAll();  // At most kMaxFailures times.
    }
  }
  if (state_ == State::kRunning) JudgeFailures(t);
  if (state_ == State::kOver && outcome_.exit_code != 0) {
    outcome_.total_failures = total_failures_;
  }
}

void RoundTable::Enter(Place& place, const NodeUpdate& update) {
  place.seen = update.round;
  place.phase = update.phase;
  switch (update.phase) {
    case NodePhase::kPrepared:
      if (InRound(place) && place.seen == round_ && !place.prepared) {
        place.prepared = true;
        place.unfit = update.unfit.substr(0, kMaxTextBytes);
        place.health = update.health;
        ++prepared_;
      }
      return;
    case NodePhase::kRunning:
    case NodePhase::kFailed:
      return;
    case NodePhase::kSucceeded:
      if (InRound(place) && !place.succeeded) {
        place.succeeded = true;
        ++succeeded_;
      }
      return;
    case NodePhase::kReady:
      place.store_port = update.store_port;
      place.coordinator_port = update.coordinator_port;
      place.worker_store = update.worker_store;
      if (InRound(place) && place.seen == round_) MarkStopped(place);
      return;
    case NodePhase::kLeft:
      place.left_exit_code = update.left_exit_code;
      place.left_reason = update.left_reason.substr(0, kMaxTextBytes);
      if (place.told > 0) ++durable_version_;
      Depart(place, NodeEvent(FailureEvent::Kind::kNodeLeft, place.info, place.left_reason,
                              place.left_exit_code));
      Count(place, -1);
      place.left = true;
      Change(place);
      return;
    case NodePhase::kFinished:
      MarkStopped(place);
      Count(place, -1);
      place.finished = true;
      Count(place, +1);
      return;
  }
}

// ---- Going.

void RoundTable::MarkStopped(Place& place) {
  if (!InRound(place) || place.stopped) return;
  place.stopped = true;
  ++stopped_;
  if (state_ == State::kStopping) Change(place);
}

// What it means for the job that this node is lost or has left.
void RoundTable::Depart(Place& place, const FailureEvent& event) {
  const bool left = event.kind == FailureEvent::Kind::kNodeLeft;
  const bool done = place.succeeded && !left;  // Its part of the round is done.
  if (left && place.local && state_ != State::kOver) {
    const JobVerdict verdict = AfterFailure({}, event);  // The rendezvous leaves with it.
    Outcome outcome;
    outcome.exit_code = verdict.exit_code;
    outcome.reason = verdict.reason;
    Finish(std::move(outcome));
  } else if (state_ == State::kPreflight && InRound(place)) {
    StopRound(DescribeEvent(event));  // Nothing has run: nothing is charged.
  } else if (state_ == State::kRunning && InRound(place) && !done) {
    Decide(event);
  }
  MarkStopped(place);
}

void RoundTable::Remove(Place& place, const FailureEvent& event, absl::Status status) {
  if (!place.left) Depart(place, event);
  if (place.told > 0 && !place.finished) ++durable_version_;
  const NodeInfo& info = place.info;
  GiveUp(info.incarnation, status.message());
  ended_.push_back({info.node_id, info.incarnation, std::move(status)});
  Count(place, -1);
  if (!place.local) by_silence_.erase(place.silence);
  if (info.node_rank) {
    const auto it = by_rank_.find(*info.node_rank);
    if (it != by_rank_.end() && it->second == &place) by_rank_.erase(it);
  }
  places_.erase(places_.find(info.node_id));
}

void RoundTable::GiveUp(Incarnation incarnation, absl::string_view why) {
  if (!given_up_.emplace(incarnation, std::string(why)).second) return;
  given_up_order_.push_back(incarnation);
  const auto two_for_each = 2 * static_cast<size_t>(rules_.policy.max_nodes);
  if (given_up_order_.size() <= std::max(kRemembered, two_for_each)) return;
  given_up_.erase(given_up_order_.front());
  given_up_order_.pop_front();
}

// Decides what follows from the failures so far, once it is clear which was the first.
void RoundTable::JudgeFailures(Instant t) {
  if (failures_.empty()) return;
  const bool all_failed = static_cast<int>(failed_ranks_.size()) >= world_size_;
  const bool due = all_failed || (judge_at_ && t >= *judge_at_);
  if (failures_.size() == judged_ && !due) return;
  judged_ = failures_.size();
  const Cause cause = FirstCause(failures_);
  if (!judge_at_) judge_at_ = t + CauseWindow(cause.kind);
  if (cause.kind != FailureKind::kOriginal && !due && t < *judge_at_) return;
  std::rotate(failures_.begin(), failures_.begin() + static_cast<ptrdiff_t>(cause.index),
              failures_.begin() + static_cast<ptrdiff_t>(cause.index) + 1);
  FailureEvent event;
  event.worker = failures_.front();
  if (cause.kind != FailureKind::kOriginal) event.awaited = NotFailed();
  Decide(event, cause.reason);
}

// The workers of the round that did not fail, if they are few and all others told.
std::vector<WorkerPlace> RoundTable::NotFailed() const {
  std::vector<WorkerPlace> found;
  for (const auto& [id, place] : places_) {
    if (!InRound(place) || place.failures_seen >= kMaxFailures) continue;
    for (int local_rank = 0; local_rank < place.info.nproc; ++local_rank) {
      const Rank rank = place.first_rank + local_rank;
      if (failed_ranks_.contains(rank)) continue;
      if (found.size() == kMaxAwaited) return {};
      found.push_back({rank, local_rank, place.info.host});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const WorkerPlace& a, const WorkerPlace& b) { return a.rank < b.rank; });
  return found;
}

void RoundTable::Decide(const FailureEvent& event, const std::string& cause_reason) {
  const JobVerdict verdict = AfterFailure({rules_.policy.max_restarts, restarts_}, event);
  const bool worker = event.kind == FailureEvent::Kind::kWorkerFailed;
  if (verdict.restart) {
    ++restarts_;
    if (history_.size() == kMaxHistory) history_.erase(history_.begin());
    history_.push_back({round_, DescribeEvent(event), {}});
    if (worker) {
      history_.back().failure = event.worker;
      Shorten(*history_.back().failure);
    }
    StopRound(verdict.reason);
    return;
  }
  Outcome outcome;
  outcome.exit_code = verdict.exit_code;
  outcome.reason = verdict.reason;
  outcome.worker_failed = worker;
  outcome.cause_reason = cause_reason;
  outcome.awaited = event.awaited;
  Finish(std::move(outcome));
}

void RoundTable::StopRound(std::string cause) {
  state_ = State::kStopping;
  reason_ = cause_ = std::move(cause);
  grow_at_.reset();
  judge_at_.reset();
  ++durable_version_;
  ChangeAll();
}

void RoundTable::Finish(Outcome outcome) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  ++durable_version_;
  outcome_ = std::move(outcome);
  if (outcome_.exit_code != 0 && outcome_.failures.empty()) {
    outcome_.failures = failures_;
    outcome_.total_failures = total_failures_;
  }
  outcome_.restart_count = restarts_;
  outcome_.history = history_;
  outcome_.excluded = excluded_;
  judge_at_.reset();
  ghosts_.clear();
  ChooseReporter();
  ChangeAll();
}

// The local node, whose terminal is likely the person's; else the first that is here.
void RoundTable::ChooseReporter() {
  const Place* chosen = nullptr;
  const auto worth = [](const Place& place) {
    return std::tuple(place.local, place.attached && !place.left, place.told, -place.node_rank);
  };
  for (const auto& [id, place] : places_) {
    if (chosen == nullptr || worth(place) > worth(*chosen)) chosen = &place;
  }
  reporter_ = chosen == nullptr ? "" : chosen->info.node_id;
}

void RoundTable::End(const Outcome& outcome, Instant now) {
  Observe(now);
  Finish(outcome);
}

// ---- Rounds.

void RoundTable::Settle(Instant t) {
  if (state_ == State::kPreflight) JudgePreflight(t);
  if (state_ == State::kRunning && succeeded_ == round_nodes_) Finish({});
  if (judge_at_) JudgeFailures(t);
  if (state_ == State::kRunning && !judge_at_) ConsiderGrowth(t);
  if (state_ == State::kStopping && stopped_ == round_nodes_) Form(t);
  if (state_ == State::kForming) Consider(t);
}

void RoundTable::Form(Instant t) {
  state_ = State::kForming;
  forming_since_ = t;
  join_deadline_ = t + rules_.policy.join_timeout;
  last_call_ends_.reset();
  considered_ = t - LookPause();  // The first look is at once.
}

std::vector<Candidate> RoundTable::Candidates(std::vector<Place*>* places, Instant t) {
  std::vector<Candidate> candidates;
  for (auto& [id, place] : places_) {
    if (place.left) continue;
    Candidate candidate{id, place.info.host,    place.info.node_rank,
                        {}, !Suspect(place, t), std::max(place.since, forming_since_)};
    const auto held = held_ranks_.find(id);
    if (held != held_ranks_.end()) candidate.held_rank = held->second;
    candidates.push_back(candidate);
    places->push_back(&place);
  }
  return candidates;
}

Duration RoundTable::LookPause() const {
  return std::max<Duration>(kLook, kLookPerNode * places_.size());
}

// Starts a round if it may, else keeps `reason_` fresh. A large job owes itself the full look
// and takes it later, unless this very message may have completed the round.
void RoundTable::Consider(Instant t) {
  if (here_ == 0 && round_ == 0) {
    join_deadline_.reset();
    last_call_ends_.reset();
    return;
  }
  const JobPolicy& policy = rules_.policy;
  const bool may_start = attached_ >= policy.max_nodes || attached_ == policy.min_nodes ||
                         attached_ == round_nodes_ || (last_call_ends_ && t >= *last_call_ends_);
  if (places_.size() > kSmallJob && !may_start && t < considered_ + LookPause()) {
    consider_at_ = considered_ + LookPause();
    return;
  }
  considered_ = t;
  consider_at_.reset();
  std::vector<Place*> places;
  const QuorumVerdict verdict =
      DecideQuorum(Candidates(&places, t),
                   {policy.min_nodes, policy.max_nodes, policy.last_call, round_nodes_}, t);
  last_call_ends_ = verdict.last_call_ends;
  std::string reason = verdict.reason;
  if (verdict.order && ghosts_.empty()) {
    std::vector<Place*> order;
    for (size_t index : *verdict.order) order.push_back(places[index]);
    Start(order, t);
    return;
  }
  if (verdict.order) {
    reason = absl::StrCat(
        "waiting until ", ghosts_.front().host, " (pid ", ghosts_.front().pid,
        ") must have stopped its workers: it was not heard of when its place was taken");
  }
  if (!cause_.empty()) absl::StrAppend(&reason, " (", cause_, ")");
  if (reason == reason_) return;
  reason_ = std::move(reason);
  ChangeAll();
}

void RoundTable::Start(const std::vector<Place*>& order, Instant t) {
  state_ = rules_.policy.preflight != Preflight::kOff && order.size() > 1 ? State::kPreflight
                                                                          : State::kRunning;
  preflight_ends_ = t + PreflightTime();
  notice_.clear();
  grow_at_.reset();
  ++round_;
  ++durable_version_;
  round_nodes_ = static_cast<int>(order.size());
  prepared_ = succeeded_ = stopped_ = world_size_ = total_failures_ = 0;
  failures_.clear();
  failed_ranks_.clear();
  judged_ = 0;
  judge_at_.reset();
  held_ranks_.clear();
  join_deadline_.reset();
  last_call_ends_.reset();
  reason_.clear();
  cause_.clear();
  std::vector<const NodeInfo*> members;
  for (Place* place : order) {
    place->told = round_;
    place->node_rank = static_cast<int>(members.size());
    place->first_rank = world_size_;
    place->failures_seen = 0;
    place->prepared = place->succeeded = place->stopped = false;
    world_size_ += place->info.nproc;
    held_ranks_[place->info.node_id] = place->node_rank;
    members.push_back(&place->info);
  }
  master_addr_ = MasterAddress(members);
  master_port_ = order[0]->store_port;
  coordinator_port_ = order[0]->coordinator_port;
  worker_store_ = order[0]->worker_store;
  ChangeAll();
}

// In rank order. All are here as long as the round is neither stopping nor partly done.
std::vector<RoundTable::Place*> RoundTable::Members() {
  std::vector<Place*> members;
  for (auto& [id, place] : places_) {
    if (InRound(place)) members.push_back(&place);
  }
  std::sort(members.begin(), members.end(),
            [](const Place* a, const Place* b) { return a->node_rank < b->node_rank; });
  return members;
}

Duration RoundTable::PreflightTime() const {
  return rules_.policy.preflight == Preflight::kFull ? kFullPreflightTime : kPreflightTime;
}

void RoundTable::JudgePreflight(Instant t) {
  if (prepared_ < round_nodes_ && t < *preflight_ends_) return;
  const std::vector<Place*> members = Members();
  std::vector<PreflightReport> reports;
  for (const Place* place : members) {
    reports.push_back({place->info.host, place->prepared, place->unfit, &place->health,
                       place->suspected, place->local});
  }
  PreflightRule rule;
  rule.min_nodes = rules_.policy.min_nodes;
  rule.action = rules_.policy.preflight_action;
  rule.may_exclude =
      std::max(1, round_nodes_ * rules_.policy.preflight_share / 100) - total_excluded_;
  rule.measured_again = measured_again_;
  for (const auto& [id, place] : places_) {
    if (!InRound(place) && !place.left && !Suspect(place, t)) ++rule.standing_by;
  }
  const PreflightVerdict verdict = DecidePreflight(reports, rule);
  const std::string reason = absl::StrCat("round ", round_, " cannot start: ", verdict.reason);
  const bool local = std::any_of(verdict.nodes.begin(), verdict.nodes.end(),
                                 [&](size_t i) { return members[i]->local; });
  switch (verdict.kind) {
    case PreflightVerdict::Kind::kPass:
      state_ = State::kRunning;
      notice_ = verdict.reason;
      measured_again_ = false;
      ++durable_version_;
      return ChangeAll();
    case PreflightVerdict::Kind::kAgain:
      return MeasureAgain(verdict, members);
    case PreflightVerdict::Kind::kExclude:
      if (!local) return Exclude(verdict, members, reason);
      break;
    case PreflightVerdict::Kind::kFail:
      break;
  }
  Outcome outcome;
  outcome.exit_code = kExitPreflight;
  outcome.reason = reason;
  Finish(std::move(outcome));
}

// One measurement may have had bad luck: nobody is excluded for it.
void RoundTable::MeasureAgain(const PreflightVerdict& verdict, const std::vector<Place*>& members) {
  measured_again_ = true;
  for (Place* member : members) member->suspected = false;
  for (const size_t index : verdict.nodes) members[index]->suspected = true;
  StopRound(absl::StrCat("round ", round_, " is measured once more: ", verdict.reason));
}

void RoundTable::Exclude(const PreflightVerdict& verdict, const std::vector<Place*>& members,
                         const std::string& reason) {
  measured_again_ = false;
  StopRound(reason);
  if (verdict.bad) total_excluded_ += static_cast<int>(verdict.nodes.size());
  if (excluded_.size() == kMaxHistory) excluded_.erase(excluded_.begin());
  excluded_.push_back(verdict.reason);
  for (const size_t index : verdict.nodes) {
    if (unfit_.size() < kMaxNodes) unfit_.insert(members[index]->info.node_id);
    Remove(*members[index], NodeEvent(FailureEvent::Kind::kNodeLost, members[index]->info, reason),
           absl::FailedPreconditionError(absl::StrCat("this node was excluded: ", verdict.reason)));
  }
}

void RoundTable::ConsiderGrowth(Instant t) {
  // Until nodes have succeeded all members are here.
  if (succeeded_ > 0 || here_ <= round_nodes_ || round_nodes_ >= rules_.policy.max_nodes) {
    grow_at_.reset();
    consider_at_.reset();
    return;
  }
  const bool due = grow_at_ && t >= *grow_at_;
  if (places_.size() > kSmallJob && !due && t < considered_ + LookPause()) {
    consider_at_ = considered_ + LookPause();
    return;
  }
  considered_ = t;
  consider_at_.reset();
  std::vector<Candidate> waiting;
  for (const auto& [id, place] : places_) {
    if (InRound(place) || place.left) continue;
    // Whoever was found unfit may fill a round that begins anyway, and stops none.
    const bool counts = !Suspect(place, t) && !unfit_.contains(id);
    waiting.push_back({id, place.info.host, {}, {}, counts, place.since});
  }
  const JobPolicy& policy = rules_.policy;
  const GrowthVerdict verdict = DecideGrowth(
      waiting, {policy.min_nodes, policy.max_nodes, policy.last_call, round_nodes_}, t);
  if (verdict.at && t >= *verdict.at) return StopRound(verdict.reason);
  if (grow_at_ == verdict.at && growth_ == verdict.reason) return;
  grow_at_ = verdict.at;
  growth_ = verdict.reason;
  for (auto& [id, place] : places_) {
    if (!InRound(place)) Change(place);
  }
}

// ---- What nodes are told.

void RoundTable::Change(Place& place) {
  if (place.changed) return;
  place.changed = true;
  changed_.push_back(place.info.node_id);
}

void RoundTable::ChangeAll() {
  for (auto& [id, place] : places_) {
    if (!place.finished) Change(place);
  }
}

std::vector<std::string> RoundTable::TakeChanged() {
  for (const std::string& id : changed_) {
    if (const auto it = places_.find(id); it != places_.end()) it->second.changed = false;
  }
  return std::exchange(changed_, {});
}

std::vector<RoundTable::Ended> RoundTable::TakeEnded() { return std::exchange(ended_, {}); }

std::vector<std::string> RoundTable::TakeAsked() { return std::exchange(asked_, {}); }

Assignment RoundTable::AssignmentOf(int node_rank, Rank first_rank) const {
  Assignment assignment = {round_,
                           restarts_,
                           rules_.policy.max_restarts,
                           node_rank,
                           round_nodes_,
                           first_rank,
                           world_size_,
                           master_addr_,
                           master_port_,
                           coordinator_port_,
                           worker_store_,
                           rules_.policy.preflight,
                           {},
                           {}};
  if (node_rank == 0) {
    assignment.notice = notice_;
    std::vector<const NodeInfo*> members;
    for (const auto& [id, place] : places_) {
      if (InRound(place)) members.push_back(&place.info);
    }
    assignment.members = MemberAddresses(members);
  }
  return assignment;
}

Assignment RoundTable::FirstAssignment() const { return AssignmentOf(0, 0); }

Directive RoundTable::DirectiveFor(absl::string_view node_id) const {
  Directive directive;
  const auto it = places_.find(node_id);
  if (it == places_.end()) return directive;
  const Place& place = it->second;
  if (state_ == State::kOver) {
    directive.kind = Directive::Kind::kFinish;
    directive.outcome = outcome_;
    directive.outcome.report = place.info.node_id == reporter_;
    if (!directive.outcome.report) {
      directive.outcome.history.clear();
      if (!directive.outcome.failures.empty()) {
        directive.outcome.failures.resize(1);
        Shorten(directive.outcome.failures[0]);
      }
    }
  } else if (place.left) {
    directive.kind = Directive::Kind::kFinish;
    directive.outcome.exit_code = place.left_exit_code;
    directive.outcome.reason = absl::StrCat("this node left: ", place.left_reason);
    directive.outcome.restart_count = restarts_;
  } else if ((state_ == State::kPreflight || state_ == State::kRunning) && InRound(place)) {
    directive.kind = state_ == State::kRunning ? Directive::Kind::kRun : Directive::Kind::kPrepare;
    directive.round = round_;
    directive.assignment = AssignmentOf(place.node_rank, place.first_rank);
  } else if (state_ == State::kStopping && InRound(place) && !place.stopped) {
    directive.kind = Directive::Kind::kStop;
    directive.round = round_;
    directive.reason = reason_;
  } else if (state_ == State::kPreflight || state_ == State::kRunning) {
    directive.reason = StandingBy(place);
  } else {
    directive.reason = state_ == State::kStopping ? StoppingReason() : reason_;
  }
  return directive;
}

// What a node outside the round is told.
std::string RoundTable::StandingBy(const Place& place) const {
  const std::string runs = absl::StrCat("round ", round_, " runs with ", Nodes(round_nodes_));
  if (round_nodes_ < rules_.policy.max_nodes) {
    return absl::StrCat(
        runs, succeeded_ > 0 ? ", of which some are done" : "; this node waits for the next");
  }
  const std::string spare = absl::StrCat("this node stands by as a spare: ", runs);
  if (place.told > 0 || here_ - round_nodes_ <= rules_.policy.spares) return spare;
  return absl::StrCat(spare,
                      ", as --nnodes says; if this is another job, give it its own "
                      "--rdzv-id and port");
}

std::string RoundTable::PreflightReason() const {
  std::vector<std::string> awaited;
  for (const auto& [id, place] : places_) {
    if (InRound(place) && !place.prepared) awaited.push_back(place.info.host);
  }
  std::sort(awaited.begin(), awaited.end(), NaturalLess);
  return absl::StrCat("round ", round_, " with ", Nodes(round_nodes_), " is being checked",
                      awaited.empty() ? "" : "; waiting for ", NameSome(awaited));
}

std::string RoundTable::StoppingReason() const {
  return absl::StrCat("waiting for ", round_nodes_ - stopped_, " of ", Nodes(round_nodes_),
                      " to stop: ", reason_);
}

std::vector<std::string> RoundTable::Unfinished() const {
  std::vector<std::string> hosts;
  for (const auto& [id, place] : places_) {
    if (!place.finished && !place.left) hosts.push_back(place.info.host);
  }
  return hosts;
}

std::string RoundTable::Explain(Instant now) const {
  std::vector<std::string> silent, running;
  for (const auto& [id, place] : places_) {
    if (place.left) continue;
    if (Suspect(place, now - paused_)) {
      silent.push_back(absl::StrCat(place.info.host, " (silent for ",
                                    Seconds(now - paused_ - place.heard), " s)"));
    }
    if (InRound(place) && !place.stopped) running.push_back(place.info.host);
  }
  const std::string suspects =
      silent.empty() ? "" : absl::StrCat("; not heard of: ", NameSome(silent));
  switch (state_) {
    case State::kForming:
      return here_ == 0 && round_ == 0 ? "no node has joined yet" : reason_;
    case State::kPreflight:
      return absl::StrCat(PreflightReason(), suspects);
    case State::kRunning:
      return absl::StrCat("round ", round_, " runs with ", Nodes(round_nodes_), " and ",
                          world_size_, world_size_ == 1 ? " worker" : " workers",
                          grow_at_ ? absl::StrCat("; ", growth_, " with the next round") : "",
                          suspects);
    case State::kStopping:
      return absl::StrCat("round ", round_, " stops: ", reason_,
                          "; still running: ", NameSome(running), suspects);
    case State::kOver:
      return absl::StrCat(
          "the job is over", outcome_.reason.empty() ? "" : absl::StrCat(": ", outcome_.reason),
          AllFinished() ? "" : absl::StrCat("; not yet finished: ", NameSome(Unfinished())));
  }
  return "";
}

std::string RoundTable::StateOf(const Place& place, Instant t) const {
  if (place.left) return absl::StrCat("left: ", place.left_reason);
  if (Suspect(place, t)) {
    return absl::StrCat(place.attached ? "silent" : "not connected", " for ",
                        Seconds(t - place.heard), " s");
  }
  if (place.finished) return "finished";
  if (!InRound(place)) {
    const bool full = state_ != State::kForming && round_nodes_ >= rules_.policy.max_nodes;
    return full ? "spare" : "ready";
  }
  if (state_ == State::kPreflight) {
    return !place.prepared ? "checking" : place.unfit.empty() ? "fit" : place.unfit;
  }
  if (place.stopped) return "ready";
  if (state_ == State::kStopping) return "stopping";
  return place.succeeded ? "succeeded" : "running";
}

JobStatus RoundTable::Status(Instant now) const {
  const Instant t = now - paused_;
  JobStatus status;
  status.job_id = rules_.job_id;
  status.state = state_;
  status.explanation = Explain(now);
  status.round = round_;
  status.min_nodes = rules_.policy.min_nodes;
  status.max_nodes = rules_.policy.max_nodes;
  status.restarts = restarts_;
  status.max_restarts = rules_.policy.max_restarts;
  status.exit_code = outcome_.exit_code;
  status.total_nodes = here_;
  std::vector<std::pair<bool, const Place*>> order;
  for (const auto& [id, place] : places_) order.emplace_back(!Suspect(place, t), &place);
  const auto key = [&](const std::pair<bool, const Place*>& entry) {
    return std::pair(entry.first, InRound(*entry.second) ? entry.second->node_rank : kMaxNodes);
  };
  const size_t shown = std::min(order.size(), kMaxNodesShown);
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](const auto& a, const auto& b) {
                      if (key(a) != key(b)) return key(a) < key(b);
                      return NaturalLess(a.second->info.host, b.second->info.host);
                    });
  for (size_t i = 0; i < shown; ++i) {
    const Place& place = *order[i].second;
    status.nodes.push_back({place.info.host, place.info.address, place.info.pid,
                            InRound(place) ? place.node_rank : -1, place.info.nproc,
                            StateOf(place, t)});
  }
  return status;
}

}  // namespace hlaunch
