// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// At least this many given-up incarnations are remembered; in a large job, two for each node.
constexpr size_t kRemembered = 1024;
// The time for a live holder of a seat to answer, and how long its answer holds.
constexpr Duration kAsk = std::chrono::seconds(1);
constexpr Duration kAskAgain = std::chrono::seconds(10);

// Returns whether two nodes want the same explicit rank.
bool SameRank(const NodeInfo& a, const NodeInfo& b) {
  return a.node_rank && a.node_rank == b.node_rank;
}

bool IsReachable(const Seat& seat) {
  return !seat.left && !seat.finished && (seat.attached || seat.local);
}

// Returns what `claimant` wants from `holder`, as the start of a sentence.
std::string ClaimText(const NodeInfo& holder, const NodeInfo& claimant) {
  return absl::StrCat(SameRank(holder, claimant) ? absl::StrCat("node rank ", *claimant.node_rank)
                                                 : "the place of this node",
                      " in ", JobName(holder.job_id), " is held by ", NodeName(holder));
}

}  // namespace

std::string NodeName(const NodeInfo& info) {
  return absl::StrCat(info.host, " (pid ", info.pid, ")");
}

std::string JobName(absl::string_view job_id) {
  return job_id == "none" ? "the job" : absl::StrCat("job ", job_id);
}

int64_t WholeSeconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

Membership::Membership(DurableRecord& record) : record_(record) {
  for (const Incarnation incarnation : record->given_up) {
    given_up_.emplace(incarnation, "the job went on without this node");
  }
}

Seat& Membership::Insert(const MemberRecord& member, bool local, Instant t) {
  const NodeInfo& info = member.info;
  Seat& seat = seats_[info.node_id];
  static_cast<MemberRecord&>(seat) = member;
  seat.local = local;
  seat.attached = true;
  seat.heard = seat.spoke = seat.since = t;
  if (!local) seat.silence = by_silence_.insert(by_silence_.end(), &seat);
  if (info.node_rank) by_rank_[*info.node_rank] = &seat;
  Count(seat, +1);
  return seat;
}

void Membership::Remove(Seat& seat, absl::Status status) {
  const NodeInfo& info = seat.info;
  GiveUp(info.incarnation, status.message());
  ended_.push_back({info.node_id, info.incarnation, std::move(status)});
  Count(seat, -1);
  if (!seat.local) by_silence_.erase(seat.silence);
  if (info.node_rank) {
    const auto it = by_rank_.find(*info.node_rank);
    if (it != by_rank_.end() && it->second == &seat) by_rank_.erase(it);
  }
  seats_.erase(seats_.find(info.node_id));
}

void Membership::GiveUp(Incarnation incarnation, absl::string_view why) {
  if (!given_up_.emplace(incarnation, std::string(why)).second) return;
  std::deque<Incarnation>& order = record_.Note().given_up;
  order.push_back(incarnation);
  const auto two_for_each = 2 * static_cast<size_t>(record_->policy.max_nodes);
  if (order.size() <= std::max(kRemembered, two_for_each)) return;
  given_up_.erase(order.front());
  order.pop_front();
}

const std::string* Membership::WhyGivenUp(Incarnation incarnation) const {
  const auto it = given_up_.find(incarnation);
  return it == given_up_.end() ? nullptr : &it->second;
}

Seat* Membership::Find(absl::string_view node_id, Incarnation incarnation) {
  const auto it = seats_.find(node_id);
  if (it == seats_.end() || it->second.info.incarnation != incarnation) return nullptr;
  return &it->second;
}

const Seat* Membership::Find(absl::string_view node_id) const {
  const auto it = seats_.find(node_id);
  return it == seats_.end() ? nullptr : &it->second;
}

Seat* Membership::HolderOf(const NodeInfo& info) {
  if (const auto by_id = seats_.find(info.node_id); by_id != seats_.end()) return &by_id->second;
  if (!info.node_rank) return nullptr;
  const auto by_rank = by_rank_.find(*info.node_rank);
  return by_rank == by_rank_.end() ? nullptr : by_rank->second;
}

std::vector<Seat*> Membership::RoundMembers() {
  std::vector<Seat*> members;
  for (auto& [id, seat] : seats_) {
    if (InRound(*record_, seat)) members.push_back(&seat);
  }
  std::sort(members.begin(), members.end(),
            [](const Seat* a, const Seat* b) { return a->node_rank < b->node_rank; });
  return members;
}

std::vector<MemberRecord> Membership::Durable() const {
  std::vector<MemberRecord> records;
  for (const auto& [id, seat] : seats_) {
    if (seat.told > 0 && !seat.left && !seat.finished) records.push_back(seat);
  }
  return records;
}

void Membership::Count(const Seat& seat, int sign) {
  if (seat.left) return;
  here_ += sign;
  if (seat.attached) attached_ += sign;
  if (seat.finished) finished_ += sign;
  if (IsReachable(seat)) reachable_ += sign;
}

int Membership::Usable(Instant t) const {
  const std::vector<const Seat*> silent = SilentFor(record_->policy.lease.lease, t);
  const auto counted = std::count_if(silent.begin(), silent.end(),
                                     [](const Seat* seat) { return IsReachable(*seat); });
  return reachable_ - static_cast<int>(counted);
}

