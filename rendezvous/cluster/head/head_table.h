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
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/head_record.h"
#include "rendezvous/cluster/head/host_book.h"
#include "rendezvous/cluster/head/job_book.h"
#include "rendezvous/cluster/head/job_lifecycle.h"
#include "rendezvous/cluster/head/own_limits.h"

namespace hlaunch {

// What must be written before any order is sent or any user is answered. A value.
struct HeadChanges {
  bool hosts = false;            // The hosts or the last job number have changed.
  std::set<uint64_t> jobs;       // Jobs that have changed.
  std::set<uint64_t> forgotten;  // Jobs that were removed.

  bool none() const { return !hosts && jobs.empty() && forgotten.empty(); }
};

// The head's state of a cluster: hosts that come and go, jobs that wait for their turn and jobs
// that run. It is a state machine without I/O: the caller reports every event. From time to time,
// after one or many events, the caller calls PlaceSome, which starts the jobs that have their turn.
// Then it calls TakeChanges, which says what to write, and then TakeOrders, which says what to
// send. The caller checks the user's rights first (may_ask.h).
//
// Jobs start in the order of their numbers: while a job waits for others to end, no job behind it
// starts. Two kinds of jobs hold up no other job: one that the connected and usable hosts could not
// run even if all other jobs ended, and one that waits because its user has reached a limit.
//
// Belongs to one thread.
class HeadTable {
 public:
  // One PlaceSome tries to place at most this many jobs.
  static constexpr int kTries = 64;

  struct Options {
    OwnLimits limits;
    // After its start the head waits at most this long for the hosts that it knows before it places
    // a job.
    Duration settle = std::chrono::seconds(10);
    std::function<std::string()> make_token;  // Makes a job's secret.
  };

  HeadTable(Options options, HeadRecord record, HeadTime t);

  // ---- What happens to hosts.
  // Errors:
  //   ResourceExhausted - the cluster has as many hosts as it may have.
  absl::Status Came(const std::string& host, HeadTime t);
  void Left(const std::string& host, HeadTime t);
  void TakeFacts(const std::string& host, HostFacts facts);
  void TakePart(const std::string& host, const PartTold& told, HeadTime t);
  void TakeAllTold(const std::string& host, HeadTime t);
  void TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t);

  // ---- What people want.
  // Checks that the known hosts could run this job if all of them were connected and empty.
  //
  // Errors:
  //   FailedPrecondition - they could not; the message says what the job needs and what they have.
  absl::Status CouldEver(const JobRequest& request) const;
  // Errors:
  //   ResourceExhausted, InvalidArgument - as MaySubmit in own_limits.h.
  absl::Status MaySubmit(const ClusterUser& user, const JobRequest& request) const;
  // Errors: as MaySubmit.
  absl::StatusOr<uint64_t> Submit(const ClusterUser& user, JobRequest request, HeadTime t);
  // Has the job end. A waiting job ends at once.
  //
  // Errors:
  //   NotFound - there is no such job.
  absl::Status Stop(uint64_t job, const std::string& by, int signal, int grace_s, HeadTime t);
  // Drains the host: no job is placed there any more. An empty `reason` ends the drain. If
  // `evict_s` is not negative, jobs on the host are told to move away, and those that still run
  // there after that many seconds are stopped.
  //
  // Errors:
  //   NotFound - there is no such host.
  absl::Status Drain(const std::string& host, const std::string& reason, int evict_s, HeadTime t);
  // Removes the host. Its parts count as lost. Errors: as Drain.
  absl::Status ThrowOut(const std::string& host, const std::string& by, HeadTime t);

  // Called at least once a second.
  void Tick(HeadTime t);

  // Places waiting jobs if anything has changed that they may wait for. Returns true if there is
  // more to do: the caller calls again at once, and that call goes on behind the last job tried.
  bool PlaceSome(HeadTime t);

  // ---- What is to be done.
  HeadChanges TakeChanges();
  std::vector<HeadOrder> TakeOrders() { return lifecycle_.TakeOrders(); }

  const HostBook& hosts() const { return hosts_; }
  const JobBook& jobs() const { return jobs_; }
  // Returns the milliseconds from submission to placement of each job that was placed since the
  // last call.
  std::vector<int64_t> TakeWaits() { return std::exchange(waits_, {}); }

 private:
  void HoldAgain(HeadTime t);
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
  JobLifecycle lifecycle_{hosts_, jobs_};
  std::vector<int64_t> waits_;
  uint64_t kept_number_;    // The last job number that was stored with the hosts.
  bool place_ = true;       // Something has changed that jobs may wait for.
  uint64_t tried_ = 0;      // PlaceSome goes on behind this job; 0: it starts with the first one.
  uint64_t first_ = 0;      // The job that waits for others to end; 0: none does.
  uint64_t told_upto_ = 0;  // Jobs up to this one show that they wait behind first_.
  uint64_t told_with_ = 0;  // hosts_.capacity() when they were told.
  bool settling_ = true;
};

}  // namespace hlaunch
