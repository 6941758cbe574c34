// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "rendezvous/job/record/record_keeper.h"
#include "rendezvous/round/values/job_record.h"

namespace hlaunch {

// Logs that records of a service's jobs cannot be kept: a full disk is logged once, not once for
// each job.
//
// Thread-safe.
class KeepingLog {
 public:
  void Failed(const std::string& line, Instant now);
  void Again(const std::string& line, Instant now);

 private:
  Mutex mu_;
  RareLog failed_ ABSL_GUARDED_BY(mu_);
  RareLog again_ ABSL_GUARDED_BY(mu_);
};

// Keeps the records of one job id in their order, also over several runs of the job: once the next
// run has begun, records of a former run are not kept. A record that cannot be kept is tried again.
//
// Thread-safe. `keeper` and `clock` must outlive it.
class JobKeeping {
 public:
  // `version` is that of the record that is kept now; 0 if there is none.
  JobKeeping(RecordKeeper& keeper, RecordVersion version, std::shared_ptr<KeepingLog> log,
             const Clock& clock)
      : keeper_(keeper), log_(std::move(log)), clock_(clock), version_(version) {}

  // Returns the number of the run that begins now. Records with the number of an earlier run are
  // ignored.
  int NextRun();

  // Keeps `record`. Returns whether nodes may be told what follows from it, as JobRules::commit
  // does.
  absl::Status Keep(int run, const JobRecord& record);

  // Returns whether no other process can have taken over by now.
  bool leads() const { return clock_.Now() < keeper_.LeadsUntil(); }

  // Tries again to keep the record that could not be kept, if it is time.
  void Retry();

  // Returns what is wrong, for people; empty if nothing is.
  std::string Trouble() const;

 private:
  absl::Status TryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Say(const std::string& job_id, const absl::Status& status, bool failed_before);

  RecordKeeper& keeper_;
  const std::shared_ptr<KeepingLog> log_;  // Shared by all jobs.
  const Clock& clock_;

  mutable Mutex mu_;
  CondVar idle_;
  RecordVersion version_ ABSL_GUARDED_BY(mu_);
  int run_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // A thread is in the keeper.
  std::optional<JobRecord> unkept_ ABSL_GUARDED_BY(mu_);
  std::string trouble_ ABSL_GUARDED_BY(mu_);
  int64_t failed_since_ ABSL_GUARDED_BY(mu_) = 0;  // Wall time.
  Instant next_try_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
