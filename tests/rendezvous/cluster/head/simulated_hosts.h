// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rendezvous/cluster/head/head_table.h"

namespace hlaunch {

// A part of a job in its true state, which the head may not know. A value.
struct SimulatedPart {
  int node_rank = 0;
  bool meets = false;
  std::vector<int> devices;
  PartState state = PartState::kStarting;
  std::string meeting;
  int64_t runs_at = 0, ends_at = 0;  // Seconds.
  int code = 0;
  bool stubborn = false;    // SIGTERM does not end it.
  bool is_leaving = false;  // It was told to leave, and not told since that it may stay.

  bool lives() const { return state == PartState::kStarting || state == PartState::kRunning; }
  PartTold Told(uint64_t job) const;
};

// A host with its node daemon. It takes orders and tells of its parts; it may be cut off or reboot.
class SimulatedHost {
 public:
  SimulatedHost(std::string name, int devices, std::mt19937& random)
      : name_(std::move(name)), devices_(devices), random_(random) {}

  const std::string& name() const { return name_; }
  bool connected = false;
  int64_t comes_at = 0;  // When it connects again.

  HostFacts Facts() const;
  std::vector<PartTold> AllTold() const;
  // Carries out the order. Returns what the host tells because of it, and sets `answer`.
  std::vector<PartTold> Take(const HeadOrder& order, int64_t now, absl::Status* answer);
  // Returns what has changed by `now`. `node0_lives` says whether node 0 of a job lives.
  template <typename Node0Lives>
  std::vector<PartTold> Pass(int64_t now, const Node0Lives& node0_lives);
  // The host reboots: each living part is forgotten or becomes lost, at random.
  void BootAnew();

  const std::map<uint64_t, SimulatedPart>& parts() const { return parts_; }
  // Names a device that two living parts hold; empty if there is none.
  std::string Conflict() const;
  int64_t Random(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random_);
  }

 private:
  std::vector<PartTold> Start(const PartOrder& order, int64_t now);
  std::vector<PartTold> Signal(const SignalOrder& order, int64_t now, absl::Status* answer);

  const std::string name_;
  const int devices_;
  std::mt19937& random_;
  int boot_ = 1;
  std::map<uint64_t, SimulatedPart> parts_;
};

template <typename Node0Lives>
std::vector<PartTold> SimulatedHost::Pass(int64_t now, const Node0Lives& node0_lives) {
  std::vector<PartTold> told;
  for (auto& [job, part] : parts_) {
    if (!part.lives()) continue;
    const SimulatedPart before = part;
    if (part.node_rank != 0 && part.state == PartState::kRunning && !node0_lives(job) &&
        part.ends_at > now + 40) {
      part.ends_at = now + Random(1, 40);
    }
    if (part.node_rank == 0 && part.meets && part.meeting.empty() && now + 1 >= part.runs_at) {
      part.meeting = name_ + ":5000";
    }
    if (part.state == PartState::kStarting && now >= part.runs_at) part.state = PartState::kRunning;
    if (now >= part.ends_at) part.state = PartState::kEnded;
    if (part.state != before.state || part.meeting != before.meeting)
      told.push_back(part.Told(job));
  }
  return told;
}

}  // namespace hlaunch
