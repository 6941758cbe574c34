// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/binding/plan_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "absl/strings/str_join.h"
#include "agent/machine/devices/visible_devices.h"
#include "tests/agent/servers.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr BindMode kModes[] = {BindMode::kAuto, BindMode::kNuma, BindMode::kSocket, BindMode::kCore,
                               BindMode::kL3};

BindingPlan Plan(const Server& server, BindMode mode, int workers) {
  const Topology topology = server.Load();
  BindRequest request = {mode, workers, server.Places()};
  request.places.resize(static_cast<size_t>(workers));
  return PlanBinding(topology, AllCpus(topology), request);
}

// Each worker by local rank, such as "0-3/1": CPUs 0 to 3 and one core of its own.
std::string Text(const BindingPlan& plan) {
  return absl::StrJoin(plan.workers, " ", [](std::string* out, const WorkerBinding& worker) {
    absl::StrAppend(out, FormatIds(worker.cpus), "/", worker.cores);
  });
}

BindingPlan PlanCores(const Server& server, int workers, int cores_each) {
  const Topology topology = server.Load();
  BindRequest request = {BindMode::kCore, workers, server.Places(), cores_each};
  request.places.resize(static_cast<size_t>(workers));
  return PlanBinding(topology, AllCpus(topology), request);
}

TEST(PlanBinding, GivesEachAsManyCoresAsAreAsked) {
  EXPECT_EQ(Text(PlanCores(kTwoSockets, 3, 2)), "0-1,40-41/2 2-3,42-43/2 4-5,44-45/2");
  EXPECT_EQ(Text(PlanCores(kDgxH100, 2, 3)), "0-2,112-114/3 3-5,115-117/3");
  EXPECT_EQ(Text(PlanCores(kTwoSockets, 2, 20)), "0-19,40-59/20 20-39,60-79/20");
  const BindingPlan too_few = PlanCores(kTwoSockets, 3, 20);
  EXPECT_THAT(too_few.workers, IsEmpty());
  EXPECT_EQ(too_few.warning, "workers are not bound: 3 workers with 20 cores each have 40 cores");
}

TEST(PlanBinding, GivesTheSlotsThatAreNamed) {
  const Topology topology = kTwoSockets.Load();
  const auto plan = [&topology](std::vector<std::string> slots, const std::vector<int>& allowed) {
    BindRequest request = {BindMode::kSlots, static_cast<int>(slots.size()), {}};
    request.slots = std::move(slots);
    return PlanBinding(topology, allowed, request);
  };
  const std::vector<int> all = AllCpus(topology);
  EXPECT_EQ(Text(plan({"2", "0-1,3", "1:0", "0:18-19,1:2", "0:*"}, all)),
            "2,42/1 0-1,3,40-41,43/3 20,60/1 18-19,22,58-59,62/3 0-19,40-59/20");
  EXPECT_EQ(plan({"0:20"}, all).warning, "workers are not bound: this host has no slot 0:20");
  EXPECT_EQ(plan({"2:*"}, all).warning, "workers are not bound: this host has no slot 2:*");
  EXPECT_EQ(plan({"1"}, {0, 2}).warning, "workers are not bound: CPU 1 of slot 1 may not be used");
  for (const char* good : {"0", "0-3,5", "1:*", "0:1,3"}) EXPECT_TRUE(IsSlotList(good)) << good;
  for (const char* bad : {"", "x", "0:", ":1", "2-1", "-1", "0,,1", "+1", "p1", "9999999"}) {
    EXPECT_FALSE(IsSlotList(bad)) << bad;
  }
}

