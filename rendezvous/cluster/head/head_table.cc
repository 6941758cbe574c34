// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/head_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// Versions that this process of the head gives out are above those of all earlier processes, as
// long as each makes fewer than a million of them a second.
uint64_t VersionsFrom(HeadTime t) { return static_cast<uint64_t>(t.wall_ms) * 1000; }

// Returns the request, reduced to the nodes that the user's limit still allows.
JobRequest WithinLimit(const JobRequest& request, const OwnJobs& own, const OwnLimits& limits) {
  JobRequest within = request;
  const int left = limits.max_nodes - own.nodes;
  within.max_nodes = std::min(within.max_nodes, left);
  within.spares = std::min(within.spares, left - within.max_nodes);
  return within;
}

absl::Status NoHost(const std::string& host) {
  return absl::NotFoundError(absl::StrCat("this cluster has no host ", host));
}

}  // namespace

HeadTable::HeadTable(Options options, HeadRecord record, HeadTime t)
    : options_(std::move(options)),
      started_(t.now),
      hosts_(std::move(record.hosts), t.wall_ms),
      jobs_(std::move(record.jobs), record.last_number, VersionsFrom(t)),
      kept_number_(record.last_number) {
  HoldAgain(t);
}

// Reserves again what the stored jobs hold.
void HeadTable::HoldAgain(HeadTime t) {
  for (const uint64_t number : jobs_.placed()) {
    const HeadJob& job = *jobs_.Find(number);
    for (const HeadPart& part : job.parts) {
      if (!part.closed()) hosts_.Hold(job, part, t.wall_ms);
    }
  }
}

absl::Status HeadTable::Came(const std::string& host, HeadTime t) {
  const absl::Status came = hosts_.Came(host, t.wall_ms);
  if (came.ok()) LookersOn(host);
  return came;
}

void HeadTable::Left(const std::string& host, HeadTime t) {
  hosts_.Left(host, t.wall_ms);
  LookersOn(host);
  place_ = true;
}

// Tells users who watch jobs on this host that it is away or connected again.
void HeadTable::LookersOn(const std::string& host) {
  const HeadHost* known = hosts_.Find(host);
  if (known == nullptr) return;
  for (const auto& [number, held] : known->held) {
    if (HeadJob* job = jobs_.Find(number)) jobs_.Seen(*job);
  }
}

void HeadTable::TakeFacts(const std::string& name, HostFacts facts) {
  HeadHost* host = hosts_.Find(name);
  if (host == nullptr || !host->connected) return;
  place_ |= hosts_.TakeFacts(*host, std::move(facts));
}

void HeadTable::TakePart(const std::string& host, const PartTold& told, HeadTime t) {
  lifecycle_.TakePart(host, told, t);
}

void HeadTable::TakeAllTold(const std::string& host, HeadTime t) {
  lifecycle_.TakeAllTold(host, t);
  place_ = true;
}

void HeadTable::TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t) {
  lifecycle_.TakeAnswer(order, answer, t);
}

// Takes each host as if it were connected and open and nothing ran there.
absl::Status HeadTable::CouldEver(const JobRequest& request) const {
  for (const auto& [name, host] : hosts_.all()) {
    if (!host.facts) return absl::OkStatus();  // This host may have what the job needs.
  }
  const Placement placement = PlaceJob(request, hosts_.EmptyRooms());
  return placement.nodes.empty() ? absl::FailedPreconditionError(placement.reason)
                                 : absl::OkStatus();
}

absl::Status HeadTable::MaySubmit(const ClusterUser& user, const JobRequest& request) const {
  const int all = static_cast<int>(jobs_.waiting().size() + jobs_.placed().size());
  return hlaunch::MaySubmit(request, jobs_.OwnOf(user.name, user.uid), all, options_.limits);
}

absl::StatusOr<uint64_t> HeadTable::Submit(const ClusterUser& user, JobRequest request,
                                           HeadTime t) {
  const absl::Status may = MaySubmit(user, request);
  if (!may.ok()) return may;
  HeadJob job;
  job.user = user.name;
  job.uid = user.uid;
  job.grace_s = request.grace_s;
  job.request = std::move(request);
  job.submitted_ms = t.wall_ms;
  job.why = "waits until this cluster's hosts have come";
  const uint64_t number = jobs_.Add(std::move(job)).number;
  place_ = true;
  return number;
}

absl::Status HeadTable::Stop(uint64_t number, const std::string& by, int signal, int grace_s,
                             HeadTime t) {
  HeadJob* job = jobs_.Find(number);
  if (job == nullptr) return absl::NotFoundError(absl::StrCat("there is no job ", number));
  if (job->state == ClusterJobState::kWaiting) place_ = true;
  lifecycle_.End(*job, absl::StrCat("stopped by ", by), signal,
                 grace_s < 0 ? job->request.grace_s : grace_s, t);
  return absl::OkStatus();
}

