// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/devices/device.h"
#include "agent/devices/env_change.h"

namespace hlaunch {

// What the user asked for. A value.
struct DeviceRequest {
  int workers = 1;  // On this node.
  bool several_nodes = false;
  // One worker starts the node's others itself and gives them their devices.
  bool starts_others = false;
  std::vector<DeviceKind> kinds;        // Asked for by name; empty: the first that the node has.
  std::optional<std::vector<int>> ids;  // --devices: these, in this order.
  bool none = false;                    // --devices none: all as inherited.
  bool isolate = false;                 // Each worker sees its own device only.
  bool virtual_local_rank = false;      // The same, and LOCAL_RANK is 0.
  bool oversubscribe = false;           // What would be refused is a warning.
};

struct WorkerDevice {
  const Device* device = nullptr;  // None, or an unknown one.
  std::vector<EnvChange> env;
};

// A value; points into the devices that it was made from.
struct DevicePlan {
  std::vector<WorkerDevice> workers;  // By local rank, as many as were asked for.
  // Those that the environment leaves visible as well; null: an unknown one.
  std::vector<const Device*> unused;
  std::string why;                    // One line: who gets what, or why nobody gets anything.
  std::vector<std::string> warnings;  // One line each.
};

}  // namespace hlaunch