TEST(PlanBinding, ServersAndModes) {
  struct Row {
    const Server& server;
    BindMode mode;
    int workers;
    const char* bound;
  };
  const Row rows[] = {
      {kGaudi2, BindMode::kAuto, 8,
       "0-39,80-119/10 0-39,80-119/10 0-39,80-119/10 0-39,80-119/10 "
       "40-79,120-159/10 40-79,120-159/10 40-79,120-159/10 40-79,120-159/10"},
      {kGaudi2, BindMode::kCore, 8,
       "0-9,80-89/10 10-19,90-99/10 20-29,100-109/10 30-39,110-119/10 "
       "40-49,120-129/10 50-59,130-139/10 60-69,140-149/10 70-79,150-159/10"},
      {kGaudi3, BindMode::kAuto, 8,
       "0-27,112-139/14 0-27,112-139/14 28-55,140-167/14 28-55,140-167/14 "
       "56-83,168-195/14 56-83,168-195/14 84-111,196-223/14 84-111,196-223/14"},
      {kGaudi3, BindMode::kSocket, 2, "0-55,112-167/28 0-55,112-167/28"},
      // Only every second node has GPUs: a worker bound to its GPU's node would lose half of its
      // cores.
      {kDgxA100, BindMode::kAuto, 8,
       "0-63,128-191/16 0-63,128-191/16 0-63,128-191/16 0-63,128-191/16 "
       "64-127,192-255/16 64-127,192-255/16 64-127,192-255/16 64-127,192-255/16"},
      {kDgxA100, BindMode::kNuma, 8,
       "48-63,176-191/8 48-63,176-191/8 16-31,144-159/8 16-31,144-159/8 "
       "112-127,240-255/8 112-127,240-255/8 80-95,208-223/8 80-95,208-223/8"},
      {kDgxA100, BindMode::kL3, 4,
       "48-51,176-179/4 52-55,180-183/4 16-19,144-147/4 20-23,148-151/4"},
      {kDgxH100, BindMode::kNuma, 2, "0-55,112-167/28 0-55,112-167/28"},
      {kDgxH100, BindMode::kCore, 3, "0-18,112-130/19 19-37,131-149/19 38-55,150-167/18"},
      {kDgxH100, BindMode::kL3, 1, "0-55,112-167/56"},
      {kMi300x, BindMode::kL3, 8,
       "0-7,192-199/8 8-15,200-207/8 16-23,208-215/8 24-31,216-223/8 "
       "96-103,288-295/8 104-111,296-303/8 112-119,304-311/8 120-127,312-319/8"},
      {kTwoSockets, BindMode::kNuma, 2, "0-19,40-59/20 20-39,60-79/20"},
      {kTwoSockets, BindMode::kNuma, 3, "0-19,40-59/20 20-39,60-79/10 20-39,60-79/10"},
      {kTwoSockets, BindMode::kCore, 3, "0-13,40-53/14 14-26,54-66/13 27-39,67-79/13"},
      {kTwoSockets, BindMode::kSocket, 1, "0-19,40-59/20"},
      {kVm, BindMode::kNuma, 4, "0-15/4 0-15/4 0-15/4 0-15/4"},
      {kVm, BindMode::kCore, 4, "0-3/4 4-7/4 8-11/4 12-15/4"},
      {kWideVm, BindMode::kNuma, 4, "0-7/4 0-7/4 8-15/4 8-15/4"},
      {kLaptop, BindMode::kCore, 8, "0,8/1 1,9/1 2,10/1 3,11/1 4,12/1 5,13/1 6,14/1 7,15/1"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Text(Plan(row.server, row.mode, row.workers)), row.bound)
        << row.server.name << ", " << BindModeName(row.mode);
  }
}

TEST(PlanBinding, AutoLeavesAloneWhatItCouldSlow) {
  struct Row {
    const Server& server;
    int workers;
    const char* why;
  };
  const Row rows[] = {
      {kDgxH100, 1, "there is one worker"},
      {kDgxH100, 4, "all devices are near one NUMA node"},
      {kDgxH100, 5, "near their devices some would have less than an even share of the cores"},
      {kDgxA100, 4, "near their devices some would have less than an even share of the cores"},
      {kTwoSockets, 8, "workers have no devices"},
      {kVm, 4, "where cuda 0 sits is unknown"},
      {kWideVm, 4, "where cuda 0 sits is unknown"},
      {kLaptop, 1, "there is one worker"},
  };
  for (const Row& row : rows) {
    const BindingPlan plan = Plan(row.server, BindMode::kAuto, row.workers);
    EXPECT_THAT(plan.workers, IsEmpty()) << row.server.name;
    EXPECT_EQ(plan.why, absl::StrCat("workers are not bound: ", row.why)) << row.server.name;
    EXPECT_EQ(plan.warning, "");
  }
}

