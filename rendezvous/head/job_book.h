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
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/own_limits.h"

namespace hlaunch {

// The jobs that the head knows, by number: those that wait, that are placed, and that have ended
// not long ago. Whoever changes a job says so here, so that it is written and those who look on are
// told.
//
// Belongs to one thread.
class JobBook {
 public:
  static constexpr size_t kKeepEnded = 1000;
  static constexpr int64_t kKeepEndedMs = 7LL * 24 * 3600 * 1000;

  // `versions_from`: no version of an earlier life of the head is as high.
  JobBook(std::vector<HeadJob> kept, uint64_t last_number, uint64_t versions_from);

  HeadJob& Add(HeadJob job);  // With the next number.
  HeadJob* Find(uint64_t number);
  const HeadJob* Find(uint64_t number) const;
  const std::map<uint64_t, HeadJob>& all() const { return jobs_; }
  uint64_t last_number() const { return last_number_; }
  const std::set<uint64_t>& waiting() const { return waiting_; }
  const std::set<uint64_t>& placed() const { return placed_; }

  // It is another than before: to be written, and seen.
  void Changed(HeadJob& job);
  // The same of what only those see who look on, and need not survive.
  void Seen(HeadJob& job);
  // Changes its state.
  void Move(HeadJob& job, ClusterJobState state);

  OwnJobs OwnOf(const std::string& user, uint32_t uid) const;

  // Forgets what has ended long ago.
  void Purge(int64_t wall_ms);

  // Those that were changed, and that were forgotten, since this was last called.
  std::set<uint64_t> TakeChanged();
  std::set<uint64_t> TakeForgotten();

 private:
  using User = std::pair<std::string, uint32_t>;
  void List(HeadJob& job);
  void Unlist(HeadJob& job);

  std::map<uint64_t, HeadJob> jobs_;
  std::set<uint64_t> waiting_, placed_, changed_, forgotten_;
  std::set<std::pair<int64_t, uint64_t>> ended_;  // When, and which.
  std::map<User, OwnJobs> own_;
  uint64_t last_number_;
  uint64_t version_;
};

}  // namespace hlaunch
