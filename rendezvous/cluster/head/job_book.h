// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/cluster/envelope.h"
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/own_limits.h"

namespace hlaunch {

// The jobs that the head knows, by number: jobs that wait, jobs that are placed, and jobs that
// ended not long ago. Code that changes a job reports it here, so that the job is written and
// watching users are told.
//
// Belongs to one thread.
class JobBook {
 public:
  static constexpr size_t kKeepEnded = 1000;
  static constexpr int64_t kKeepEndedMs = 7LL * 24 * 3600 * 1000;

  // `versions_from` is above every version that an earlier process of the head has given out.
  JobBook(std::vector<HeadJob> kept, uint64_t last_number, uint64_t versions_from);

  HeadJob& Add(HeadJob job);  // Gives the job the next number.
  HeadJob* Find(uint64_t number);
  const HeadJob* Find(uint64_t number) const;
  const std::map<uint64_t, HeadJob>& all() const { return jobs_; }
  uint64_t last_number() const { return last_number_; }
  const std::set<uint64_t>& waiting() const { return waiting_; }
  const std::set<uint64_t>& placed() const { return placed_; }

  // Reports a change that must be written and that watching users must see.
  void Changed(HeadJob& job);
  // Reports a change for watching users only. It is not written.
  void Seen(HeadJob& job);
  // Changes the job's state.
  void Move(HeadJob& job, ClusterJobState state);

  OwnJobs OwnOf(const std::string& user, uint32_t uid) const;

  // Forgets jobs that ended long ago.
  void Purge(int64_t wall_ms);

  // Return the jobs that were changed, and those that were forgotten, since the last call.
  std::set<uint64_t> TakeChanged();
  std::set<uint64_t> TakeForgotten();

 private:
  using User = std::pair<std::string, uint32_t>;
  void List(HeadJob& job);
  void Unlist(HeadJob& job);

  std::map<uint64_t, HeadJob> jobs_;
  std::set<uint64_t> waiting_, placed_, changed_, forgotten_;
  std::set<std::pair<int64_t, uint64_t>> ended_;  // When the job ended, and its number.
  std::map<User, OwnJobs> own_;
  uint64_t last_number_;
  uint64_t version_;
};

}  // namespace hlaunch
