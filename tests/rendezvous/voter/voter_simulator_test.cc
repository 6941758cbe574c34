// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/voter/voter_simulator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "gtest/gtest.h"
#include "proto/base/clock.h"

// Many histories that check what a group of voters promises (voter_promises.h). A broken
// promise is reported with the command that replays the history. plant_mistake.py tests with
// planted mistakes that the simulation finds mistakes.

namespace hlaunch {
namespace {

using Trouble = VoterSimulation::Trouble;

#ifdef HLAUNCH_SANITIZED
constexpr uint64_t kShare = 20;  // A sanitizer is that much slower.
#else
constexpr uint64_t kShare = 1;
#endif

// The summed results of `histories` histories.
VoterSimulationResult RunHistories(VoterSimulation simulation, uint64_t histories) {
  VoterSimulationResult sum;
  uint64_t alive = 0;
  const Instant began = MonotonicClock().Now();
  histories = std::max<uint64_t>(1, histories / kShare);
  for (simulation.seed = 1; simulation.seed <= histories; ++simulation.seed) {
    const VoterSimulationResult result = Simulate(simulation);
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    if (!result.violation.empty()) return sum;
    sum.events += result.events;
    sum.leaders += result.leaders;
    sum.decisions += result.decisions;
    sum.processes += result.processes;
    if (result.alive) ++alive;
    for (size_t i = 0; i < kVoterFaults; ++i) sum.faults[i] += result.faults[i];
  }
  const double took = std::chrono::duration<double>(MonotonicClock().Now() - began).count();
  std::printf(
      "%d nodes: %llu histories (%llu could go on), %llu events, %llu leaders, "
      "%llu decisions, %llu processes; %.0f histories a second\n",
      simulation.nodes, static_cast<unsigned long long>(histories),
      static_cast<unsigned long long>(alive), static_cast<unsigned long long>(sum.events),
      static_cast<unsigned long long>(sum.leaders), static_cast<unsigned long long>(sum.decisions),
      static_cast<unsigned long long>(sum.processes), static_cast<double>(histories) / took);
  return sum;
}

class SimulatedVoters : public testing::TestWithParam<int> {};

TEST_P(SimulatedVoters, KeepTheirPromises) {
  VoterSimulation simulation;
  simulation.nodes = GetParam();
  const VoterSimulationResult sum = RunHistories(simulation, 2500);
  if (HasFailure()) return;
  for (size_t i = 0; i < kVoterFaults; ++i) {  // Otherwise the histories test nothing.
    EXPECT_GT(sum.faults[i], 0U) << VoterFaultName(static_cast<VoterFault>(i));
  }
}

TEST_P(SimulatedVoters, KeepTheirLeaderWhileAMajorityIsWell) {
  if (GetParam() < 3) GTEST_SKIP() << "there is no majority without each of them";
  VoterSimulation simulation;
  simulation.nodes = GetParam();
  simulation.trouble = Trouble::kOneFollower;
  RunHistories(simulation, 300);
}

INSTANTIATE_TEST_SUITE_P(Nodes, SimulatedVoters, testing::Values(2, 3, 4, 5, 9));

// Hosts die one after the other; each time the next voter leads with all that was decided.
TEST(SimulatedHosts, TenMayDie) {
  for (const int nodes : {3, 5, 12}) {
    VoterSimulation simulation;
    simulation.nodes = nodes;
    simulation.trouble = Trouble::kHosts;
    const VoterSimulationResult sum = RunHistories(simulation, 100);
    EXPECT_GE(sum.leaders, 11 * 100 / kShare) << nodes << " nodes";
  }
}

// Shows what --on-host-loss continue is for and what it costs.
TEST(SimulatedPairThatContinues, GoesOnWhereAHostDies) {
  VoterSimulation simulation;
  simulation.nodes = 2;
  simulation.trouble = Trouble::kDeaths;
  simulation.on_host_loss = OnHostLoss::kContinue;
  RunHistories(simulation, 300);
}

TEST(SimulatedPairThatContinues, MayBeTwoJobsWhereOnlyTheWayIsCut) {
  int broken = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    VoterSimulation simulation;
    simulation.seed = seed;
    simulation.nodes = 2;
    simulation.on_host_loss = OnHostLoss::kContinue;
    if (!Simulate(simulation).violation.empty()) ++broken;
  }
  EXPECT_GT(broken, 0);
}

// Shows why a restarted process must be another member.
TEST(SimulatedProcessThatForgot, LosesDecisionsIfItStandsForItsPredecessor) {
  int broken = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    VoterSimulation simulation;
    simulation.seed = seed;
    simulation.nodes = 5;
    simulation.keeps_identity = true;
    if (!Simulate(simulation).violation.empty()) ++broken;
  }
  EXPECT_GT(broken, 0);
}

}  // namespace
}  // namespace hlaunch
