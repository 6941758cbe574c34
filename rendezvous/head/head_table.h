// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/head_record.h"
#include "rendezvous/head/host_book.h"
#include "rendezvous/head/job_book.h"
#include "rendezvous/head/job_course.h"
#include "rendezvous/head/own_limits.h"

namespace hlaunch {

// What is to be written before any order leaves or anybody is answered. A value.
struct HeadChanges {
  bool hosts = false;            // The hosts or the last number.
  std::set<uint64_t> jobs;       // These are others than before,
  std::set<uint64_t> forgotten;  // and these are no more.

  bool none() const { return !hosts && jobs.empty() && forgotten.empty(); }
};

// A cluster of one's own as its head sees it: hosts that come and go, jobs that wait for their turn
// and run. A state machine without I/O: whatever happens is told to it. Once in a while, after one
// or many of these calls, PlaceSome starts what has its turn; then TakeChanges says what to write
// and TakeOrders what to send, in this order. Rights are asked before (may_ask.h).
//
// Jobs start in the order of their numbers: while one waits for others to end, none behind it
// starts. A job that the hosts which are there and may be used could not have even if all others
// ended holds up nobody, nor does one that waits for jobs of its own user by his limit.
//
// Belongs to one thread.
class HeadTable {
 public:
  // So many jobs are tried on the hosts by one PlaceSome.
  static constexpr int kTries = 64;

  struct Options {
    OwnLimits limits;
    // After its start it waits so long for the hosts that it knows before it places a job.
    Duration settle = std::chrono::seconds(10);
    std::function<std::string()> make_token;  // A job's secret.
  };

  HeadTable(Options options, HeadRecord record, HeadTime t);

  // ---- What happens to hosts.
  // Errors:
  //   ResourceExhausted - there are as many as a cluster may have.
  absl::Status Came(const std::string& host, HeadTime t);
  void Left(const std::string& host, HeadTime t);
  void TakeFacts(const std::string& host, HostFacts facts);
  void TakePart(const std::string& host, const PartTold& told, HeadTime t);
  void TakeAllTold(const std::string& host, HeadTime t);
  void TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t);

  // ---- What people want.
  // Whether the hosts that are known could have this job, if all were there and empty.
  //
  // Errors:
  //   FailedPrecondition - they could not; the message says what it needs and what there is.
  absl::Status CouldEver(const JobRequest& request) const;
  // Errors:
  //   ResourceExhausted, InvalidArgument - as of the function in own_limits.h.
  absl::Status MaySubmit(const ClusterUser& user, const JobRequest& request) const;
  // Errors: as MaySubmit.
  absl::StatusOr<uint64_t> Submit(const ClusterUser& user, JobRequest request, HeadTime t);
  // A job that waits ends at once.
  //
  // Errors:
  //   NotFound - there is no such job.
  absl::Status Stop(uint64_t job, const std::string& by, int signal, int grace_s, HeadTime t);
  // An empty reason: not any more. `evict_s` of zero or more: jobs there are told to move, and what
  // runs there so many seconds later is stopped.
  //
  // Errors:
  //   NotFound - there is no such host.
  absl::Status Drain(const std::string& host, const std::string& reason, int evict_s, HeadTime t);
  // What was on it is lost, and it is known no more.
  absl::Status ThrowOut(const std::string& host, const std::string& by, HeadTime t);

  // At least once a second.
  void Tick(HeadTime t);

  // Places jobs if anything has happened that they may wait for. Returns whether it has more to do,
  // at once; it goes on behind the last job that it tried.
  bool PlaceSome(HeadTime t);

  // ---- What is to be done.
  HeadChanges TakeChanges();
  std::vector<HeadOrder> TakeOrders() { return course_.TakeOrders(); }

  const HostBook& hosts() const { return hosts_; }
  const JobBook& jobs() const { return jobs_; }
  // Milliseconds from submission to place of those that were placed since this was last called.
  std::vector<int64_t> TakeWaits() { return std::exchange(waits_, {}); }

 private:
  void HoldAgain();
  bool Settling(HeadTime t);
  void LookersOn(const std::string& host);
  bool WaitsForItsUser(HeadJob& job);
  bool PlaceOne(HeadJob& job, HeadTime t);
  void SayBehind(uint64_t first);
  void SayWhy(HeadJob& job, const std::string& why, uint64_t behind);

  const Options options_;
  const Instant started_;
  HostBook hosts_;
  JobBook jobs_;
  JobCourse course_{hosts_, jobs_};
  std::vector<int64_t> waits_;
  uint64_t kept_number_;    // What the hosts' file has as the last one.
  bool place_ = true;       // Something has changed that jobs may wait for.
  uint64_t tried_ = 0;      // PlaceSome goes on behind this job; 0: at the first one.
  uint64_t first_ = 0;      // The job that waits for others to end; 0: none does.
  uint64_t told_upto_ = 0;  // Those behind it have been told that they do, as far as this one.
  bool settling_ = true;
};

}  // namespace hlaunch
