// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/job_leader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "rendezvous/job/job_registry.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLook = milliseconds(100);  // How often a leader checks that it still leads.
constexpr Duration kAfterTrouble = std::chrono::seconds(3);
// A registry and its keeper, which must outlive it. The thread that checks whether this service
// still leads shares `keeper`.
struct KeptRegistry {
  KeptRegistry(std::shared_ptr<RecordKeeper> the_keeper, JobRegistry::Options options)
      : keeper(std::move(the_keeper)), registry(std::move(options), MonotonicClock()) {}
  const std::shared_ptr<RecordKeeper> keeper;
  JobRegistry registry;
};

}  // namespace

JobLeader::JobLeader(Options options, LedJobs& jobs) : options_(std::move(options)), jobs_(jobs) {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "job-leader");
    Run();
  });
}

JobLeader::~JobLeader() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    stopped_.SignalAll();
  }
  thread_.join();
}

void JobLeader::Run() {
  do {
    auto keeper = options_.lead();
    if (absl::IsAlreadyExists(keeper.status())) {
      StandBy(absl::StrCat("this service stands by; ", keeper.status().message(), " leads"));
      continue;
    }
    if (!Wait(Now())) return;
    auto listed = keeper.ok() ? (*keeper)->List() : keeper.status();
    if (!Wait(Now())) return;
    if (listed.ok()) {
      Lead(std::move(keeper).value(), std::move(listed).value());
    } else {
      keeper = listed.status();  // Drops the keeper, so that another may lead.
      StandBy(absl::StrCat("this service stands by: ", listed.status().message()));
      if (!Wait(Now() + kAfterTrouble)) return;
    }
  } while (Wait(Now() + options_.ask_again));
}

void JobLeader::Lead(std::shared_ptr<RecordKeeper> keeper, RecordKeeper::Listed listed) {
  for (const std::string& warning : listed.warnings) LogWarning(warning);
  const size_t restored = listed.records.size();
  JobRegistry::Options options;
  options.max_jobs = options_.max_jobs;
  options.keeper = keeper.get();
  options.records = std::move(listed.records);
  auto kept = std::make_shared<KeptRegistry>(keeper, std::move(options));
  if (const absl::Status started = kept->registry.StartThreads(); !started.ok()) {
    return StandBy(absl::StrCat("this service stands by: ", started.message()));
  }
  jobs_.Begin({kept, &kept->registry}, options_.name);
  said_ = absl::StrCat("this service leads; ", restored, restored == 1 ? " job" : " jobs",
                       " restored from ", keeper->place());
  LogInfo(said_);
  kept.reset();
  while (keeper->LeadsUntil() > Now()) {
    if (!Wait(Now() + kLook)) return;
  }
  const std::string why = absl::StrCat("this service has lost its lease in ", keeper->place(),
                                       ": it decides nothing more, and stands by");
  StandBy(why);
  options_.on_lost(absl::UnavailableError(why));
}

void JobLeader::StandBy(const std::string& why) {
  jobs_.StandBy(why);
  if (why != std::exchange(said_, why)) LogWarning(why);
}

bool JobLeader::Wait(Instant deadline) {
  MutexLock lock(&mu_);
  while (!stop_ && Now() < deadline) stopped_.WaitUntil(&mu_, deadline);
  return !stop_;
}

}  // namespace hlaunch
