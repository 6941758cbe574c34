// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/job_registry.h"
#include "rendezvous/job/jobs.h"

namespace hlaunch {

// The jobs of a service that leads at times and stands by at others. While it stands by it has
// none, and says who leads.
//
// Thread-safe. A registry that has lost lives on until nobody holds a job of it.
class LedJobs final : public Jobs {
 public:
  // Leads with the jobs of `registry`, as `name`; empty: there is no other service.
  void Begin(std::shared_ptr<JobRegistry> registry, std::string name = "");
  // Has no jobs; `why` is what whoever asks is told.
  void StandBy(std::string why);

  // As JobRegistry. What is over is freed here.
  void Tidy();
  int going_on() const;

  absl::Status CheckLeads() const override;
  std::string leader() const override;
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                      const NodeUpdate& update) override;
  std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) override;
  std::optional<JobStatus> Status(absl::string_view job_id) override;
  std::vector<JobStatus> List() override;

 private:
  std::shared_ptr<JobRegistry> Now() const;

  mutable Mutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_) = "this service stands by";
  std::string name_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<JobRegistry> registry_ ABSL_GUARDED_BY(mu_);  // Null: it stands by.
  // Shared with those who hold jobs of them.
  std::vector<std::shared_ptr<JobRegistry>> former_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
