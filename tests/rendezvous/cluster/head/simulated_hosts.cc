// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/cluster/head/simulated_hosts.h"

#include <csignal>
#include <set>

#include "proto/base/release.h"

namespace hlaunch {

PartTold SimulatedPart::Told(uint64_t job) const {
  PartTold told;
  told.job = job;
  told.state = state;
  told.meeting = meeting;
  if (state == PartState::kEnded) told.exit_code = code;
  return told;
}

HostFacts SimulatedHost::Facts() const {
  HostFacts facts;
  facts.version = kRelease;
  facts.boot_id = "boot" + std::to_string(boot_);
  facts.slots = 8;
  for (int id = 0; id < devices_; ++id) facts.devices.push_back({id, "hpu", ""});
  return facts;
}

std::vector<PartTold> SimulatedHost::AllTold() const {
  std::vector<PartTold> told;
  for (const auto& [job, part] : parts_) told.push_back(part.Told(job));
  return told;
}

std::vector<PartTold> SimulatedHost::Take(const HeadOrder& order, int64_t now,
                                          absl::Status* answer) {
  if (const auto* start = std::get_if<PartOrder>(&order.what)) return Start(*start, now);
  if (const auto* signal = std::get_if<SignalOrder>(&order.what)) {
    return Signal(*signal, now, answer);
  }
  if (const auto* leave = std::get_if<LeaveOrder>(&order.what)) {
    const auto found = parts_.find(leave->job);
    if (found == parts_.end()) *answer = absl::NotFoundError("no such part");
    if (found != parts_.end()) found->second.is_leaving = !leave->reason.empty();
  }
  if (const auto* forget = std::get_if<ForgetOrder>(&order.what)) {
    const auto found = parts_.find(forget->job);
    if (found != parts_.end() && !found->second.lives()) parts_.erase(found);
  }
  return {};
}

std::vector<PartTold> SimulatedHost::Start(const PartOrder& order, int64_t now) {
  const auto [found, is_new] = parts_.try_emplace(order.job);
  SimulatedPart& part = found->second;
  if (is_new) {
    part.node_rank = order.node_rank;
    part.meets = order.max_nodes + order.spares > 1;
    part.devices = order.devices;
    part.runs_at = now + Random(1, 4);
    part.ends_at = part.runs_at + Random(1, 60);
    part.code = Random(0, 9) == 0 ? 1 : 0;
    part.stubborn = Random(0, 19) == 0;
    if (Random(0, 99) == 0) part.state = PartState::kFailed;
  }
  return {part.Told(order.job)};
}

std::vector<PartTold> SimulatedHost::Signal(const SignalOrder& order, int64_t now,
                                            absl::Status* answer) {
  const auto found = parts_.find(order.job);
  if (found == parts_.end()) {
    *answer = absl::NotFoundError("no such part");
    return {};
  }
  SimulatedPart& part = found->second;
  if (!part.lives() || (order.signal == SIGTERM && part.stubborn)) return {};
  part.code = 128 + order.signal;
  part.ends_at = std::min(part.ends_at, now + (order.signal == SIGKILL ? 0 : Random(1, 20)));
  return {};
}

void SimulatedHost::BootAnew() {
  ++boot_;
  std::erase_if(parts_, [this](const auto& part) { return part.second.lives() && Random(0, 1); });
  for (auto& [job, part] : parts_) {
    if (part.lives()) part.state = PartState::kLost;
  }
}

std::string SimulatedHost::Conflict() const {
  std::set<int> taken;
  for (const auto& [job, part] : parts_) {
    if (!part.lives()) continue;
    for (const int id : part.devices) {
      if (!taken.insert(id).second) return name_ + ": device " + std::to_string(id) + " twice";
    }
  }
  return "";
}

}  // namespace hlaunch
