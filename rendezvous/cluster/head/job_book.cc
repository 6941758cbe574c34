// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/job_book.h"

#include <algorithm>
#include <utility>

namespace hlaunch {

HeadPart* PartOn(HeadJob& job, const std::string& host) {
  return const_cast<HeadPart*>(PartOn(std::as_const(job), host));
}

const HeadPart* PartOn(const HeadJob& job, const std::string& host) {
  for (const HeadPart& part : job.parts) {
    if (part.host == host) return &part;
  }
  return nullptr;
}

JobBook::JobBook(std::vector<HeadJob> kept, uint64_t last_number, uint64_t versions_from)
    : last_number_(last_number), version_(versions_from) {
  for (HeadJob& job : kept) {
    const uint64_t number = job.number;
    last_number_ = std::max(last_number_, number);
    job.version = ++version_;
    List(jobs_[number] = std::move(job));
  }
}

HeadJob& JobBook::Add(HeadJob job) {
  job.number = ++last_number_;
  HeadJob& added = jobs_[job.number] = std::move(job);
  List(added);
  Changed(added);
  return added;
}

HeadJob* JobBook::Find(uint64_t number) {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

const HeadJob* JobBook::Find(uint64_t number) const {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

void JobBook::Changed(HeadJob& job) {
  changed_.insert(job.number);
  Seen(job);
}

void JobBook::Seen(HeadJob& job) { job.version = ++version_; }

void JobBook::Move(HeadJob& job, ClusterJobState state) {
  Unlist(job);
  job.state = state;
  List(job);
  Changed(job);
}

OwnJobs JobBook::OwnOf(const std::string& user, uint32_t uid) const {
  const auto found = own_.find({user, uid});
  return found == own_.end() ? OwnJobs() : found->second;
}

void JobBook::List(HeadJob& job) {
  if (job.state == ClusterJobState::kEnded) {
    ended_.insert({job.ended_ms, job.number});
    return;
  }
  OwnJobs& own = own_[{job.user, job.uid}];
  if (job.state == ClusterJobState::kWaiting) {
    waiting_.insert(job.number);
    ++own.waiting;
    own.waiting_bytes += BytesOf(job.request);
  } else {
    placed_.insert(job.number);
    ++own.running;
    own.nodes += static_cast<int>(job.parts.size());
  }
}

void JobBook::Unlist(HeadJob& job) {
  if (job.state == ClusterJobState::kEnded) {
    ended_.erase({job.ended_ms, job.number});
    return;
  }
  OwnJobs& own = own_[{job.user, job.uid}];
  if (job.state == ClusterJobState::kWaiting) {
    waiting_.erase(job.number);
    --own.waiting;
    own.waiting_bytes -= BytesOf(job.request);
  } else {
    placed_.erase(job.number);
    --own.running;
    own.nodes -= static_cast<int>(job.parts.size());
  }
  if (own.waiting == 0 && own.running == 0) own_.erase({job.user, job.uid});
}

void JobBook::Purge(int64_t wall_ms) {
  while (!ended_.empty()) {
    const auto [ended_ms, number] = *ended_.begin();
    if (ended_.size() <= kKeepEnded && wall_ms - ended_ms <= kKeepEndedMs) return;
    ended_.erase(ended_.begin());
    jobs_.erase(number);
    changed_.erase(number);
    forgotten_.insert(number);
  }
}

std::set<uint64_t> JobBook::TakeChanged() { return std::exchange(changed_, {}); }
std::set<uint64_t> JobBook::TakeForgotten() { return std::exchange(forgotten_, {}); }

}  // namespace hlaunch
