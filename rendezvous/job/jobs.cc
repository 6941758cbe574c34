// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/jobs.h"

#include <utility>

namespace hlaunch {
namespace {

class OneJob final : public Jobs {
 public:
  OneJob(std::string job_id, JobRendezvous& rendezvous)
      : job_id_(std::move(job_id)), rendezvous_(&rendezvous, [](JobRendezvous*) {}) {}

  // The round table refuses a node of another job.
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo&, const NodeUpdate&) override {
    return rendezvous_;
  }
  std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) override {
    return job_id == job_id_ ? rendezvous_ : nullptr;
  }
  std::optional<JobStatus> Status(absl::string_view job_id) override {
    if (job_id != job_id_) return std::nullopt;
    return rendezvous_->Status();
  }
  std::vector<JobStatus> List() override {
    JobStatus status = rendezvous_->Status();
    status.nodes.clear();
    return {std::move(status)};
  }

 private:
  const std::string job_id_;
  const std::shared_ptr<JobRendezvous> rendezvous_;  // Not owned.
};

}  // namespace

std::unique_ptr<Jobs> MakeOneJob(std::string job_id, JobRendezvous& rendezvous) {
  return std::make_unique<OneJob>(std::move(job_id), rendezvous);
}

}  // namespace hlaunch
