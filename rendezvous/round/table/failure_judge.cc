// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/failure_judge.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/round/table/admission.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxAwaited = 3;  // Workers that are named because they did not fail.
constexpr Duration kLookAgain = std::chrono::milliseconds(250);

bool ByRank(const WorkerPlace& a, const WorkerPlace& b) { return a.rank < b.rank; }

bool IsAccused(const Cause& cause, const WorkerPlace& place) {
  return cause.accusation && absl::c_linear_search(cause.accusation->ranks, place.rank) &&
         (cause.accusation->host.empty() || cause.accusation->host == place.host);
}

// Cuts each text to the length to which an honest agent cuts it.
void CutTexts(WorkerFailure& failure) {
  for (std::string* text :
       {&failure.message, &failure.traceback, &failure.evidence, &failure.log_file}) {
    if (text->size() > kMaxTextBytes) text->resize(kMaxTextBytes);
  }
  if (failure.log_tail.size() > kMaxTailBytes) failure.log_tail.resize(kMaxTailBytes);
}

}  // namespace

FailureJudge::FailureJudge(DurableRecord& record, Membership& membership)
    : record_(record),
      membership_(membership),
      heard_(static_cast<int>(record->failures.size())),
      told_again_(heard_ < record->total_failures) {
  for (const WorkerFailure& failure : record->failures) failed_ranks_.insert(failure.rank);
}

void FailureJudge::BeginRound() {
  JobRecord& record = record_.Note();
  record.failures.clear();
  record.total_failures = 0;
  failed_ranks_.clear();
  heard_ = 0;
  told_again_ = false;
  judged_ = 0;
  due_.reset();
  asked_.reset();
  window_ = Duration::zero();
  resumed_ = false;
}

bool FailureJudge::Absorb(Seat& seat, const NodeUpdate& update) {
  bool kept = false;
  if (!IsOvertaken(seat, update)) {
    seat.exited = update.exited;
    seat.given_up = update.given_up;
  }
  const size_t told = std::min(update.failures.size(), kMaxFailures);
  for (; seat.failures_seen < told; ++seat.failures_seen) {
    const WorkerFailure& failure = update.failures[seat.failures_seen];
    if (told_again_ && WasKept(failure)) continue;
    int& total = record_.Note().total_failures;
    total = std::max(total, ++heard_);
    failed_ranks_.insert(failure.rank);
    kept |= Keep(failure);
  }
  return kept;
}

bool FailureJudge::WasKept(const WorkerFailure& failure) const {
  return absl::c_any_of(record_->failures, [&](const WorkerFailure& kept) {
    return kept.rank == failure.rank && kept.pid == failure.pid && kept.wall_ms == failure.wall_ms;
  });
}

bool FailureJudge::Keep(WorkerFailure failure) {
  std::vector<WorkerFailure>& failures = record_.Note().failures;
  if (failures.size() >= kMaxFailures) {
    if (record_->state != JobState::kRunning || KindOf(failure) != CauseKind::kOriginal) {
      return false;
    }
    failures.pop_back();  // The cause may be the last failure that is heard.
    judged_ = 0;
  }
  CutTexts(failure);
  failures.push_back(std::move(failure));
  return true;
}

void FailureJudge::Resume(Instant t) {
  resumed_ = true;
  due_ = t;
}

std::optional<FailureJudge::Verdict> FailureJudge::Judge(Instant t) {
  if (record_->failures.empty()) return std::nullopt;
  const bool all_over = AllOver();
  const bool due = all_over || (due_ && t >= *due_);
  if (record_->failures.size() == judged_ && !due) return std::nullopt;
  judged_ = record_->failures.size();
  const Cause cause = FirstCause(record_->failures);
  const bool clear = cause.kind == CauseKind::kOriginal || all_over || resumed_;
  if (clear) return BlameWorker(cause);
  if (!asked_) BeginWait(t);
  window_ =
      std::max(window_, CauseWindow(AccusedMayTell(cause) ? CauseKind::kTimedOut : cause.kind));
  const std::vector<const Seat*> seats = AtWork();
  const LostNodeVerdict nodes = FindLostNode(Signs(seats, t), record_->policy.lease);
  if (nodes.lost) return BlameNode(*seats[*nodes.lost], nodes.reason);
  due_ = WaitUntil(nodes, t);
  if (due_) return std::nullopt;
  return BlameWorker(cause);
}

