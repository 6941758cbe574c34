// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// The jobs that one server knows.
//
// Thread-safe.
class Jobs {
 public:
  virtual ~Jobs() = default;

  // Whether jobs are decided here. One that never stands by need not say so.
  //
  // Errors:
  //   Unavailable - another server does, or none yet; the message says which.
  virtual absl::Status CheckLeads() const { return absl::OkStatus(); }

  // What this service is called among several of which it leads; empty: it is alone, or stands by.
  virtual std::string leader() const { return ""; }

  // The rendezvous of info.job_id, which a node wants to join. A job may begin with it. Shared:
  // a stream holds it for as long as it is open.
  //
  // Errors:
  //   Aborted - the node comes from a job that nobody here knows.
  //   ResourceExhausted - too many jobs.
  //   Unavailable - not yet; to be tried again.
  virtual absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                              const NodeUpdate& update) = 0;

  // Null if there is no such job.
  virtual std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) = 0;

  // Where a job stands and why; unset if there is no such job.
  virtual std::optional<JobStatus> Status(absl::string_view job_id) = 0;

  // All of them, by id; without their nodes.
  virtual std::vector<JobStatus> List() = 0;
};

// The one job of a rendezvous that lives in its node's process. `rendezvous` must outlive it and
// all that it handed out.
std::unique_ptr<Jobs> MakeOneJob(std::string job_id, JobRendezvous& rendezvous);

}  // namespace hlaunch
