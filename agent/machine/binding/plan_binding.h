// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/machine/binding/topology.h"
#include "agent/machine/binding/worker_binding.h"

// Decides which worker of a node may run on which CPUs. Pure.

namespace hlaunch {

// Auto binds only where binding costs nothing, see PlanBinding.
enum class BindMode { kAuto, kNone, kNuma, kSocket, kCore, kL3, kSlots };

// "auto", "numa", …
const char* BindModeName(BindMode mode);

// The place of a worker's device, as far as binding needs it. A value.
struct DevicePlace {
  std::string name;    // "cuda 3"; empty if there is no device.
  int numa_node = -1;  // -1 if unknown.
};

struct BindRequest {
  BindMode mode = BindMode::kAuto;
  int workers = 1;
  // By local rank. After the workers' places there may be places of devices that no worker here
  // uses: under kCore and kL3 their share of the cores stays free for them, as with torchrun.
  std::vector<DevicePlace> places;
  int cores_each = 0;  // With kCore: the cores of each worker; 0 means an even part.
  // With kSlots, by local rank: the cores by their place in the machine, "2", "0-3,5", or within a
  // socket, "0:1", "1:0-2", "0:*", as IsSlotList defines it.
  std::vector<std::string> slots = {};
};

struct BindingPlan {
  std::vector<WorkerBinding> workers;  // By local rank; empty if no worker is bound.
  std::string why;      // One line: what workers are bound to, or why they are not bound.
  std::string warning;  // Why the plan differs from the request; may be empty.
};

// True if `text` is a valid list of a worker's slots. Pure.
bool IsSlotList(absl::string_view text);

// True if the plan depends on the topology; if not, any topology will do.
bool NeedsTopology(const BindRequest& request);

// kNuma, kSocket and kL3 bind each worker to the NUMA node, the socket or the largest cache next to
// its device, which several workers may share. kCore gives each worker its own part of the cores
// near its device. If no device has a known place with usable CPUs near it, the cores are dealt
// evenly. Allowed threads of a core stay together. No worker gets less than one core, or than
// `cores_each`; if that is impossible, no worker is bound.
//
// kSlots gives each worker the cores that are named. If one of them may not be used, or names are
// missing, no worker is bound.
//
// kAuto binds only if there are several workers and all their devices have a known place. It binds
// them to NUMA nodes or else sockets, and only if each worker still has as many cores as an even
// share of all cores.
BindingPlan PlanBinding(const Topology& topology, const std::vector<int>& allowed,
                        const BindRequest& request);

}  // namespace hlaunch
