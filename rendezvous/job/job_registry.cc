// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/job_registry.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/round/quorum.h"
#include "rendezvous/table/membership.h"

namespace hlaunch {
namespace {

constexpr Duration kShown = std::chrono::minutes(10);  // How long what is done stays.
constexpr Duration kRetry = std::chrono::seconds(3);   // Until a record that failed is tried again.
// For all jobs together. A deadline takes microseconds; one thread waits where a record goes to a
// slow disk, and the others go on.
constexpr int kDeadlineThreads = 4;

std::string TimeOfDay(int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  return absl::StrFormat("%02d:%02d:%02d", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

// A full disk is news once, not once for each job.
//
// Thread-safe.
class KeepingLog {
 public:
  void Failed(const std::string& line, Instant now) {
    const std::string admitted = [&] {
      MutexLock lock(&mu_);
      return failed_.Admit(line, now);
    }();
    if (!admitted.empty()) LogError(admitted);
  }
  void Again(const std::string& line, Instant now) {
    const std::string admitted = [&] {
      MutexLock lock(&mu_);
      return again_.Admit(line, now);
    }();
    if (!admitted.empty()) LogInfo(admitted);
  }

 private:
  Mutex mu_;
  RareLog failed_ ABSL_GUARDED_BY(mu_);
  RareLog again_ ABSL_GUARDED_BY(mu_);
};

// Keeps the records of one job id, in their order, also over several runs of it: what a former
// run still says is not kept once the next has begun. A record that cannot be kept is tried again.
//
// Thread-safe.
class JobKeeping {
 public:
  JobKeeping(const JobRegistry::Options& options, std::shared_ptr<KeepingLog> log,
             const Clock& clock)
      : keep_(options.keep), kept_in_(options.kept_in), log_(std::move(log)), clock_(clock) {}

  // Of the run that begins now. What comes with the number of an earlier one is ignored.
  int NextRun() {
    MutexLock lock(&mu_);
    unkept_.reset();
    return ++run_;
  }

  void Keep(int run, const JobRecord& record) {
    MutexLock lock(&mu_);
    while (busy_) idle_.Wait(&mu_);
    if (run != run_) return;
    unkept_ = record;
    TryLocked();
  }

  // Tries again to keep what could not be kept, if it is time.
  void Retry() {
    MutexLock lock(&mu_);
    if (!busy_ && unkept_.has_value() && clock_.Now() >= next_try_) TryLocked();
  }

  // What is wrong, for people; empty if nothing is.
  std::string Trouble() const {
    MutexLock lock(&mu_);
    return trouble_.empty() ? ""
                            : absl::StrCat("not kept in ", kept_in_, " since ",
                                           TimeOfDay(failed_since_), ": ", trouble_);
  }

 private:
  void TryLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const JobRecord record = *std::exchange(unkept_, std::nullopt);
    const int run = run_;
    const bool failed_before = !trouble_.empty();
    busy_ = true;
    mu_.Unlock();
    const absl::Status status = keep_(record);
    Say(record.job_id, status, failed_before);
    mu_.Lock();
    busy_ = false;
    idle_.SignalAll();
    if (status.ok()) {
      trouble_.clear();
      return;
    }
    if (!failed_before) failed_since_ = WallMillis();
    trouble_ = std::string(status.message());
    next_try_ = clock_.Now() + kRetry;
    if (run == run_ && !unkept_.has_value()) unkept_ = record;
  }

  void Say(const std::string& job_id, const absl::Status& status, bool failed_before) {
    if (!status.ok()) {
      log_->Failed(
          absl::StrCat("job ", job_id, " goes on and would not survive a restart of this service: ",
                       status.message()),
          clock_.Now());
    } else if (failed_before) {
      log_->Again(absl::StrCat("job ", job_id, " is kept in ", kept_in_, " again"), clock_.Now());
    }
  }

  const std::function<absl::Status(const JobRecord&)> keep_;
  const std::string kept_in_;
  const std::shared_ptr<KeepingLog> log_;  // Of all jobs.
  const Clock& clock_;

  mutable Mutex mu_;
  CondVar idle_;
  int run_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // A thread is in keep_.
  std::optional<JobRecord> unkept_ ABSL_GUARDED_BY(mu_);
  std::string trouble_ ABSL_GUARDED_BY(mu_);
  int64_t failed_since_ ABSL_GUARDED_BY(mu_) = 0;  // Wall time.
  Instant next_try_ ABSL_GUARDED_BY(mu_);
};

namespace {

JobRules Rules(std::string job_id, const JobPolicy& policy,
               const std::shared_ptr<JobKeeping>& keeping) {
  JobRules rules;
  rules.job_id = std::move(job_id);
  rules.policy = policy;
  if (keeping != nullptr) {
    rules.commit = [keeping, run = keeping->NextRun()](const JobRecord& record) {
      keeping->Keep(run, record);
    };
  }
  return rules;
}

}  // namespace

JobRegistry::JobRegistry(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      log_(std::make_shared<KeepingLog>()),
      threads_(clock, kDeadlineThreads) {
  MutexLock lock(&mu_);
  for (const JobRecord& record : options_.records) Restore(record);
}

JobRegistry::~JobRegistry() = default;

void JobRegistry::Restore(const JobRecord& record) {
  Job& job = jobs_[record.job_id];
  if (options_.keep) job.keeping = std::make_shared<JobKeeping>(options_, log_, clock_);
  job.rendezvous = std::make_shared<JobRendezvous>(Rules(record.job_id, record.policy, job.keeping),
                                                   record, clock_, &threads_);
}

// A node takes up the conversation with the job that knows it. One that joins afresh finds the
// job, or begins it.
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
  auto job = jobs_.find(info.job_id);
  if (job == jobs_.end()) {
    if (jobs_.size() >= static_cast<size_t>(options_.max_jobs) && !MakeRoomLocked()) {
      return absl::ResourceExhaustedError(absl::StrCat("this rendezvous has ", jobs_.size(),
                                                       " jobs (--max-jobs ", options_.max_jobs,
                                                       "); waiting until one of them is over"));
    }
    job = jobs_.emplace(info.job_id, Job()).first;
    if (options_.keep) job->second.keeping = std::make_shared<JobKeeping>(options_, log_, clock_);
  } else {
    former_.push_back(std::move(job->second.rendezvous));
  }
  JobRules rules = Rules(info.job_id, info.policy, job->second.keeping);
  rules.set_by = NodeName(info);
  job->second.rendezvous = std::make_shared<JobRendezvous>(std::move(rules), clock_, &threads_);
  job->second.done_since.reset();
  return job->second.rendezvous;
}

// Only a job that nobody else holds: a node that has just found it here is about to join it.
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
  std::vector<std::shared_ptr<JobRendezvous>> ended;  // Its threads are waited for without lock.
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
