// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/deadline_threads.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

class JobKeeping;
class KeepingLog;

// The jobs of a rendezvous that is a service of its own. A job begins with the first node that
// joins it, with that node's policy. A job that is over remains visible for ten minutes; once all
// its nodes have heard so, a node that joins afresh begins a new run of it.
//
// Thread-safe. Must outlive the server; Open, Find and Status are O(log n).
class JobRegistry final : public Jobs {
 public:
  struct Options {
    int max_jobs = 1000;
    // Keeps the jobs' records beyond the end of this process; must outlive the registry. Null if no
    // record is kept.
    RecordKeeper* keeper = nullptr;
    // What `keeper` listed: the registry goes on from these records.
    std::vector<KeptRecord> records;
  };

  // `clock` must outlive it, and run.
  JobRegistry(Options options, const Clock& clock);
  ~JobRegistry() override;

  // Starts the threads that all jobs share. Without this call the first job starts them.
  //
  // Errors:
  //   ResourceExhausted - out of threads.
  absl::Status StartThreads();

  // Errors, beside those of Jobs::Open:
  //   Unavailable - a former run of the job has not ended on all its nodes.
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                      const NodeUpdate& update) override;
  std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) override;
  std::optional<JobStatus> Status(absl::string_view job_id) override;
  std::vector<JobStatus> List() override;

  // Called about once a second. Drops jobs that have been done for long, and tries again to keep
  // records that could not be kept.
  void Tidy();

  // Returns the number of jobs that are not over.
  int going_on() const;

 private:
  struct Job {
    std::shared_ptr<JobRendezvous> rendezvous;  // The streams of its nodes own it, too.
    std::shared_ptr<JobKeeping> keeping;        // The rendezvous owns it, too.
    std::optional<Instant> done_since;
  };
  using Map = std::map<std::string, Job, std::less<>>;

  bool shared() const;
  absl::Status CheckFits(const NodeInfo& info) const;
  JobThreads ThreadsOfJobs();
  void Restore(const KeptRecord& kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<JobKeeping> NewKeeping(RecordVersion version) const;
  absl::StatusOr<std::shared_ptr<JobRendezvous>> BeginLocked(const NodeInfo& info)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoomLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Map::iterator DropLocked(Map::iterator job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<KeepingLog> log_;  // Each JobKeeping owns it, too.
  DeadlineThreads threads_;                // Shared by all jobs.
  DeadlineThreads keeping_threads_;  // Shared by all jobs; idle if a directory keeps the records.

  mutable Mutex mu_;
  Map jobs_ ABSL_GUARDED_BY(mu_);
  // Jobs that were replaced or dropped while streams may still hold them. They are destroyed here,
  // not in a stream, which may be inside a call of that rendezvous.
  std::vector<std::shared_ptr<JobRendezvous>> former_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
