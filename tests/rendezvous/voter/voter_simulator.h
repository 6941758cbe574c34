// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/voter/voter.h"

// Simulates the voters of one job in one thread: the real state machines, a network that delays,
// loses, duplicates and reorders messages and cuts links, clocks that run at different rates, and
// processes that stand still and die. One seed gives one history, to the last event.

namespace hlaunch {

enum class VoterFault {
  kDies,          // Some process dies.
  kLeaderDies,    // The leader dies.
  kDiesHalfway,   // The leader dies while it sends: only some processes get the message.
  kStandsStill,   // Some process stands still and wakes later.
  kLeaderStands,  // The leader stands still and wakes later.
  kPartition,     // The network splits in two.
  kBridge,        // The network splits in two, but one node reaches both parts.
  kCutOff,        // One node is cut off.
  kLeaderCutOff,  // The leader's node is cut off.
  kDeaf,          // Nothing reaches one node.
  kMute,          // Nothing leaves one node.
  kOneWay,        // Nothing passes from one node to one other node.
  kSlow,          // All messages are slow for a while, so that they overtake each other.
  kNodeLeaves,    // The job gets a different set of nodes, though all of them live.
  kCount,
};
inline constexpr size_t kVoterFaults = static_cast<size_t>(VoterFault::kCount);
const char* VoterFaultName(VoterFault fault);

struct VoterSimulation {
  // The kinds of faults that a history has.
  enum class Trouble {
    kAll,
    kOneFollower,  // One follower at a time, so that the leader must never be lost.
    kHosts,        // The host of the rendezvous dies ten times in a row.
    kDeaths,       // Only deaths, which no process can prove.
  };
  uint64_t seed = 1;
  int nodes = 5;
  Trouble trouble = Trouble::kAll;
  OnHostLoss on_host_loss = OnHostLoss::kWait;
  // A restarted process takes the identity of the one before, though it lacks that process's
  // memory. That is forbidden; this option shows why.
  bool keeps_identity = false;
  std::function<void(const std::string& line)> trace;  // Empty: no trace.
};

struct VoterSimulationResult {
  std::string violation;  // The broken promise and the time; empty if none was broken.
  uint64_t events = 0;
  uint64_t leaders = 0;
  uint64_t decisions = 0;
  uint64_t processes = 0;
  bool alive = false;  // Enough were left to go on, and did; otherwise all said that they wait.
  std::array<uint64_t, kVoterFaults> faults{};
};

// Runs one history. Equal simulations give equal histories.
VoterSimulationResult Simulate(const VoterSimulation& simulation);

// The command that runs the same history again and prints each line of its trace.
std::string ReplayCommand(const VoterSimulation& simulation);

}  // namespace hlaunch
