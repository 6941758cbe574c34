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
#include "rendezvous/keeping/record_keeper.h"

namespace hlaunch {

// Makes a service lead the jobs of a place that several services share, whenever no other does:
// takes over what is kept there, and stands by again once it has lost.
//
// Thread-safe. Its thread is "job-leader"; destruction joins it, and lets another lead once `jobs`
// has let go of what it has.
class JobLeader {
 public:
  struct Options {
    std::string name;  // What those who ask are told of who leads.
    // Tries once to lead.
    //
    // Errors:
    //   AlreadyExists - another leads; the message is its name.
    //   others - the place cannot be reached.
    std::function<absl::StatusOr<std::unique_ptr<RecordKeeper>>()> lead;
    Duration ask_again{};  // Whether another leads still.
    int max_jobs = 0;
    // Called once jobs are not decided here any more; ends what agents have open here. From the
    // thread, with no lock held.
    std::function<void(const absl::Status& why)> on_lost;
  };

  // `jobs` must outlive it.
  JobLeader(Options options, LedJobs& jobs);
  ~JobLeader();
  JobLeader(const JobLeader&) = delete;

 private:
  void Run();
  void Lead(std::shared_ptr<RecordKeeper> keeper, RecordKeeper::Listed listed);
  void StandBy(const std::string& why);
  // Until `deadline`. False: it is to stop.
  bool Wait(Instant deadline);

  Options options_;
  LedJobs& jobs_;
  std::string said_;  // The last line on who leads.
  Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace hlaunch
