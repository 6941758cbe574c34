// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/simulator/simulator.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "gtest/gtest.h"

// Many histories that check the round table's promises (simulator/promises.h). A broken promise is
// reported with the command that replays the history.

namespace hlaunch {
namespace {

#ifdef HLAUNCH_SANITIZED
constexpr uint64_t kShare = 12;  // A sanitizer is that much slower.
#else
constexpr uint64_t kShare = 1;
#endif

// Histories of one size, and the sums of their results.
class Histories {
 public:
  explicit Histories(int nodes, int services = 1)
      : nodes_(kShare > 1 ? std::min(nodes, 2000) : nodes), services_(services) {}

  void Run(uint64_t seeds, uint64_t steps) {
    for (uint64_t seed = 1; seed <= std::max<uint64_t>(1, seeds / kShare); ++seed) {
      Simulation simulation;
      simulation.seed = seed;
      simulation.nodes = nodes_;
      simulation.steps = steps;
      simulation.services = services_;
      const SimulationResult result = Simulate(simulation);
      Add(result);
      EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
      if (!result.violation.empty()) return;
    }
    Tell();
  }

  uint64_t faults(Fault fault) const { return sum_.faults[static_cast<size_t>(fault)]; }
  uint64_t faults(ServiceFault fault) const {
    return sum_.service_faults[static_cast<size_t>(fault)];
  }
  const SimulationResult& sum() const { return sum_; }

 private:
  void Add(const SimulationResult& result) {
    ++histories_;
    if (result.outcome == 0) ++succeeded_;
    sum_.steps += result.steps;
    sum_.rounds += result.rounds;
    sum_.job_restarts += result.job_restarts;
    sum_.records += result.records;
    sum_.restores += result.restores;
    sum_.agents += result.agents;
    for (size_t i = 0; i < kFaults; ++i) sum_.faults[i] += result.faults[i];
    for (size_t i = 0; i < kServiceFaults; ++i) sum_.service_faults[i] += result.service_faults[i];
    sum_.terms += result.terms;
    sum_.lost += result.lost;
  }

  void Tell() const {
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf(
        "%d nodes: %llu histories (%llu succeeded), %llu steps, %llu agents, %llu rounds, "
        "%llu restarts, %llu records, %llu restores\n",
        nodes_, number(histories_), number(succeeded_), number(sum_.steps), number(sum_.agents),
        number(sum_.rounds), number(sum_.job_restarts), number(sum_.records),
        number(sum_.restores));
    for (size_t i = 0; i < kFaults; ++i) {
      std::printf("%s%s %llu", i == 0 ? "  " : ", ", FaultName(static_cast<Fault>(i)),
                  number(sum_.faults[i]));
    }
    std::printf("\n");
    if (services_ > 1) TellOfServices();
  }

  void TellOfServices() const {
    std::printf("  %d services: %llu terms, %llu lost", services_,
                static_cast<unsigned long long>(sum_.terms),
                static_cast<unsigned long long>(sum_.lost));
    for (size_t i = 0; i < kServiceFaults; ++i) {
      std::printf(", %s %llu", ServiceFaultName(static_cast<ServiceFault>(i)),
                  static_cast<unsigned long long>(sum_.service_faults[i]));
    }
    std::printf("\n");
  }

