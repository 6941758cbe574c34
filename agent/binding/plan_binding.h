// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/binding/topology.h"
#include "agent/binding/worker_binding.h"

// Which worker of a node may run on which CPUs. Pure.

namespace hlaunch {

// Auto binds where it cannot cost anything, see PlanBinding.
enum class BindMode { kAuto, kNone, kNuma, kSocket, kCore, kL3, kSlots };

// "auto", "numa", …
const char* BindModeName(BindMode mode);

// What a worker computes on, as far as it matters here. A value.
struct DevicePlace {
  std::string name;    // "cuda 3"; empty: there is none.
  int numa_node = -1;  // -1: unknown.
};

struct BindRequest {
  BindMode mode = BindMode::kAuto;
  int workers = 1;
  // By local rank. Behind those of the workers may be others, which nobody here uses: under
  // kCore and kL3 their share is left to them, as torchrun does.
  std::vector<DevicePlace> places;
  int cores_each = 0;  // With kCore: what each gets; 0: an even part.
  // With kSlots, by local rank: cores by their place in the machine, "2", "0-3,5", or within a
  // socket, "0:1", "1:0-2", "0:*", as IsSlotList says.
  std::vector<std::string> slots = {};
};

struct BindingPlan {
  std::vector<WorkerBinding> workers;  // By local rank; empty: nobody is bound.
  std::string why;                     // One line: to what, or why to nothing.
  std::string warning;                 // Why it is not what was asked for; may be empty.
};

// Whether `text` is what a worker's slots may be. Pure.
bool IsSlotList(absl::string_view text);

// Whether the plan depends on the topology at all; if not, any will do.
bool NeedsTopology(const BindRequest& request);

// The cores of the NUMA node, the socket or the largest cache next to a worker's device, which
// workers share, or (kCore) its own part of them. Where no device says where it is, or has no
// CPU near it that may be used, as if the cores had been dealt evenly. Both threads of a core,
// if `allowed`, stay together. No worker has less than one core, or than `cores_each`: where that
// cannot be, nobody is bound.
//
// kSlots gives each worker the cores that are named; where one of them may not be used, or names
// are missing, nobody is bound.
//
// kAuto binds several workers whose devices all have a known place, to NUMA nodes or else
// sockets, and only if each worker still has as many cores as an even share of all.
BindingPlan PlanBinding(const Topology& topology, const std::vector<int>& allowed,
                        const BindRequest& request);

}  // namespace hlaunch
