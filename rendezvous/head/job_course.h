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
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/host_book.h"
#include "rendezvous/head/job_book.h"
#include "rendezvous/head/place_job.h"

namespace hlaunch {

// A job is to move away from its node here, since the host will be gone. Of `drain`. A daemon that
// does not know it says so, and the job stays.
struct LeaveOrder {
  uint64_t job = 0;
  std::string reason;  // Empty: it may stay after all.
  uint64_t nth = 0;    // Of the orders of this kind for this part. It is not sent.
};
nlohmann::json ToJson(const LeaveOrder& order);

// What a node daemon is to do. A value.
struct HeadOrder {
  std::string host;
  std::variant<PartOrder, SignalOrder, ForgetOrder, LeaveOrder> what;
};
const char* VerbOf(const HeadOrder& order);
nlohmann::json BodyOf(const HeadOrder& order);

// The course of each job from its place to its end. Node rank 0 starts alone and tells where it
// hosts the job's rendezvous; then the others start.
//
//            Begin               node 0 runs              all parts closed
//   kWaiting -----> kStarting ----------------> kRunning ------------------> kEnded
//                       | a part is lost or failed  | End                      ^
//                       +---------------------------+---------> kEnding -------+
//
// Orders are made again whenever a host comes and tells that its part is not there yet, so none is
// lost with a connection or with the head; daemons take each as often as it comes.
//
// Belongs to one thread; both books outlive it.
class JobCourse {
 public:
  // After SIGTERM and the job's own grace, until SIGKILL: its agents kill its workers then, and
  // take a moment to say how it ended. A time that a user named is waited for as he named it.
  static constexpr Duration kAfterGrace = std::chrono::seconds(10);

  JobCourse(HostBook& hosts, JobBook& jobs) : hosts_(hosts), jobs_(jobs) {}

  // Holds what the job was placed on. `token`: the job's secret.
  void Begin(HeadJob& job, const Placement& placement, std::string token, HeadTime t);
  // Has it end. `why`, for people; SIGKILL after SIGTERM hurries it.
  void End(HeadJob& job, const std::string& why, int signal, int grace_s, HeadTime t);

  void TakePart(const std::string& host, const PartTold& told, HeadTime t);
  // The host has told all parts that are there: what becomes of the others.
  void TakeAllTold(const std::string& host, HeadTime t);
  // The host has answered an order.
  void TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t);
  // The host is no host of this cluster any more.
  void TakeRemoval(const std::string& host, const std::string& why, HeadTime t);

  // Jobs are to move away from this host, if it has a deadline, or may stay after all. A host that
  // is away is told when it comes.
  void TellToMove(const HeadHost& host);

  // SIGKILL for those that have not ended in time; an end for those that are still where they were
  // to move away from.
  void Tick(HeadTime t);

  std::vector<HeadOrder> TakeOrders() { return std::exchange(orders_, {}); }
  // Whether something that a job held is free since this was last called.
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
