// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/host_book.h"
#include "rendezvous/cluster/head/job_book.h"
#include "rendezvous/cluster/head/place_job.h"

namespace hlaunch {

// Tells a node daemon that the job must move away from its node there, since the host will go away.
// The verb is `drain`. A daemon that does not know this order answers so, and the job stays.
struct LeaveOrder {
  uint64_t job = 0;
  std::string reason;  // Empty if the job may stay after all.
  uint64_t nth = 0;    // Counts the leave orders for this part. Not sent.
};
nlohmann::json ToJson(const LeaveOrder& order);

// An order to a node daemon. A value.
struct HeadOrder {
  std::string host;
  std::variant<PartOrder, SignalOrder, ForgetOrder, LeaveOrder> what;
};
const char* VerbOf(const HeadOrder& order);
nlohmann::json BodyOf(const HeadOrder& order);

// Leads each job from its placement to its end. Node rank 0 starts alone and reports where it hosts
// the job's rendezvous; then the other nodes start.
//
//            Begin               node 0 runs              all parts closed
//   kWaiting -----> kStarting ----------------> kRunning ------------------> kEnded
//                       | a part is lost or failed  | End                      ^
//                       +---------------------------+---------> kEnding -------+
//
// The head repeats an order whenever a host connects and reports that its part is not there yet, so
// no order is lost with a connection or with the head. Daemons accept the same order any number of
// times.
//
// Belongs to one thread; both books outlive it.
class JobLifecycle {
 public:
  // The head waits this much longer than the job's own grace between SIGTERM and SIGKILL: the
  // agents kill the workers when the grace is over, and then need a moment to report how the job
  // ended. If a user named another grace, the head adds nothing to it.
  static constexpr Duration kAfterGrace = std::chrono::seconds(10);

  JobLifecycle(HostBook& hosts, JobBook& jobs) : hosts_(hosts), jobs_(jobs) {}

  // Starts the job and reserves what it was placed on. `token` is the job's secret.
  void Begin(HeadJob& job, const Placement& placement, std::string token, HeadTime t);
  // Has the job end. `why` is for people. A call with SIGKILL after one with SIGTERM kills the job
  // at once.
  void End(HeadJob& job, const std::string& why, int signal, int grace_s, HeadTime t);

  void TakePart(const std::string& host, const PartTold& told, HeadTime t);
  // The host has reported all parts that it has. Decides what becomes of parts that it did not
  // report.
  void TakeAllTold(const std::string& host, HeadTime t);
  // The host has answered an order.
  void TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t);
  // The host is no host of this cluster any more.
  void TakeRemoval(const std::string& host, const std::string& why, HeadTime t);

  // Tells jobs to move away from this host if it has a deadline, else that they may stay after all.
  // A host that is away is told when it connects.
  void TellToMove(const HeadHost& host);

  // Sends SIGKILL to jobs that have not ended in time, and ends jobs that are still on a host after
  // its deadline.
  void Tick(HeadTime t);

  std::vector<HeadOrder> TakeOrders() { return std::exchange(orders_, {}); }
  // Returns true if a job has released anything since the last call.
  bool TakeReleased() { return std::exchange(released_, false); }

 private:
  void OrderStart(HeadJob& job, HeadPart& part);
  void OrderOthers(HeadJob& job);
  void OrderLeave(HeadJob& job, HeadPart& part, const HeadHost& host);
  void SignalParts(const HeadJob& job);
  void KillLate(HeadTime t);
  void EndOn(const HeadHost& host, HeadTime t);
  void OrderSignal(const HeadJob& job, const HeadPart& part);
  void TakeState(HeadJob& job, HeadPart& part, const PartTold& told, HeadTime t);
  void TakeLeaveAnswer(HeadJob& job, HeadPart& part, const LeaveOrder& order,
                       const absl::Status& answer);
  void TakeFigures(HeadJob& job, const HeadPart& part, const PartTold& told);
  void TakeMeeting(HeadJob& job, const HeadPart& part, const PartTold& told);
  void TakeUnwanted(HeadHost& host, const PartTold& told);
  void TakeMissing(HeadJob& job, HeadPart& part, const HeadHost& host, HeadTime t);
  void Close(HeadJob& job, HeadPart& part, PartState state, std::string trouble, HeadTime t);
  static Duration TimeToEnd(const HeadJob& job);
  void CloseThoseNeverOrdered(HeadJob& job, HeadTime t);
  void AfterClosed(HeadJob& job, const HeadPart& part, HeadTime t);
  void EndJob(HeadJob& job, HeadTime t);

  HostBook& hosts_;
  JobBook& jobs_;
  std::vector<HeadOrder> orders_;
  bool released_ = false;
};

}  // namespace hlaunch