TEST(PlanBinding, PrefersMemoryOfTheNodeOnlyWhenAskedTo) {
  const auto nodes = [](const BindingPlan& plan) {
    std::vector<int> found;
    for (const WorkerBinding& worker : plan.workers) found.push_back(worker.memory_node);
    return found;
  };
  EXPECT_THAT(nodes(Plan(kTwoSockets, BindMode::kNuma, 2)), ElementsAre(0, 1));
  EXPECT_THAT(nodes(Plan(kTwoSockets, BindMode::kCore, 3)), ElementsAre(0, -1, 1));
  EXPECT_THAT(nodes(Plan(kVm, BindMode::kCore, 2)), ElementsAre(-1, -1));
  EXPECT_THAT(nodes(Plan(kGaudi3, BindMode::kSocket, 1)), ElementsAre(-1));
  EXPECT_THAT(nodes(Plan(kDgxH100, BindMode::kAuto, 8)), testing::Each(-1));
}

TEST(PlanBinding, SaysWhyAWorkerIsWhereItIs) {
  EXPECT_EQ(Plan(kDgxH100, BindMode::kNuma, 8).workers[5].why, "near cuda 5");
  EXPECT_EQ(Plan(kDgxH100, BindMode::kNuma, 8).why,
            "workers are bound to NUMA nodes near their devices");
  EXPECT_EQ(Plan(kWideVm, BindMode::kNuma, 4).workers[1].why, "where cuda 1 sits is unknown");
  EXPECT_EQ(Plan(kWideVm, BindMode::kNuma, 4).why, "workers are bound to NUMA nodes, dealt evenly");
  EXPECT_EQ(Plan(kTwoSockets, BindMode::kNuma, 4).workers[1].why, "");
}

TEST(PlanBinding, BindsNobodyWhereWorkersOutnumberCores) {
  for (const BindMode mode : {BindMode::kNuma, BindMode::kSocket, BindMode::kCore, BindMode::kL3}) {
    const BindingPlan plan = Plan(kLaptop, mode, 9);
    EXPECT_THAT(plan.workers, IsEmpty());
    EXPECT_EQ(plan.warning, "workers are not bound: 9 workers have 8 cores");
  }
}

TEST(PlanBinding, KeepsToTheCpusThatMayBeUsed) {
  const Topology topology = kDgxH100.Load();
  const BindRequest request = {BindMode::kCore, 8, kDgxH100.Places()};
  // A control group that allows one thread of some cores, and only two cores of one socket.
  std::vector<int> allowed = {0, 1, 2, 3, 4, 5, 6, 7, 112, 113, 56, 57};
  BindingPlan plan = PlanBinding(topology, allowed, request);
  EXPECT_EQ(Text(plan), "0-1,112-113/2 2-3/2 4/1 5/1 6/1 7/1 56/1 57/1")
      << "two cores do not do for four workers, so all are dealt evenly";
  // No CPU of one socket may be used.
  allowed = {0, 1, 2, 3, 4, 5, 6, 7};
  plan = PlanBinding(topology, allowed, request);
  EXPECT_EQ(Text(plan), "0/1 1/1 2/1 3/1 4/1 5/1 6/1 7/1");
  EXPECT_EQ(plan.workers[7].why, "cuda 7 is near NUMA node 1, of which no CPU may be used");
  EXPECT_THAT(PlanBinding(topology, allowed, {BindMode::kAuto, 8, kDgxH100.Places()}).why,
              HasSubstr("no CPU near cuda 4 may be used"));
  EXPECT_THAT(PlanBinding(topology, {}, request).workers, IsEmpty());
  EXPECT_THAT(PlanBinding(topology, {4711}, request).workers, IsEmpty());
}

TEST(PlanBinding, GivesWhoIsFarFromEverythingTheRoomiestNode) {
  std::vector<DevicePlace> places = kDgxH100.Places();
  places.resize(3);
  places[2].numa_node = 9;
  const Topology topology = kDgxH100.Load();
  const BindingPlan plan = PlanBinding(topology, AllCpus(topology), {BindMode::kNuma, 3, places});
  EXPECT_EQ(plan.workers[2].cpus.front(), 56);
  EXPECT_EQ(plan.workers[2].why, "cuda 2 is near NUMA node 9, of which no CPU may be used");
}

// torchrun divides a node's cores among its GPUs even if workers do not use them.
TEST(PlanBinding, LeavesOthersTheirShareWhereItIsToldOfThem) {
  const Topology topology = kDgxH100.Load();
  BindRequest request = {BindMode::kCore, 2, kDgxH100.Places()};
  EXPECT_EQ(Text(PlanBinding(topology, AllCpus(topology), request)),
            "0-13,112-125/14 14-27,126-139/14");
  request.places.resize(2);
  EXPECT_EQ(Text(PlanBinding(topology, AllCpus(topology), request)),
            "0-27,112-139/28 28-55,140-167/28");
}

