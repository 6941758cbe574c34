// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/machine/binding/plan_binding.h"
#include "agent/machine/binding/topology.h"
#include "proto/base/status_macros.h"

// The processors of real servers in hwloc's words, numbered as their makers and Linux number them:
// first all first threads, then all second threads.

namespace hlaunch {

struct Server {
  const char* name;
  int sockets;
  int nodes;                 // NUMA nodes per socket.
  int caches;                // L3 caches per NUMA node.
  int cores;                 // Cores per cache.
  int threads;               // Per core.
  std::vector<int> devices;  // The NUMA node of each device.

  int num_cores() const { return sockets * nodes * caches * cores; }

  Topology Load() const {
    const std::string words =
        absl::StrCat("pack:", sockets, nodes == 1 ? " [numa]" : absl::StrCat(" numa:", nodes),
                     " l3:", caches, " core:", cores, " pu:", threads, "(indexes=", threads, "*",
                     num_cores(), ":1*", threads, ")");
    absl::StatusOr<Topology> topology = LoadTopology({"", words, ""});
    HLAUNCH_CHECK(topology.ok());
    return *std::move(topology);
  }

  std::vector<DevicePlace> Places(const char* kind = "cuda") const {
    std::vector<DevicePlace> places;
    for (size_t i = 0; i < devices.size(); ++i) {
      places.push_back({absl::StrCat(kind, " ", i), devices[i]});
    }
    return places;
  }
};

inline const Server kGaudi2 = {"HLS-Gaudi2: 2 x Xeon 8380", 2, 1, 1, 40, 2,
                               {0, 0, 0, 0, 1, 1, 1, 1}};
inline const Server kGaudi3 = {
    "HLS-Gaudi3: 2 x Xeon 8480+ with SNC2", 2, 2, 1, 28, 2, {0, 0, 1, 1, 2, 2, 3, 3}};
inline const Server kDgxA100 = {"DGX A100: 2 x EPYC 7742, NPS4", 2, 4, 4, 4, 2,
                                {3, 3, 1, 1, 7, 7, 5, 5}};
inline const Server kDgxH100 = {"DGX H100: 2 x Xeon 8480C", 2, 1, 1, 56, 2,
                                {0, 0, 0, 0, 1, 1, 1, 1}};
inline const Server kMi300x = {"MI300X: 2 x EPYC 9654", 2, 1, 12, 8, 2, {0, 0, 0, 0, 1, 1, 1, 1}};
inline const Server kTwoSockets = {"2 x Xeon Gold 6248", 2, 1, 1, 20, 2, {}};
inline const Server kVm = {"a virtual machine", 1, 1, 1, 16, 1, {-1, -1, -1, -1}};
inline const Server kWideVm = {"a virtual machine of two nodes", 2, 1, 1, 8, 1, {-1, -1, -1, -1}};
inline const Server kLaptop = {"a laptop", 1, 1, 1, 8, 2, {0}};

inline std::vector<const Server*> Servers() {
  return {&kGaudi2,     &kGaudi3, &kDgxA100, &kDgxH100, &kMi300x,
          &kTwoSockets, &kVm,     &kWideVm,  &kLaptop};
}

inline std::vector<int> AllCpus(const Topology& topology) {
  std::vector<int> cpus;
  for (const Cpu& cpu : topology.cpus) cpus.push_back(cpu.id);
  return cpus;
}

}  // namespace hlaunch
