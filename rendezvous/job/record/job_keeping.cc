// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/record/job_keeping.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

constexpr Duration kRetry = std::chrono::seconds(3);  // Before a record that failed is tried again.

std::string TimeOfDay(int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  return absl::StrFormat("%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

void KeepingLog::Failed(const std::string& line, Instant now) {
  const std::string admitted = [&] {
    MutexLock lock(&mu_);
    return failed_.Admit(line, now);
  }();
  if (!admitted.empty()) LogError(admitted);
}

void KeepingLog::Again(const std::string& line, Instant now) {
  const std::string admitted = [&] {
    MutexLock lock(&mu_);
    return again_.Admit(line, now);
  }();
  if (!admitted.empty()) LogInfo(admitted);
}

int JobKeeping::NextRun() {
  MutexLock lock(&mu_);
  unkept_.reset();
  return ++run_;
}

absl::Status JobKeeping::Keep(int run, const JobRecord& record) {
  MutexLock lock(&mu_);
  while (busy_) idle_.Wait(&mu_);
  if (run != run_) return absl::OkStatus();
  unkept_ = record;
  absl::Status status = TryLocked();
  // No other process takes over from a place that belongs to this process alone: the job goes on,
  // and its record is kept later.
  return keeper_.shared() ? status : absl::OkStatus();
}

void JobKeeping::Retry() {
  if (keeper_.shared()) return;  // The job itself tries again, on a thread that may wait.
  MutexLock lock(&mu_);
  if (!busy_ && unkept_.has_value() && clock_.Now() >= next_try_) TryLocked().IgnoreError();
}

std::string JobKeeping::Trouble() const {
  MutexLock lock(&mu_);
  return trouble_.empty() ? ""
                          : absl::StrCat("not kept in ", keeper_.place(), " since ",
                                         TimeOfDay(failed_since_), ": ", trouble_);
}

absl::Status JobKeeping::TryLocked() {
  const JobRecord record = *std::exchange(unkept_, std::nullopt);
  const int run = run_;
  const RecordVersion expected = version_;
  const bool failed_before = !trouble_.empty();
  busy_ = true;
  mu_.Unlock();
  const absl::StatusOr<RecordVersion> kept = keeper_.Keep(record, expected);
  Say(record.job_id, kept.status(), failed_before);
  mu_.Lock();
  busy_ = false;
  idle_.SignalAll();
  if (kept.ok()) {
    version_ = *kept;
    trouble_.clear();
    return absl::OkStatus();
  }
  if (!failed_before) failed_since_ = WallMillis();
  trouble_ = std::string(kept.status().message());
  next_try_ = clock_.Now() + kRetry;
  if (run == run_ && !unkept_.has_value()) unkept_ = record;
  return kept.status();
}

void JobKeeping::Say(const std::string& job_id, const absl::Status& status, bool failed_before) {
  if (absl::IsAborted(status)) return;  // The code that watches over the keeper logs that, once.
  if (!status.ok()) {
    const char* const meaning = keeper_.shared()
                                    ? " runs on, and what follows for it waits: "
                                    : " goes on and would not survive a restart of this service: ";
    log_->Failed(absl::StrCat("job ", job_id, meaning, status.message()), clock_.Now());
  } else if (failed_before) {
    log_->Again(absl::StrCat("job ", job_id, " is kept in ", keeper_.place(), " again"),
                clock_.Now());
  }
}

}  // namespace hlaunch