void Membership::SetAttached(Seat& seat, bool attached) {
  Count(seat, -1);
  seat.attached = attached;
  seat.broke.reset();
  Count(seat, +1);
}

void Membership::Detach(Seat& seat, Instant t) {
  SetAttached(seat, false);
  seat.broke = t;
}

void Membership::Ask(const Seat& seat) { asked_.push_back(seat.info.node_id); }

void Membership::SetLeft(Seat& seat) {
  Count(seat, -1);
  seat.left = true;
}

void Membership::SetFinished(Seat& seat) {
  Count(seat, -1);
  seat.finished = true;
  Count(seat, +1);
}

void Membership::Touch(Seat& seat, Instant t) {
  seat.spoke = t;
  NoteHeard(seat, t);
}

void Membership::NoteHeard(Seat& seat, Instant t) {
  seat.heard = t;
  if (!seat.local) by_silence_.splice(by_silence_.end(), by_silence_, seat.silence);
}

bool Membership::Suspect(const Seat& seat, Instant t) const {
  return !seat.local && (!seat.attached || t - seat.heard >= record_->policy.lease.lease);
}

std::vector<const Seat*> Membership::SilentFor(Duration time, Instant t) const {
  std::vector<const Seat*> silent;
  for (const Seat* seat : by_silence_) {
    if (t - seat->heard < time) break;
    silent.push_back(seat);
  }
  return silent;
}

Duration Membership::LossTime() const {
  return record_->policy.lease.loss_limit + record_->policy.lease.margin;
}

Seat* Membership::FindLost(Instant t) {
  const bool lost = !by_silence_.empty() && t - by_silence_.front()->heard >= LossTime();
  return lost ? by_silence_.front() : nullptr;
}

std::optional<Instant> Membership::NextLoss() const {
  std::optional<Instant> heard;
  if (!by_silence_.empty()) heard = by_silence_.front()->heard;
  for (const Ghost& ghost : record_->ghosts) {
    heard = heard ? std::min(*heard, ghost.heard) : ghost.heard;
  }
  if (!heard) return std::nullopt;
  return *heard + LossTime();
}

absl::Status Membership::Claim(Seat& holder, const NodeInfo& claimant, Instant t) {
  if (!holder.left && !Suspect(holder, t)) HLAUNCH_RETURN_IF_ERROR(AskHolder(holder, claimant, t));
  // Of two agents on one host, the one that started later lives. The message of the other may come
  // from a dead process and have been long on its way. If the other one lives, it tries again until
  // this is settled.
  if (SameHost(holder.info, claimant) && !holder.left &&
      claimant.started_ms < holder.info.started_ms) {
    return absl::UnavailableError(
        absl::StrCat(ClaimText(holder.info, claimant), ", which started later on this host"));
  }
  return absl::OkStatus();
}

absl::Status Membership::AskHolder(Seat& holder, const NodeInfo& claimant, Instant t) {
  const bool asked = holder.claimant == claimant.incarnation && t - holder.asked < kAskAgain;
  if (holder.local || (asked && holder.heard > holder.asked)) {
    return absl::AlreadyExistsError(absl::StrCat(
        ClaimText(holder.info, claimant),
        SameRank(holder.info, claimant) ? ": stop that one, or give this node another --node-rank"
                                        : ": stop that one first"));
  }
  if (asked && t - holder.asked >= kAsk) return absl::OkStatus();
  if (!asked) {
    holder.claimant = claimant.incarnation;
    holder.asked = t;
    Ask(holder);
  }
  return absl::UnavailableError(
      absl::StrCat(ClaimText(holder.info, claimant), ", which is being asked"));
}

bool Membership::OwesAnswer(const Seat& holder, Instant t) const {
  return holder.claimant != 0 && holder.heard <= holder.asked && t - holder.asked < kAskAgain;
}

void Membership::AddGhost(const Seat& seat) {
  record_.Change().ghosts.push_back(
      {seat.info.node_id, seat.info.incarnation, seat.info.host, seat.info.pid, seat.heard});
}

bool Membership::EraseGhost(absl::string_view node_id, Incarnation incarnation) {
  return std::erase_if(record_.Note().ghosts, [&](const Ghost& ghost) {
           return ghost.incarnation == incarnation && ghost.node_id == node_id;
         }) > 0;
}

void Membership::ForgetGhosts(Instant t) {
  std::erase_if(record_.Note().ghosts,
                [&](const Ghost& ghost) { return t - ghost.heard >= LossTime(); });
}

void Membership::Tell(Seat& seat) {
  if (seat.changed) return;
  seat.changed = true;
  changed_.push_back(seat.info.node_id);
}

void Membership::TellAll() {
  for (auto& [id, seat] : seats_) {
    if (!seat.finished) Tell(seat);
  }
}

std::vector<std::string> Membership::TakeChanged() {
  for (const std::string& id : changed_) {
    if (const auto it = seats_.find(id); it != seats_.end()) it->second.changed = false;
  }
  return std::exchange(changed_, {});
}

std::vector<Membership::Ended> Membership::TakeEnded() { return std::exchange(ended_, {}); }

std::vector<std::string> Membership::TakeAsked() { return std::exchange(asked_, {}); }

}  // namespace hlaunch
