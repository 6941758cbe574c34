// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/table/failure_judge.h"

#include <algorithm>
#include <utility>

#include "rendezvous/round/first_cause.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxAwaited = 3;  // Workers that are named because they did not fail.

// No text is longer than an honest agent makes it.
void CutTexts(WorkerFailure& failure) {
  for (std::string* text :
       {&failure.message, &failure.traceback, &failure.evidence, &failure.log_file}) {
    if (text->size() > kMaxTextBytes) text->resize(kMaxTextBytes);
  }
  if (failure.log_tail.size() > kMaxTailBytes) failure.log_tail.resize(kMaxTailBytes);
}

}  // namespace

FailureJudge::FailureJudge(DurableRecord& record, const Membership& membership)
    : record_(record), membership_(membership) {
  for (const WorkerFailure& failure : record->failures) failed_ranks_.insert(failure.rank);
}

void FailureJudge::BeginRound() {
  JobRecord& record = record_.Note();
  record.failures.clear();
  record.total_failures = 0;
  failed_ranks_.clear();
  judged_ = 0;
  due_.reset();
}

bool FailureJudge::Absorb(Seat& seat, const NodeUpdate& update) {
  bool kept = false;
  const size_t told = std::min(update.failures.size(), kMaxFailures);
  for (; seat.failures_seen < told; ++seat.failures_seen) {
    const WorkerFailure& failure = update.failures[seat.failures_seen];
    ++record_.Note().total_failures;
    failed_ranks_.insert(failure.rank);
    kept |= Keep(failure);
  }
  return kept;
}

bool FailureJudge::Keep(WorkerFailure failure) {
  std::vector<WorkerFailure>& failures = record_.Note().failures;
  if (failures.size() >= kMaxFailures) {
    if (record_->state != JobState::kRunning || KindOf(failure) != FailureKind::kOriginal) {
      return false;
    }
    failures.pop_back();  // The cause may be the last to be heard of.
    judged_ = 0;
  }
  CutTexts(failure);
  failures.push_back(std::move(failure));
  return true;
}

std::optional<FailureJudge::Verdict> FailureJudge::Judge(Instant t) {
  if (record_->failures.empty()) return std::nullopt;
  const bool all_failed = static_cast<int>(failed_ranks_.size()) >= record_->world_size;
  const bool due = all_failed || (due_ && t >= *due_);
  if (record_->failures.size() == judged_ && !due) return std::nullopt;
  judged_ = record_->failures.size();
  const Cause cause = FirstCause(record_->failures);
  if (!due_) due_ = t + CauseWindow(cause.kind);
  const bool clear = cause.kind == FailureKind::kOriginal;
  if (!clear && !due && t < *due_) return std::nullopt;
  std::vector<WorkerFailure>& failures = record_.Note().failures;
  const auto first = failures.begin() + static_cast<ptrdiff_t>(cause.index);
  std::rotate(failures.begin(), first, first + 1);
  Verdict verdict;
  verdict.event.worker = failures.front();
  if (!clear) verdict.event.awaited = NotFailed();
  verdict.cause_reason = cause.reason;
  return verdict;
}

// The workers of the round that did not fail, if they are few and all others told.
std::vector<WorkerPlace> FailureJudge::NotFailed() const {
  std::vector<WorkerPlace> found;
  for (const auto& [id, seat] : membership_.seats()) {
    if (!InRound(*record_, seat) || seat.failures_seen >= kMaxFailures) continue;
    for (int local_rank = 0; local_rank < seat.info.nproc; ++local_rank) {
      const Rank rank = seat.first_rank + local_rank;
      if (failed_ranks_.contains(rank)) continue;
      if (found.size() == kMaxAwaited) return {};
      found.push_back({rank, local_rank, seat.info.host});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const WorkerPlace& a, const WorkerPlace& b) { return a.rank < b.rank; });
  return found;
}

}  // namespace hlaunch