  const int nodes_;
  const int services_;
  uint64_t histories_ = 0;
  uint64_t succeeded_ = 0;
  SimulationResult sum_;
};

class SimulatedJob : public testing::TestWithParam<std::tuple<int, uint64_t, uint64_t>> {};

TEST_P(SimulatedJob, KeepsItsPromises) {
  const auto [nodes, seeds, steps] = GetParam();
  Histories histories(nodes);
  histories.Run(seeds, steps);
  if (HasFailure() || seeds < 100 || kShare > 1) return;
  // Otherwise the histories test nothing.
  EXPECT_GT(histories.sum().rounds, seeds);
  EXPECT_GT(histories.sum().restores, seeds);
  for (size_t i = 0; i < kFaults; ++i) {
    EXPECT_GT(histories.faults(static_cast<Fault>(i)), 0U) << FaultName(static_cast<Fault>(i));
  }
}

class SimulatedServices : public testing::TestWithParam<std::tuple<int, int, uint64_t, uint64_t>> {
};

// One service leads at a time. Nothing is told before it is kept, every successor knows what was
// told, and every wait ends, even if a leader wakes after its lease.
TEST_P(SimulatedServices, KeepTheSamePromisesTogether) {
  const auto [nodes, services, seeds, steps] = GetParam();
  Histories histories(nodes, services);
  histories.Run(seeds, steps);
  if (HasFailure() || kShare > 1) return;
  EXPECT_GT(histories.sum().rounds, seeds);
  EXPECT_GT(histories.sum().terms, 2 * seeds);
  EXPECT_GT(histories.sum().lost, seeds);
  for (size_t i = 0; i < kServiceFaults; ++i) {
    const ServiceFault fault = static_cast<ServiceFault>(i);
    EXPECT_GT(histories.faults(fault), 0U) << ServiceFaultName(fault);
  }
}

using Who = StandstillScene::Who;
using Scene = std::tuple<Who, bool, int>;

class StandstillInAJob : public testing::TestWithParam<Scene> {};

// One process or node of a job of three stands still, for every length around the loss limit, and
// goes on. The job outlives it: nobody waits for ever, no two rounds live at once.
TEST_P(StandstillInAJob, EndsNeitherTheJobNorItsProgress) {
  const auto [who, in_preflight, loss_limit] = GetParam();
  const Duration limit = std::chrono::seconds(loss_limit);
  const Duration last = 4 * limit / 3 + std::chrono::seconds(13);  // The margin, and 8 s more.
  Duration duration = limit - std::chrono::seconds(2);
  const Duration step = std::chrono::milliseconds(50) * kShare;
  for (uint64_t seed = 1; duration <= last; ++seed, duration += step) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = 3;
    simulation.steps = 3000;
    simulation.standstill = {who, limit, duration, in_preflight};
    const SimulationResult result = Simulate(simulation);
    // Nobody is left who could end the workers in time: see failures.md.
    const bool unwatched =
        who == Who::kAgentAndKeeper && result.violation.find("live at once") != std::string::npos;
    if (unwatched) continue;
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.outcome, 0) << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, StandstillInAJob,
                         testing::Combine(testing::Values(Who::kAgent, Who::kKeeper,
                                                          Who::kAgentAndKeeper, Who::kNode,
                                                          Who::kRendezvous),
                                          testing::Bool(), testing::Values(6, 7, 8, 10, 30)));

class TwoStandstillsInARow : public testing::TestWithParam<int> {};

// A node that is cut off stands still shortly before its time is up, and once more while it asks.
// Its workers do not live on because of that.
TEST_P(TwoStandstillsInARow, GiveNoTimeBeyondTheFirst) {
  const Duration limit = std::chrono::seconds(GetParam());
  const Duration step = std::chrono::milliseconds(100) * kShare;
  Duration duration = limit - std::chrono::seconds(4);
  for (uint64_t seed = 1; duration <= limit + std::chrono::seconds(8); ++seed, duration += step) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = 3;
    simulation.steps = 3000;
    simulation.standstill = {Who::kTwiceCutOff, limit, duration};
    const SimulationResult result = Simulate(simulation);
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, TwoStandstillsInARow, testing::Values(6, 10, 30));

using VoterScene = std::tuple<int, Who, bool, int>;

class StandstillAmongVoters : public testing::TestWithParam<VoterScene> {};

// The same where the job's nodes keep its record: of the node that leads, or of another one. The
// links are good, since an election over slow ones takes longer than the shortest limits.
TEST_P(StandstillAmongVoters, EndsNeitherTheJobNorItsProgress) {
  const auto [nodes, who, of_host, loss_limit] = GetParam();
  const Duration limit = std::chrono::seconds(loss_limit);
  const Duration last = 4 * limit / 3 + std::chrono::seconds(13);
  const Duration step = std::chrono::milliseconds(200) * kShare;
  uint64_t terms = 0;
  Duration duration = std::chrono::seconds(1);
  uint64_t seed = 1;
  for (; duration <= last; ++seed, duration += step) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = nodes;
    simulation.steps = 6000;
    simulation.voters = true;
    simulation.standstill = {who, limit, duration, false, of_host};
    // Before there are voters a job ends with its host; see PowerLossAmongVoters.
    simulation.standstill->after = std::chrono::milliseconds(1000 + 37 * seed);
    const SimulationResult result = Simulate(simulation);
    terms += result.terms;
    const bool unwatched =
        who == Who::kAgentAndKeeper && result.violation.find("live at once") != std::string::npos;
    if (unwatched) continue;
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.outcome, 0) << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
  if (of_host && who != Who::kKeeper) {
    EXPECT_GT(terms, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, StandstillAmongVoters,
                         testing::Combine(testing::Values(3, 5),
                                          testing::Values(Who::kAgent, Who::kKeeper,
                                                          Who::kAgentAndKeeper, Who::kNode),
                                          testing::Bool(), testing::Values(6, 8, 30)));

class SeveralStandStillAmongVoters : public testing::TestWithParam<std::tuple<int, Who, int>> {};

// All nodes stand still at once, or all but the one that leads, which is then cut off: those that
// find a majority when they go on keep their places until those are given away.
TEST_P(SeveralStandStillAmongVoters, EndsNeitherTheJobNorAPlaceThatNobodyTook) {
  const auto [nodes, who, loss_limit] = GetParam();
  const Duration limit = std::chrono::seconds(loss_limit);
  const Duration step = std::chrono::milliseconds(200) * kShare;
  Duration duration = std::chrono::seconds(1);
  for (uint64_t seed = 1; duration <= 2 * limit + std::chrono::seconds(13);
       ++seed, duration += step) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = nodes;
    simulation.steps = 6000;
    simulation.voters = true;
    simulation.standstill = {who, limit, duration};
    simulation.standstill->after = std::chrono::milliseconds(1000 + 37 * seed);
    const SimulationResult result = Simulate(simulation);
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.outcome, 0) << "replay it: " << ReplayCommand(simulation);
    // Of all that stood still, none has lost its place. Of the others, one that was alone has.
    const auto of_cut_off = static_cast<uint64_t>(
        who == Who::kOthers && duration + std::chrono::seconds(8) >= limit ? 1 : 0);
    EXPECT_LE(result.agents, static_cast<uint64_t>(nodes) + of_cut_off)
        << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, SeveralStandStillAmongVoters,
                         testing::Combine(testing::Values(3, 5),
                                          testing::Values(Who::kOthers, Who::kAllNodes),
                                          testing::Values(6, 30)));

class FlappingLinkAmongVoters : public testing::TestWithParam<std::tuple<int, bool>> {};

// The link of one node goes down and up. The others reach each other all the time, so none of them
// ends, and none waits: their own voters tell them who leads, and that they are heard.
TEST_P(FlappingLinkAmongVoters, EndsNoNode) {
  const auto [nodes, of_host] = GetParam();
  uint64_t seed = 1;
  for (int ms = 1000; ms <= 2600; ms += 10 * static_cast<int>(kShare), ++seed) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = nodes;
    simulation.steps = 20000;
    simulation.voters = true;
    simulation.standstill = {Who::kLink, std::chrono::seconds(6), std::chrono::milliseconds(ms),
                             false, of_host};
    simulation.standstill->after = std::chrono::milliseconds(1000 + 37 * seed);
    const SimulationResult result = Simulate(simulation);
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.outcome, 0) << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.agents, static_cast<uint64_t>(nodes))
        << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.job_restarts, 0U) << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, FlappingLinkAmongVoters,
                         testing::Combine(testing::Values(3, 5), testing::Bool()));

