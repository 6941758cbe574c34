// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/led_jobs.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

// Makes a service lead the jobs of a place that several services share, whenever no other service
// leads. It takes over the records kept there, and stands by again once it has lost the lead.
//
// Thread-safe. Its thread is "job-leader". The destructor joins the thread; another service can
// lead once `jobs` has released what it holds.
class JobLeader {
 public:
  struct Options {
    std::string name;  // The leader's name, for those who ask.
    // Makes one attempt to lead.
    //
    // Errors:
    //   AlreadyExists - another service leads; the message is its name.
    //   others - the place cannot be reached.
    std::function<absl::StatusOr<std::unique_ptr<RecordKeeper>>()> lead;
    Duration ask_again{};  // The time between attempts to lead.
    int max_jobs = 0;
    // Called once jobs are no longer decided here; ends the streams that agents have open here.
    // Called from the thread, with no lock held.
    std::function<void(const absl::Status& why)> on_lost;
  };

  // `jobs` must outlive the leader.
  JobLeader(Options options, LedJobs& jobs);
  ~JobLeader();
  JobLeader(const JobLeader&) = delete;

 private:
  void Run();
  void Lead(std::shared_ptr<RecordKeeper> keeper, RecordKeeper::Listed listed);
  void StandBy(const std::string& why);
  // Waits until `deadline`. Returns false if the leader must stop.
  bool Wait(Instant deadline);

  Options options_;
  LedJobs& jobs_;
  std::string said_;  // The last logged line about who leads.
  Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace hlaunch
