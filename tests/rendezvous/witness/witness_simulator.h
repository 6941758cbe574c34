// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "rendezvous/witness/witness.h"

// The witnesses of one job in one thread: the real state machines, a network that delays, loses,
// doubles, reorders and cuts, clocks that run at different rates, and processes that stand still
// and die. One seed is one history, to the last event.

namespace hlaunch {

enum class WitnessFault {
  kDies,          // Some process.
  kLeaderDies,    // …
  kDiesHalfway,   // The leader, while it sends: some have heard, others have not.
  kStandsStill,   // Some process, which wakes later.
  kLeaderStands,  // …
  kPartition,     // In two parts.
  kBridge,        // … which one node reaches both of.
  kCutOff,        // One node.
  kLeaderCutOff,  // …
  kDeaf,          // Nothing reaches one node.
  kMute,          // Nothing leaves one node.
  kOneWay,        // From one node to another one.
  kSlow,          // All messages for a while, so that they overtake each other.
  kNodeLeaves,    // The job's nodes are others, though all of them live.
  kCount,
};
inline constexpr size_t kWitnessFaults = static_cast<size_t>(WitnessFault::kCount);
const char* WitnessFaultName(WitnessFault fault);

struct WitnessSimulation {
  // What befalls the group.
  enum class Trouble {
    kAll,
    kOneFollower,  // One follower at a time, so that the leader never may be lost.
    kHosts,        // The host of the rendezvous dies, again and again, ten times.
    kDeaths,       // Nothing but deaths, of which nobody has proof.
  };
  uint64_t seed = 1;
  int nodes = 5;
  Trouble trouble = Trouble::kAll;
  OnHostLoss on_host_loss = OnHostLoss::kWait;
  // A process that is started anew stands for the one before, whose memory it does not have. It
  // must not: this shows why.
  bool keeps_identity = false;
  std::function<void(const std::string& line)> trace;  // Empty: none.
};

struct WitnessSimulationResult {
  std::string violation;  // The promise that was broken, and when; empty: none was.
  uint64_t events = 0;
  uint64_t leaders = 0;
  uint64_t decisions = 0;
  uint64_t processes = 0;
  bool alive = false;  // In the end enough were left to go on, and they did. Else they said so.
  std::array<uint64_t, kWitnessFaults> faults{};
};

// Runs one history; the same simulation gives the same one.
WitnessSimulationResult Simulate(const WitnessSimulation& simulation);

// The command that runs it again, line by line.
std::string ReplayCommand(const WitnessSimulation& simulation);

}  // namespace hlaunch