// Whether a rank that others say has left is not known to have ended: it may be about to, and will
// then tell of its own failure.
bool FailureJudge::AccusedMayTell(const Cause& cause) const {
  if (!cause.accusation) return false;
  const auto may_tell = [&cause](const WorkerPlace& place) {
    return IsAccused(cause, place) && !place.exited;
  };
  return absl::c_any_of(membership_.seats(), [&](const auto& entry) {
    return InRound(*record_, entry.second) && absl::c_any_of(NotFailedOn(entry.second), may_tell);
  });
}

// Asks all nodes for a sign of life: from then on silence is an answer, too.
void FailureJudge::BeginWait(Instant t) {
  asked_ = t;
  for (const Seat* seat : AtWork()) {
    if (seat->heard < t) membership_.Ask(*seat);
  }
}

// Looks again soon, because meanwhile a node may answer, or its connection may break.
std::optional<Instant> FailureJudge::WaitUntil(const LostNodeVerdict& nodes, Instant t) const {
  const Duration wait = std::max(nodes.wait, *asked_ + window_ - t);
  if (wait <= Duration::zero()) return std::nullopt;
  return t + std::min(wait, kLookAgain);
}

// Returns the nodes of the round, without the local one, that still run workers, as far as is
// known.
std::vector<const Seat*> FailureJudge::AtWork() const {
  std::vector<const Seat*> seats;
  for (const auto& [id, seat] : membership_.seats()) {
    if (InRound(*record_, seat) && !seat.local && !seat.left && !seat.succeeded) {
      seats.push_back(&seat);
    }
  }
  return seats;
}

std::vector<SignOfLife> FailureJudge::Signs(const std::vector<const Seat*>& seats,
                                            Instant t) const {
  std::vector<SignOfLife> signs;
  for (const Seat* seat : seats) {
    SignOfLife sign;
    sign.host = seat->info.host;
    sign.answered = seat->heard >= *asked_;
    if (seat->broke) sign.broken = t - *seat->broke;
    sign.silence = t - seat->heard;
    signs.push_back(std::move(sign));
  }
  return signs;
}

FailureJudge::Verdict FailureJudge::BlameWorker(const Cause& cause) {
  std::vector<WorkerFailure>& failures = record_.Note().failures;
  const std::optional<DifferentPlaces> places = PlacesOfAll(cause);
  const auto first =
      failures.begin() + static_cast<ptrdiff_t>(places ? places->index : cause.index);
  std::rotate(failures.begin(), first, first + 1);
  Verdict verdict;
  verdict.event.worker = failures.front();
  if (places) {
    const WorkerFailure& worker = failures.front();
    verdict.event.awaited = {{worker.rank, worker.local_rank, worker.host, places->did}};
  } else if (cause.kind != CauseKind::kOriginal) {
    verdict.event.awaited = Awaited(cause);
  }
  verdict.cause_reason = cause.reason;
  return verdict;
}

// If all workers waited in vain, each has left a record of what it did. So it is if those that they
// name waited themselves: then these were not late, but called something else.
std::optional<DifferentPlaces> FailureJudge::PlacesOfAll(const Cause& cause) const {
  if (cause.kind != CauseKind::kTimedOut || !AllOver()) return std::nullopt;
  if (cause.accusation && !NamedOnesWaited(*cause.accusation)) return std::nullopt;
  return ComparePlaces(record_->failures);
}