class PowerLossAmongVoters : public testing::TestWithParam<std::tuple<int, bool>> {};

// A node loses its power in any moment from the first tenths of a second of the first round on.
TEST_P(PowerLossAmongVoters, EndsNoJob) {
  const auto [nodes, of_host] = GetParam();
  for (uint64_t seed = 1; seed <= 200 / kShare; ++seed) {
    Simulation simulation;
    simulation.seed = seed;
    simulation.nodes = nodes;
    simulation.steps = 6000;
    simulation.voters = true;
    simulation.standstill = {Who::kPower, std::chrono::seconds(10), {}, false, of_host};
    simulation.standstill->after = std::chrono::milliseconds(100 + 25 * seed);
    const SimulationResult result = Simulate(simulation);
    EXPECT_EQ(result.violation, "") << "replay it: " << ReplayCommand(simulation);
    EXPECT_EQ(result.outcome, 0) << "replay it: " << ReplayCommand(simulation);
    EXPECT_GE(result.terms, of_host ? 2U : 1U) << "replay it: " << ReplayCommand(simulation);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, PowerLossAmongVoters,
                         testing::Combine(testing::Values(3, 5, 8), testing::Bool()));

// Shows that only the fence keeps workers to one round at a time: without it they break that
// promise.
TEST(SimulatedJobWithoutFence, RunsTwoRoundsAtOnceWhereAnAgentStandsStill) {
  for (const int nodes : {2, 3, 5}) {
    int broken = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Simulation simulation;
      simulation.seed = seed;
      simulation.nodes = nodes;
      simulation.steps = 10000;
      simulation.fence = false;
      const std::string violation = Simulate(simulation).violation;
      if (violation.find("begins while there are workers") != std::string::npos) ++broken;
    }
    EXPECT_GT(broken, 0) << nodes << " nodes";
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SimulatedJob,
                         testing::Values(std::tuple(2, 1000, 10000), std::tuple(3, 1000, 10000),
                                         std::tuple(5, 1000, 10000), std::tuple(10, 1000, 10000),
                                         std::tuple(50, 200, 20000), std::tuple(200, 40, 40000),
                                         std::tuple(1000, 8, 200000),
                                         std::tuple(10000, 2, 500000)));

INSTANTIATE_TEST_SUITE_P(Sizes, SimulatedServices,
                         testing::Values(std::tuple(2, 2, 500, 10000), std::tuple(3, 2, 500, 10000),
                                         std::tuple(5, 3, 500, 10000),
                                         std::tuple(10, 3, 200, 20000),
                                         std::tuple(50, 2, 40, 40000)));

}  // namespace
}  // namespace hlaunch
