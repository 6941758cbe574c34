// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/job_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/record/job_keeping.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

constexpr Duration kShown = std::chrono::minutes(10);  // How long a job that is done stays.
// Threads for all jobs together. A deadline takes microseconds; if a record goes to a slow disk,
// one thread waits and the others go on.
constexpr int kDeadlineThreads = 4;
// The same, for records that go to a place on the network.
constexpr int kKeepingThreads = 4;

JobRules Rules(std::string job_id, const JobPolicy& policy,
               const std::shared_ptr<JobKeeping>& keeping) {
  JobRules rules;
  rules.job_id = std::move(job_id);
  rules.policy = policy;
  if (keeping != nullptr) {
    rules.commit = [keeping, run = keeping->NextRun()](const JobRecord& record) {
      return keeping->Keep(run, record);
    };
    rules.leads = [keeping] { return keeping->leads(); };
  }
  return rules;
}

}  // namespace

JobRegistry::JobRegistry(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      log_(std::make_shared<KeepingLog>()),
      threads_(clock, kDeadlineThreads),
      keeping_threads_(clock, kKeepingThreads) {
  MutexLock lock(&mu_);
  for (const KeptRecord& kept : options_.records) Restore(kept);
}

JobRegistry::~JobRegistry() = default;

bool JobRegistry::shared() const { return options_.keeper != nullptr && options_.keeper->shared(); }

absl::Status JobRegistry::StartThreads() {
  HLAUNCH_RETURN_IF_ERROR(threads_.Start());
  return shared() ? keeping_threads_.Start() : absl::OkStatus();
}

JobThreads JobRegistry::ThreadsOfJobs() {
  return {&threads_, shared() ? &keeping_threads_ : nullptr};
}

void JobRegistry::Restore(const KeptRecord& kept) {
  const JobRecord& record = kept.record;
  Job& job = jobs_[record.job_id];
  job.keeping = NewKeeping(kept.version);
  job.rendezvous = std::make_shared<JobRendezvous>(Rules(record.job_id, record.policy, job.keeping),
                                                   record, clock_, ThreadsOfJobs());
}

std::shared_ptr<JobKeeping> JobRegistry::NewKeeping(RecordVersion version) const {
  if (options_.keeper == nullptr) return nullptr;
  return std::make_shared<JobKeeping>(*options_.keeper, version, log_, clock_);
}

// A known node resumes the conversation with its job. A node that joins afresh finds the job, or
// begins it.
absl::StatusOr<std::shared_ptr<JobRendezvous>> JobRegistry::Open(const NodeInfo& info,
                                                                 const NodeUpdate& update) {
  MutexLock lock(&mu_);
  const auto found = jobs_.find(info.job_id);
  const bool fresh = update.round == 0 && update.phase == NodePhase::kReady;
  if (found == jobs_.end()) {
    if (fresh) return BeginLocked(info);
    return absl::AbortedError(absl::StrCat(
        NodeName(info), " comes from round ", update.round, " of ", JobName(info.job_id),
        ", which this rendezvous does not know: it is over, or what ",
        "was known of it is lost (a service keeps it with --state). Start the ",
        "node again to begin the job anew"));
  }
  const std::shared_ptr<JobRendezvous>& job = found->second.rendezvous;
  if (!fresh || job->Holds(info.node_id, info.incarnation)) return job;
  if (job->state() == JobState::kOver ? job->Done() : job->Done() && job.use_count() == 1) {
    return BeginLocked(info);
  }
  if (job->state() != JobState::kOver) return job;
  return absl::UnavailableError(absl::StrCat("the former run of job ", info.job_id,
                                             " is ending; waiting for ",
                                             NameSome(job->AwaitAllFinished(Instant()))));
}

absl::StatusOr<std::shared_ptr<JobRendezvous>> JobRegistry::BeginLocked(const NodeInfo& info) {
  HLAUNCH_RETURN_IF_ERROR(CheckFits(info));
  auto job = jobs_.find(info.job_id);
  if (job == jobs_.end()) {
    if (jobs_.size() >= static_cast<size_t>(options_.max_jobs) && !MakeRoomLocked()) {
      return absl::ResourceExhaustedError(absl::StrCat("this rendezvous has ", jobs_.size(),
                                                       " jobs (--max-jobs ", options_.max_jobs,
                                                       "); waiting until one of them is over"));
    }
    job = jobs_.emplace(info.job_id, Job()).first;
    job->second.keeping = NewKeeping(0);
  } else {
    former_.push_back(std::move(job->second.rendezvous));
  }
  JobRules rules = Rules(info.job_id, info.policy, job->second.keeping);
  rules.set_by = NodeName(info);
  job->second.rendezvous =
      std::make_shared<JobRendezvous>(std::move(rules), clock_, ThreadsOfJobs());
  job->second.done_since.reset();
  return job->second.rendezvous;
}

absl::Status JobRegistry::CheckFits(const NodeInfo& info) const {
  const int nodes = info.policy.max_nodes + info.policy.spares;
  if (options_.keeper == nullptr || nodes <= options_.keeper->max_nodes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      JobName(info.job_id), " may have ", nodes, " nodes, and ", options_.keeper->place(),
      " keeps the records of jobs of up to ", options_.keeper->max_nodes()));
}

