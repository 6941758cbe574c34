// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/job_lifecycle.h"

#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "proto/base/wall_time.h"
#include "rendezvous/cluster/head/job_words.h"

namespace hlaunch {
namespace {

constexpr size_t kMostUnwanted = 1024;  // Also bounds a host that reports jobs that never existed.

bool Lives(PartState state) {
  return state == PartState::kStarting || state == PartState::kRunning;
}

bool AllClosed(const HeadJob& job) {
  return std::all_of(job.parts.begin(), job.parts.end(),
                     [](const HeadPart& part) { return part.closed(); });
}

bool IsSpare(const HeadJob& job, const HeadPart& part) {
  return part.node_rank >= static_cast<int>(job.parts.size()) - job.spares;
}

// Returns true if the start of the part was ordered, or will be as soon as its host is connected.
bool MayStart(const HeadJob& job, const HeadPart& part) {
  return part.node_rank == 0 || !job.meeting.empty();
}

// Returns the jobs that hold something on the host. It is a copy, since ending a job changes
// host.held.
std::vector<uint64_t> HeldOn(const HeadHost& host) {
  std::vector<uint64_t> held;
  for (const auto& [number, what] : host.held) held.push_back(number);
  return held;
}

// Clears what only the start of a job needs, and what is secret.
void ForgetStart(HeadJob& job) {
  job.token.clear();
  job.meeting.clear();
  job.request.environment.clear();
  job.request.limits.clear();
  job.kill_at.reset();
}

}  // namespace

nlohmann::json ToJson(const LeaveOrder& order) {
  return {{"job", order.job}, {"reason", order.reason}};
}

const char* VerbOf(const HeadOrder& order) {
  constexpr const char* kVerbs[] = {"start", "signal", "forget", "drain"};  // In variant order.
  return kVerbs[order.what.index()];
}

nlohmann::json BodyOf(const HeadOrder& order) {
  return std::visit([](const auto& what) { return ToJson(what); }, order.what);
}

void JobLifecycle::Begin(HeadJob& job, const Placement& placement, std::string token, HeadTime t) {
  job.token = std::move(token);
  job.device_kind = placement.kind;
  job.spares = placement.spares;
  job.behind = 0;
  for (const PlacedNode& node : placement.nodes) {
    HeadPart part;
    part.node_rank = static_cast<int>(job.parts.size());
    part.host = node.host;
    part.boot_id = hosts_.Find(node.host)->facts->boot_id;
    part.devices = node.devices;
    part.slots = node.slots;
    part.workers = node.workers;
    hosts_.Hold(job, part, t.wall_ms);
    job.parts.push_back(std::move(part));
  }
  job.why = WhyStarting(job);
  jobs_.Move(job, ClusterJobState::kStarting);
  OrderStart(job, job.parts.front());
}

void JobLifecycle::OrderStart(HeadJob& job, HeadPart& part) {
  const HeadHost* host = hosts_.Find(part.host);
  if (host == nullptr || !host->ready()) return;
  PartOrder order;
  order.job = job.number;
  order.node_rank = part.node_rank;
  order.spares = job.spares;
  order.max_nodes = static_cast<int>(job.parts.size()) - job.spares;  // No other node will join.
  order.min_nodes = job.request.min_nodes;
  order.user = job.user;
  order.uid = job.uid;
  order.meeting = part.node_rank == 0 ? "" : job.meeting;
  order.token = job.token;
  order.devices = part.devices;
  order.device_kind = job.device_kind;
  order.workers = part.workers;
  order.request = job.request;
  orders_.push_back({part.host, std::move(order)});
  // The host did not have the job yet when it was told of its drain.
  OrderLeave(job, part, *host);
}

// is_leaving is stored before the order to leave is sent, and stays set until the host has accepted
// the order that the part may stay.
void JobLifecycle::OrderLeave(HeadJob& job, HeadPart& part, const HeadHost& host) {
  const bool leave = host.stop_ms != 0;
  if (!leave && !part.is_leaving) return;
  if (!part.is_leaving) jobs_.Changed(job);
  part.is_leaving = true;
  orders_.push_back(
      {part.host, LeaveOrder{job.number, leave ? host.drained : "", ++part.leave_orders}});
}

void JobLifecycle::OrderOthers(HeadJob& job) {
  for (HeadPart& part : job.parts) {
    if (part.node_rank != 0 && part.state == PartState::kStarting) OrderStart(job, part);
  }
}

void JobLifecycle::OrderSignal(const HeadJob& job, const HeadPart& part) {
  if (job.signal == 0 || part.closed() || part.signalled == job.signal) return;
  orders_.push_back({part.host, SignalOrder{job.number, job.signal}});
}

void JobLifecycle::SignalParts(const HeadJob& job) {
  for (const HeadPart& part : job.parts) {
    const HeadHost* host = hosts_.Find(part.host);
    if (host != nullptr && host->ready()) OrderSignal(job, part);
  }
}

Duration JobLifecycle::TimeToEnd(const HeadJob& job) {
  const bool is_own = job.grace_s == job.request.grace_s;
  return std::chrono::seconds(job.grace_s) + (is_own ? kAfterGrace : Duration::zero());
}

void JobLifecycle::End(HeadJob& job, const std::string& why, int signal, int grace_s, HeadTime t) {
  if (job.state == ClusterJobState::kEnded) return;
  if (job.told_to_end.empty()) job.told_to_end = why;
  if (job.state == ClusterJobState::kWaiting) return EndJob(job, t);
  if (job.signal == signal || job.signal == SIGKILL) return;
  job.signal = signal;
  job.grace_s = grace_s;
  job.kill_at.reset();
  if (signal == SIGTERM) job.kill_at = t.now + TimeToEnd(job);
  job.why = job.told_to_end;
  jobs_.Move(job, ClusterJobState::kEnding);
  CloseThoseNeverOrdered(job, t);
  SignalParts(job);
}

void JobLifecycle::CloseThoseNeverOrdered(HeadJob& job, HeadTime t) {
  for (HeadPart& part : job.parts) {
    if (part.closed() || MayStart(job, part)) continue;
    Close(job, part, PartState::kEnded, "was not started", t);
  }
}

void JobLifecycle::TakePart(const std::string& name, const PartTold& told, HeadTime t) {
  HeadHost* host = hosts_.Find(name);
  if (host == nullptr || !host->connected) return;
  if (host->held.contains(told.job)) host->told.insert(told.job);
  HeadJob* job = jobs_.Find(told.job);
  HeadPart* part = job == nullptr ? nullptr : PartOn(*job, name);
  if (part == nullptr || part->closed()) return TakeUnwanted(*host, told);
  TakeFigures(*job, *part, told);
  if (Lives(told.state)) TakeMeeting(*job, *part, told);  // A closed part hosts no rendezvous.
  TakeState(*job, *part, told, t);
}

// Handles a part that no job here counts on. While the part lives, no job is placed on its host.
void JobLifecycle::TakeUnwanted(HeadHost& host, const PartTold& told) {
  if (!Lives(told.state)) {
    orders_.push_back({host.name, ForgetOrder{told.job}});
    if (host.unwanted.erase(told.job) == 0) return;
    hosts_.CapacityChanged(host);
    released_ = true;
    return;
  }
  if (host.unwanted.contains(told.job)) return;
  if (host.unwanted.size() < kMostUnwanted) host.unwanted.insert(told.job);
  hosts_.CapacityChanged(host);
  const bool known = jobs_.Find(told.job) != nullptr;
  orders_.push_back({host.name, SignalOrder{told.job, known ? SIGKILL : SIGTERM}});
}

void JobLifecycle::TakeFigures(HeadJob& job, const HeadPart& part, const PartTold& told) {
  if (part.node_rank != 0) return;
  const bool same =
      job.round == told.round && job.restarts == told.restarts && job.goodput == told.goodput;
  if (same) return;
  job.round = told.round;
  job.restarts = told.restarts;
  job.goodput = told.goodput;
  jobs_.Seen(job);
}

void JobLifecycle::TakeMeeting(HeadJob& job, const HeadPart& part, const PartTold& told) {
  if (part.node_rank != 0 || told.meeting.empty() || told.meeting == job.meeting) return;
  if (job.signal != 0) return;  // No node may join any more.
  job.meeting = told.meeting;
  if (job.state == ClusterJobState::kStarting) job.why = WhyStarting(job);
  jobs_.Changed(job);
  OrderOthers(job);
}

void JobLifecycle::TakeState(HeadJob& job, HeadPart& part, const PartTold& told, HeadTime t) {
  if (!Lives(told.state)) {
    part.exit_code = told.exit_code;
    orders_.push_back({part.host, ForgetOrder{job.number}});
    return Close(job, part, told.state, told.trouble, t);
  }
  if (told.state == PartState::kStarting || part.state == PartState::kRunning) return;
  part.state = PartState::kRunning;
  jobs_.Changed(job);
  if (job.state != ClusterJobState::kStarting) return;
  job.why = WhyStarting(job);
  if (part.node_rank != 0) return;
  job.why = "";
  job.started_ms = t.wall_ms;
  jobs_.Move(job, ClusterJobState::kRunning);
}

void JobLifecycle::TakeAllTold(const std::string& name, HeadTime t) {
  HeadHost* host = hosts_.Find(name);
  if (host == nullptr || !host->told_facts) return;
  host->told_all = true;
  hosts_.CapacityChanged(*host);
  for (const uint64_t number : HeldOn(*host)) {
    HeadJob* job = jobs_.Find(number);
    HeadPart* part = job == nullptr ? nullptr : PartOn(*job, name);
    if (part == nullptr || part->closed()) continue;
    if (host->told.contains(number)) {
      if (part->state == PartState::kRunning) jobs_.Seen(*job);
      OrderSignal(*job, *part);  // The host may have missed it while it was away.
    } else {
      TakeMissing(*job, *part, *host, t);
    }
  }
  TellToMove(*host);
}

// The host has connected and does not have the part.
void JobLifecycle::TakeMissing(HeadJob& job, HeadPart& part, const HeadHost& host, HeadTime t) {
  const bool again = part.state == PartState::kStarting;
  if (again && !MayStart(job, part)) {
    part.boot_id = host.facts->boot_id;  // The part was never ordered.
    jobs_.Changed(job);
    return;
  }
  if (host.facts->boot_id != part.boot_id) {
    return Close(job, part, PartState::kLost, "its host was started anew", t);
  }
  const bool hosted = part.node_rank == 0 && !job.meeting.empty();
  const bool over = job.parts.front().closed();
  if (again && job.signal == 0 && !hosted && !over) return OrderStart(job, part);
  if (again && !hosted) return Close(job, part, PartState::kEnded, "was not started", t);
  Close(job, part, PartState::kLost, "its host does not have it any more", t);
}

void JobLifecycle::TakeAnswer(const HeadOrder& order, const absl::Status& answer, HeadTime t) {
  // It is unknown whether the host took the order. The head repeats it when the host connects.
  if (absl::IsUnavailable(answer) || absl::IsDeadlineExceeded(answer)) return;
  if (std::holds_alternative<ForgetOrder>(order.what)) return;
  const uint64_t number = std::visit([](const auto& what) { return what.job; }, order.what);
  HeadJob* job = jobs_.Find(number);
  HeadPart* part = job == nullptr ? nullptr : PartOn(*job, order.host);
  if (part == nullptr || part->closed()) return;
  if (const auto* leave = std::get_if<LeaveOrder>(&order.what)) {
    return TakeLeaveAnswer(*job, *part, *leave, answer);
  }
  const auto* signal = std::get_if<SignalOrder>(&order.what);
  if (signal == nullptr && !answer.ok()) {
    return Close(*job, *part, PartState::kFailed, std::string(answer.message()), t);
  }
  if (signal != nullptr && answer.ok()) {
    part->signalled = signal->signal;
    jobs_.Changed(*job);
  }
  if (signal != nullptr && answer.code() == absl::StatusCode::kNotFound) {
    Close(*job, *part, PartState::kLost, "its host does not have it any more", t);
  }
}

void JobLifecycle::TakeLeaveAnswer(HeadJob& job, HeadPart& part, const LeaveOrder& order,
                                   const absl::Status& answer) {
  // No job leaves a host that has no such part, or that does not know this order.
  const bool taken = answer.ok() || absl::IsNotFound(answer) || absl::IsUnimplemented(answer);
  if (!taken || !order.reason.empty() || order.nth != part.leave_orders) return;
  part.is_leaving = false;
  jobs_.Changed(job);
}

void JobLifecycle::TakeRemoval(const std::string& name, const std::string& why, HeadTime t) {
  const HeadHost* host = hosts_.Find(name);
  if (host == nullptr) return;
  for (const uint64_t number : HeldOn(*host)) {
    HeadJob* job = jobs_.Find(number);
    HeadPart* part = job == nullptr ? nullptr : PartOn(*job, name);
    if (part != nullptr && !part->closed()) Close(*job, *part, PartState::kLost, why, t);
  }
}

void JobLifecycle::TellToMove(const HeadHost& host) {
  if (!host.ready()) return;
  for (const auto& [number, held] : host.held) {
    HeadJob* job = jobs_.Find(number);
    HeadPart* part = job == nullptr ? nullptr : PartOn(*job, host.name);
    if (part != nullptr) OrderLeave(*job, *part, host);
  }
}

void JobLifecycle::Close(HeadJob& job, HeadPart& part, PartState state, std::string trouble,
                         HeadTime t) {
  part.state = state;
  part.trouble = std::move(trouble);
  hosts_.Release(job.number, part.host);
  released_ = true;
  jobs_.Changed(job);
  AfterClosed(job, part, t);
}

void JobLifecycle::AfterClosed(HeadJob& job, const HeadPart& part, HeadTime t) {
  if (AllClosed(job)) return EndJob(job, t);
  // No node can join a node 0 that ended before it reported where its rendezvous is.
  const bool alone = part.node_rank == 0 && job.meeting.empty();
  // A short job may have done its work before its host reported that it runs.
  const bool ran = job.state == ClusterJobState::kRunning || part.exit_code == 0 ||
                   job.parts.front().exit_code == 0;
  if (ran && alone) return CloseThoseNeverOrdered(job, t);
  if (ran || job.state != ClusterJobState::kStarting || IsSpare(job, part)) return;
  std::string why = absl::StrCat(NameOf(job, part), " ended before the job ran");
  if (part.exit_code) absl::StrAppend(&why, ", with exit code ", *part.exit_code);
  if (!part.trouble.empty()) absl::StrAppend(&why, ": ", part.trouble);
  End(job, why, SIGTERM, job.request.grace_s, t);
}

void JobLifecycle::EndJob(HeadJob& job, HeadTime t) {
  if (job.state == ClusterJobState::kEnded) return;
  job.why = HowItEnded(job);
  job.exit_code = ExitCodeOf(job);
  job.ended_ms = t.wall_ms;
  job.behind = 0;
  jobs_.Move(job, ClusterJobState::kEnded);
  ForgetStart(job);
}

void JobLifecycle::Tick(HeadTime t) {
  KillLate(t);
  for (const auto& [name, host] : hosts_.all()) {
    if (host.stop_ms != 0 && t.wall_ms >= host.stop_ms) EndOn(host, t);
  }
}

void JobLifecycle::KillLate(HeadTime t) {
  const std::set<uint64_t> placed = jobs_.placed();
  for (const uint64_t number : placed) {
    HeadJob& job = *jobs_.Find(number);
    if (job.signal != SIGTERM) continue;
    if (!job.kill_at) {  // The head was restarted since the SIGTERM.
      job.kill_at = t.now + TimeToEnd(job);
    }
    if (t.now < *job.kill_at) continue;
    job.signal = SIGKILL;
    jobs_.Changed(job);
    SignalParts(job);
  }
}

// Ends the jobs on a host whose deadline has passed.
void JobLifecycle::EndOn(const HeadHost& host, HeadTime t) {
  for (const uint64_t number : HeldOn(host)) {
    HeadJob* job = jobs_.Find(number);
    if (job == nullptr || job->signal != 0) continue;
    End(*job,
        absl::StrCat(host.name, " is drained: ", host.drained, "; its deadline of ",
                     WallTime(host.stop_ms), " has passed"),
        SIGTERM, job->request.grace_s, t);
  }
}

}  // namespace hlaunch