// Whether all failures are of workers that waited in vain, and all of the accused are among them.
bool FailureJudge::NamedOnesWaited(const Accusation& accusation) const {
  const std::vector<WorkerFailure>& failures = record_->failures;
  return absl::c_all_of(failures,
                        [](const WorkerFailure& failure) {
                          return KindOf(failure) == CauseKind::kTimedOut;
                        }) &&
         absl::c_all_of(accusation.ranks, [&](Rank rank) {
           return absl::c_any_of(
               failures, [rank](const WorkerFailure& failure) { return failure.rank == rank; });
         });
}

FailureJudge::Verdict FailureJudge::BlameNode(const Seat& seat, const std::string& why) {
  Verdict verdict;
  verdict.event = WithPart(NodeEvent(FailureEvent::Kind::kNodeLost, seat.info, why), seat);
  verdict.cause_reason =
      absl::StrCat(seat.info.host, " was lost, which explains what its peers said");
  return verdict;
}

FailureEvent FailureJudge::WithPart(FailureEvent event, const Seat& seat) const {
  event.first_rank = seat.first_rank;
  event.nproc = seat.info.nproc;
  for (const WorkerFailure& failure : record_->failures) {
    if (failure.host == seat.info.host && failure.node_rank == seat.node_rank) continue;
    event.explains = failure;
    break;
  }
  return event;
}

// Returns the workers that the failed ones missed: those that the cause names, else those that
// exited with 0, else all that did not fail, if they are few.
std::vector<WorkerPlace> FailureJudge::Awaited(const Cause& cause) const {
  std::vector<WorkerPlace> named, exited;
  for (const auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat)) continue;
    for (const WorkerPlace& place : NotFailedOn(seat)) {
      if (IsAccused(cause, place)) {
        named.push_back(place);
        if (!place.exited) named.back().did = cause.accusation->did;
      } else if (place.exited) {
        exited.push_back(place);
      }
    }
  }
  if (named.empty()) named = std::move(exited);
  if (named.empty() || named.size() > kMaxAwaited) return NotFailed();
  std::sort(named.begin(), named.end(), ByRank);
  return named;
}

std::vector<WorkerPlace> FailureJudge::NotFailedOn(const Seat& seat) const {
  std::vector<WorkerPlace> places;
  for (int local_rank = 0; local_rank < seat.info.nproc; ++local_rank) {
    const Rank rank = seat.first_rank + local_rank;
    if (failed_ranks_.contains(rank)) continue;
    const bool exited = seat.succeeded || absl::c_linear_search(seat.exited, local_rank);
    places.push_back(
        {rank, local_rank, seat.info.host, exited ? "exited with code 0" : "", exited});
  }
  return places;
}

// Returns whether every worker of the round has failed, or exited with 0: then none can tell more.
bool FailureJudge::AllOver() const {
  size_t over = failed_ranks_.size();
  for (const auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat)) continue;
    over +=
        absl::c_count_if(NotFailedOn(seat), [](const WorkerPlace& place) { return place.exited; });
  }
  return over >= static_cast<size_t>(record_->world_size);
}

// Returns the workers of the round that did not fail, if they are few. Skips nodes that may not
// have told all their failures. Workers that have given up are left out, if there are others.
std::vector<WorkerPlace> FailureJudge::NotFailed() const {
  std::vector<WorkerPlace> found, gave_up;
  for (const auto& [id, seat] : membership_.seats()) {
    const bool may_lack = told_again_ || seat.failures_seen >= kMaxFailures;
    if (!InRound(*record_, seat) || may_lack) continue;
    for (WorkerPlace& place : NotFailedOn(seat)) {
      const bool waits = absl::c_linear_search(seat.given_up, place.local_rank);
      std::vector<WorkerPlace>& places = waits ? gave_up : found;
      if (places.size() <= kMaxAwaited) places.push_back(std::move(place));
    }
  }
  if (found.empty()) found = std::move(gave_up);
  if (found.size() > kMaxAwaited) return {};
  std::sort(found.begin(), found.end(), ByRank);
  return found;
}

}  // namespace hlaunch