// Drops only a job that no caller holds: a caller that has just found the job is about to join a
// node to it.
bool JobRegistry::MakeRoomLocked() {
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    if (job->second.rendezvous.use_count() > 1 || !job->second.rendezvous->Done()) continue;
    DropLocked(job);
    return true;
  }
  return false;
}

JobRegistry::Map::iterator JobRegistry::DropLocked(Map::iterator job) {
  former_.push_back(std::move(job->second.rendezvous));
  return jobs_.erase(job);
}

std::shared_ptr<JobRendezvous> JobRegistry::Find(absl::string_view job_id) {
  MutexLock lock(&mu_);
  const auto job = jobs_.find(job_id);
  return job == jobs_.end() ? nullptr : job->second.rendezvous;
}

std::optional<JobStatus> JobRegistry::Status(absl::string_view job_id) {
  std::shared_ptr<JobRendezvous> rendezvous;
  std::shared_ptr<JobKeeping> keeping;
  {
    MutexLock lock(&mu_);
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end()) return std::nullopt;
    rendezvous = job->second.rendezvous;
    keeping = job->second.keeping;
  }
  JobStatus status = rendezvous->Status();
  const std::string trouble = keeping == nullptr ? "" : keeping->Trouble();
  if (!trouble.empty()) absl::StrAppend(&status.explanation, "; ", trouble);
  return status;
}

std::vector<JobStatus> JobRegistry::List() {
  std::vector<std::string> ids;
  {
    MutexLock lock(&mu_);
    for (const auto& [id, job] : jobs_) ids.push_back(id);
  }
  std::vector<JobStatus> list;
  for (const std::string& id : ids) {
    std::optional<JobStatus> status = Status(id);
    if (!status.has_value()) continue;
    status->nodes.clear();
    list.push_back(std::move(*status));
  }
  return list;
}

void JobRegistry::Tidy() {
  // Destroyed without the lock: that may wait for threads.
  std::vector<std::shared_ptr<JobRendezvous>> ended;
  std::vector<std::shared_ptr<JobKeeping>> keepings;
  {
    MutexLock lock(&mu_);
    const Instant now = clock_.Now();
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      Job& job = it->second;
      if (!job.rendezvous->Done()) {
        job.done_since.reset();
      } else if (!job.done_since.has_value()) {
        job.done_since = now;
      } else if (now - *job.done_since >= kShown && job.rendezvous.use_count() == 1) {
        it = DropLocked(it);
        continue;
      }
      if (job.keeping != nullptr) keepings.push_back(job.keeping);
      ++it;
    }
    const auto held = [](const auto& job) { return job.use_count() > 1; };
    const auto free = std::partition(former_.begin(), former_.end(), held);
    ended.assign(std::make_move_iterator(free), std::make_move_iterator(former_.end()));
    former_.erase(free, former_.end());
  }
  for (const auto& keeping : keepings) keeping->Retry();
}

int JobRegistry::going_on() const {
  MutexLock lock(&mu_);
  return static_cast<int>(std::count_if(jobs_.begin(), jobs_.end(), [](const auto& job) {
    return job.second.rendezvous->state() != JobState::kOver;
  }));
}

}  // namespace hlaunch
