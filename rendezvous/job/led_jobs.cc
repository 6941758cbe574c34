// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/led_jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Returns `job`, which then also holds the registry, because the registry's threads call the job.
std::shared_ptr<JobRendezvous> Holding(const std::shared_ptr<JobRegistry>& registry,
                                       std::shared_ptr<JobRendezvous> job) {
  if (job == nullptr) return nullptr;
  // The pair is destroyed in reverse order: the job first.
  using Both = std::pair<std::shared_ptr<JobRegistry>, std::shared_ptr<JobRendezvous>>;
  JobRendezvous* const plain = job.get();
  return {std::make_shared<Both>(registry, std::move(job)), plain};
}

}  // namespace

void LedJobs::Begin(std::shared_ptr<JobRegistry> registry, std::string name) {
  MutexLock lock(&mu_);
  registry_ = std::move(registry);
  name_ = std::move(name);
}

void LedJobs::StandBy(std::string why) {
  MutexLock lock(&mu_);
  why_ = std::move(why);
  if (registry_ != nullptr) former_.push_back(std::exchange(registry_, nullptr));
}

// A registry is destroyed here, never by the thread that releases the last job: that may be one of
// the registry's own threads.
void LedJobs::Tidy() {
  std::vector<std::shared_ptr<JobRegistry>> free;
  {
    MutexLock lock(&mu_);
    const auto held = [](const auto& registry) { return registry.use_count() > 1; };
    const auto first = std::partition(former_.begin(), former_.end(), held);
    free.assign(std::make_move_iterator(first), std::make_move_iterator(former_.end()));
    former_.erase(first, former_.end());
  }
  if (const auto registry = Now()) registry->Tidy();
}

int LedJobs::going_on() const {
  const auto registry = Now();
  return registry == nullptr ? 0 : registry->going_on();
}

absl::Status LedJobs::CheckLeads() const {
  MutexLock lock(&mu_);
  return registry_ != nullptr ? absl::OkStatus() : absl::UnavailableError(why_);
}

std::string LedJobs::leader() const {
  MutexLock lock(&mu_);
  return registry_ != nullptr ? name_ : "";
}

absl::StatusOr<std::shared_ptr<JobRendezvous>> LedJobs::Open(const NodeInfo& info,
                                                             const NodeUpdate& update) {
  HLAUNCH_RETURN_IF_ERROR(CheckLeads());
  const auto registry = Now();
  if (registry == nullptr) return absl::UnavailableError("this service has just lost");
  auto job = registry->Open(info, update);
  if (!job.ok()) return job.status();
  return Holding(registry, std::move(job).value());
}

std::shared_ptr<JobRendezvous> LedJobs::Find(absl::string_view job_id) {
  const auto registry = Now();
  return registry == nullptr ? nullptr : Holding(registry, registry->Find(job_id));
}

std::optional<JobStatus> LedJobs::Status(absl::string_view job_id) {
  const auto registry = Now();
  return registry == nullptr ? std::nullopt : registry->Status(job_id);
}

std::vector<JobStatus> LedJobs::List() {
  const auto registry = Now();
  return registry == nullptr ? std::vector<JobStatus>() : registry->List();
}

std::shared_ptr<JobRegistry> LedJobs::Now() const {
  MutexLock lock(&mu_);
  return registry_;
}

}  // namespace hlaunch