absl::Status HeadTable::Drain(const std::string& name, const std::string& reason, int evict_s,
                              HeadTime t) {
  HeadHost* host = hosts_.Find(name);
  if (host == nullptr) return NoHost(name);
  hosts_.Drain(*host, reason, evict_s < 0 ? 0 : t.wall_ms + int64_t{evict_s} * 1000);
  lifecycle_.TellToMove(*host);
  place_ = true;
  return absl::OkStatus();
}

absl::Status HeadTable::ThrowOut(const std::string& name, const std::string& by, HeadTime t) {
  if (hosts_.Find(name) == nullptr) return NoHost(name);
  lifecycle_.TakeRemoval(name, absl::StrCat("its host was thrown out by ", by), t);
  hosts_.Remove(name);
  place_ = true;
  return absl::OkStatus();
}

void HeadTable::Tick(HeadTime t) {
  lifecycle_.Tick(t);
  jobs_.Purge(t.wall_ms);
  if (settling_ && !Settling(t)) place_ = true;
}

// Returns true while hosts that the head knew at its start may still connect.
bool HeadTable::Settling(HeadTime t) {
  if (!settling_) return false;
  const bool all = std::all_of(hosts_.all().begin(), hosts_.all().end(),
                               [](const auto& host) { return host.second.ready(); });
  settling_ = !all && t.now - started_ < options_.settle;
  return settling_;
}

bool HeadTable::PlaceSome(HeadTime t) {
  place_ |= lifecycle_.TakeReleased();
  if (Settling(t) || (tried_ == 0 && !std::exchange(place_, false))) return false;
  const std::set<uint64_t>& waiting = jobs_.waiting();
  uint64_t first = 0;
  int tries = 0;
  for (auto at = waiting.upper_bound(tried_); at != waiting.end() && first == 0;
       at = waiting.upper_bound(tried_)) {
    if (tries == kTries) return true;
    HeadJob& job = *jobs_.Find(tried_ = *at);
    if (job.hopeless_with == hosts_.capacity() || WaitsForItsUser(job)) continue;
    ++tries;
    if (!PlaceOne(job, t)) first = job.number;
  }
  tried_ = 0;
  SayBehind(first);
  return place_;
}

bool HeadTable::WaitsForItsUser(HeadJob& job) {
  const OwnJobs own = jobs_.OwnOf(job.user, job.uid);
  const std::string over = OverOwnLimit(job.request, own, options_.limits);
  if (!over.empty()) SayWhy(job, over, 0);
  return !over.empty();
}

// Returns true if the jobs behind this one have their turn.
bool HeadTable::PlaceOne(HeadJob& job, HeadTime t) {
  const OwnJobs own = jobs_.OwnOf(job.user, job.uid);
  const Placement placement =
      options_.limits.max_nodes == 0
          ? PlaceJob(job.request, hosts_.Rooms())
          : PlaceJob(WithinLimit(job.request, own, options_.limits), hosts_.Rooms());
  if (placement.nodes.empty()) {
    const char* others = placement.waits_for_jobs ? "" : "; jobs behind it go first";
    SayWhy(job, absl::StrCat(placement.reason, others), 0);
    job.hopeless_with = placement.waits_for_jobs ? 0 : hosts_.capacity();
    return !placement.waits_for_jobs;
  }
  waits_.push_back(t.wall_ms - job.submitted_ms);
  lifecycle_.Begin(job, placement, options_.make_token(), t);
  return true;
}

// Jobs behind `first` wait for it, except those that cannot start at all and keep that reason. Each
// gets this reason once.
void HeadTable::SayBehind(uint64_t first) {
  if (first != first_ || told_with_ != hosts_.capacity()) told_upto_ = first;
  first_ = first;
  told_with_ = hosts_.capacity();
  if (first == 0) return;
  const std::set<uint64_t>& waiting = jobs_.waiting();
  const std::string why = absl::StrCat("waits behind job ", first);
  for (auto at = waiting.upper_bound(told_upto_); at != waiting.end(); ++at) {
    HeadJob& job = *jobs_.Find(told_upto_ = *at);
    if (job.hopeless_with != hosts_.capacity()) SayWhy(job, why, first);
  }
}

// Only watching users need the reason. It is not stored: after a restart the head finds it again.
void HeadTable::SayWhy(HeadJob& job, const std::string& why, uint64_t behind) {
  if (job.why == why && job.behind == behind) return;
  job.why = why;
  job.behind = behind;
  jobs_.Seen(job);
}

HeadChanges HeadTable::TakeChanges() {
  HeadChanges changes;
  changes.jobs = jobs_.TakeChanged();
  changes.forgotten = jobs_.TakeForgotten();
  // No job number may be given twice, even after all jobs with this or a higher number were
  // forgotten.
  const bool in_a_job = !jobs_.all().empty() && jobs_.all().rbegin()->first == jobs_.last_number();
  changes.hosts = hosts_.TakeChanged() || (!in_a_job && kept_number_ != jobs_.last_number());
  if (changes.hosts) kept_number_ = jobs_.last_number();
  return changes;
}

}  // namespace hlaunch
