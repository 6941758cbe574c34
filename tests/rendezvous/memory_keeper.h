// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

// A place for records in memory, for tests. Outlives its keepers.
//
// Thread-safe.
class MemoryPlace {
 public:
  std::map<std::string, KeptRecord> kept() const {
    MutexLock lock(&mu_);
    return kept_;
  }
  // From now on every Keep returns `status` if it is not OK.
  void SetDisk(absl::Status status) {
    MutexLock lock(&mu_);
    disk_ = std::move(status);
  }
  // While `silent` is set, Keep gets no answer.
  void SetSilent(bool silent) {
    MutexLock lock(&mu_);
    silent_ = silent;
    answers_.SignalAll();
  }
  // Makes the leader lose.
  void TakeAway() {
    MutexLock lock(&mu_);
    ++term_;
    held_ = false;
  }

 private:
  friend class MemoryKeeper;
  mutable Mutex mu_;
  std::map<std::string, KeptRecord> kept_ ABSL_GUARDED_BY(mu_);
  absl::Status disk_ ABSL_GUARDED_BY(mu_);
  CondVar answers_;
  bool silent_ ABSL_GUARDED_BY(mu_) = false;
  RecordVersion last_ ABSL_GUARDED_BY(mu_) = 0;
  int term_ ABSL_GUARDED_BY(mu_) = 0;
  bool held_ ABSL_GUARDED_BY(mu_) = false;
};

class MemoryKeeper final : public RecordKeeper {
 public:
  // Errors:
  //   AlreadyExists - another keeper leads.
  static absl::StatusOr<std::unique_ptr<MemoryKeeper>> Lead(MemoryPlace& place,
                                                            bool shared = false) {
    MutexLock lock(&place.mu_);
    if (place.held_) return absl::AlreadyExistsError("another leads");
    place.held_ = true;
    return std::unique_ptr<MemoryKeeper>(new MemoryKeeper(place, ++place.term_, shared));
  }
  ~MemoryKeeper() override {
    MutexLock lock(&place_.mu_);
    if (place_.term_ == term_) place_.held_ = false;
  }

  absl::StatusOr<Listed> List() override {
    MutexLock lock(&place_.mu_);
    if (place_.term_ != term_) return absl::AbortedError("another leads");
    Listed listed;
    for (const auto& [id, kept] : place_.kept_) listed.records.push_back(kept);
    return listed;
  }
  absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) override {
    MutexLock lock(&place_.mu_);
    while (place_.silent_) place_.answers_.Wait(&place_.mu_);
    if (!place_.disk_.ok()) return place_.disk_;
    const auto found = place_.kept_.find(record.job_id);
    const RecordVersion version = found == place_.kept_.end() ? 0 : found->second.version;
    if (place_.term_ != term_ || version != expected) return absl::AbortedError("another leads");
    if (record.state == JobState::kOver && record.members.empty()) {
      place_.kept_.erase(record.job_id);
      return 0;
    }
    place_.kept_[record.job_id] = {record, ++place_.last_};
    return place_.last_;
  }
  Instant LeadsUntil() const override {
    MutexLock lock(&place_.mu_);
    return place_.term_ == term_ ? Instant::max() : Instant();
  }
  bool shared() const override { return shared_; }
  int max_nodes() const override { return 1000; }
  std::string place() const override { return "DIR"; }

 private:
  MemoryKeeper(MemoryPlace& place, int term, bool shared)
      : place_(place), term_(term), shared_(shared) {}

  MemoryPlace& place_;
  const int term_;
  const bool shared_;
};

}  // namespace hlaunch
