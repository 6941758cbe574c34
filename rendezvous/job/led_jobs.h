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

// The jobs of a service that leads at times and stands by at other times. While it stands by, it
// has no jobs and says which service leads.
//
// Thread-safe. A registry that no longer leads lives on until no caller holds a job of it.
class LedJobs final : public Jobs {
 public:
  // Leads with the jobs of `registry` under `name`, which is empty if there is no other service.
  void Begin(std::shared_ptr<JobRegistry> registry, std::string name = "");
  // Stands by, without jobs. Callers are told `why`.
  void StandBy(std::string why);

  // As in JobRegistry. Tidy also frees former registries.
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
  std::shared_ptr<JobRegistry> registry_ ABSL_GUARDED_BY(mu_);  // Null if it stands by.
  // Shared with callers that hold jobs of them.
  std::vector<std::shared_ptr<JobRegistry>> former_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
