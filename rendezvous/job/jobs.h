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
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The jobs that one server knows.
//
// Thread-safe.
class Jobs {
 public:
  virtual ~Jobs() = default;

  // Checks that jobs are decided here. An implementation that never stands by need not override it.
  //
  // Errors:
  //   Unavailable - another server decides, or none yet; the message says which.
  virtual absl::Status CheckLeads() const { return absl::OkStatus(); }

  // Returns the name of this service if it leads several services; empty if it is alone, or stands
  // by.
  virtual std::string leader() const { return ""; }

  // Returns the rendezvous of info.job_id, which a node wants to join. The job may begin with this
  // call. The pointer is shared: a stream holds it for as long as the stream is open.
  //
  // Errors:
  //   Aborted - the node comes from a job that this server does not know.
  //   ResourceExhausted - too many jobs.
  //   Unavailable - not possible yet; the node tries again.
  virtual absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                              const NodeUpdate& update) = 0;

  // Returns null if there is no such job.
  virtual std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) = 0;

  // Returns the state of a job and the reason for it; unset if there is no such job.
  virtual std::optional<JobStatus> Status(absl::string_view job_id) = 0;

  // Returns all jobs, by id, without their nodes.
  virtual std::vector<JobStatus> List() = 0;
};

// Returns the only job of a rendezvous that lives in its node's process. `rendezvous` must outlive
// the result and all that it handed out.
std::unique_ptr<Jobs> MakeOneJob(std::string job_id, JobRendezvous& rendezvous);

}  // namespace hlaunch