TEST(PlanBinding, NeedsNoTopologyWhereThereIsNothingToGain) {
  EXPECT_FALSE(NeedsTopology({BindMode::kAuto, 1, kDgxH100.Places()}));
  EXPECT_FALSE(NeedsTopology({BindMode::kAuto, 4, kDgxH100.Places()}));
  EXPECT_FALSE(NeedsTopology({BindMode::kAuto, 4, {}}));
  EXPECT_FALSE(NeedsTopology({BindMode::kNone, 8, kDgxH100.Places()}));
  EXPECT_TRUE(NeedsTopology({BindMode::kAuto, 8, kDgxH100.Places()}));
  EXPECT_TRUE(NeedsTopology({BindMode::kCore, 1, {}}));
}

// Random numbers for machines, allowed parts of them and devices.
class Chance {
 public:
  int Upto(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  int From(int least, int most) { return least + Upto(most - least); }

 private:
  std::mt19937 random_{20261121};
};

TEST(PlanBinding, HoldsItsPromisesOnAnyMachine) {
  Chance chance;
  int bound = 0;
  for (int round = 0; round < 400; ++round) {
    Server server = {"",
                     chance.From(1, 3),
                     chance.From(1, 3),
                     chance.From(1, 3),
                     chance.From(1, 5),
                     chance.From(1, 2),
                     {}};
    const int workers = chance.From(1, 12);
    for (int i = workers + chance.Upto(3); i > 0; --i) {
      server.devices.push_back(chance.From(-1, server.sockets * server.nodes));
    }
    const Topology topology = server.Load();
    std::vector<int> allowed;
    for (const Cpu& cpu : topology.cpus) {
      if (chance.Upto(3) > 0) allowed.push_back(cpu.id);
    }
    std::map<int, std::set<int>> threads;  // The allowed threads of each core.
    std::map<int, int> core_of;
    for (const Cpu& cpu : topology.cpus) core_of[cpu.id] = cpu.core;
    for (const int cpu : allowed) threads[core_of[cpu]].insert(cpu);

    for (const BindMode mode : kModes) {
      const BindingPlan plan = PlanBinding(topology, allowed, {mode, workers, server.Places()});
      SCOPED_TRACE(absl::StrCat("round ", round, ", ", BindModeName(mode), ": ", Text(plan)));
      EXPECT_THAT(plan.why, HasSubstr("bound"));
      if (mode != BindMode::kAuto) {
        EXPECT_EQ(plan.workers.empty(), threads.size() < static_cast<size_t>(workers));
        EXPECT_EQ(plan.workers.empty(), !plan.warning.empty());
      }
      if (plan.workers.empty()) continue;
      ++bound;
      ASSERT_EQ(plan.workers.size(), static_cast<size_t>(workers));
      std::map<int, int> users;
      std::map<std::vector<int>, int> promised;
      for (const WorkerBinding& worker : plan.workers) {
        EXPECT_GE(worker.cores, 1);
        EXPECT_TRUE(std::is_sorted(worker.cpus.begin(), worker.cpus.end()));
        const std::set<int> cpus(worker.cpus.begin(), worker.cpus.end());
        std::set<int> cores;
        for (const int cpu : cpus) {
          cores.insert(core_of[cpu]);
          ++users[cpu];
        }
        for (const int core : cores) {
          EXPECT_TRUE(
              std::includes(cpus.begin(), cpus.end(), threads[core].begin(), threads[core].end()))
              << "both threads, or none";
        }
        for (const int cpu : cpus) EXPECT_TRUE(threads[core_of[cpu]].contains(cpu)) << "allowed";
        promised[worker.cpus] += worker.cores;
        EXPECT_LE(promised[worker.cpus], static_cast<int>(cores.size())) << "no core twice";
        if (mode == BindMode::kAuto) {
          EXPECT_GE(worker.cores, static_cast<int>(threads.size()) / workers) << "nobody loses";
        }
      }
      if (mode != BindMode::kCore) continue;
      for (const auto& user : users) EXPECT_EQ(user.second, 1) << "CPU " << user.first;
    }
  }
  EXPECT_GT(bound, 400);
}

}  // namespace
}  // namespace hlaunch
