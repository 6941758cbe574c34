// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/machine/devices/device.h"
#include "agent/machine/devices/env_change.h"

namespace hlaunch {

// The devices that the user asked for. A value.
struct DeviceRequest {
  int workers = 1;  // On this node.
  bool several_nodes = false;
  // One worker starts the node's other workers itself and gives them their devices.
  bool starts_others = false;
  std::vector<DeviceKind> kinds;  // Asked for by name; if empty, the first kind that the node has.
  std::optional<std::vector<int>> ids;  // The ids of --devices, in this order.
  bool none = false;                // --devices none: workers inherit the environment unchanged.
  bool isolate = false;             // Each worker sees only its own device.
  bool virtual_local_rank = false;  // Each worker sees only its own device, and LOCAL_RANK is 0.
  bool oversubscribe = false;       // A warning replaces each error.
};

struct WorkerDevice {
  const Device* device = nullptr;  // Null if the worker has none or it is unknown.
  std::vector<EnvChange> env;
};

// A value; points into the devices that it was made from.
struct DevicePlan {
  std::vector<WorkerDevice> workers;  // By local rank; one for each worker asked for.
  // Devices that are visible but not used by a worker; null stands for an unknown device.
  std::vector<const Device*> unused;
  std::string why;  // One line: which worker gets what, or why no worker gets a device.
  std::vector<std::string> warnings;  // One line each.
};

}  // namespace hlaunch
