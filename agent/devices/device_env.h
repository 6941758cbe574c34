// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "agent/devices/device_plan.h"
#include "agent/devices/visible_devices.h"

namespace hlaunch {

// Which slots were chosen. A value.
struct DeviceChoice {
  std::vector<DeviceSlot> of_worker;  // By local rank.
  std::vector<DeviceSlot> list;       // What all workers of the node may see, theirs first.
  bool is_new = false;                // The list is not the one that workers would inherit.
};

// What the environment of workers says of their devices, kind by kind. Pure.
//
// Errors:
//   InvalidArgument - the kind has no words for such a choice.
absl::StatusOr<std::vector<WorkerDevice>> DeviceEnv(DeviceKind kind, const DeviceRequest& request,
                                                    const VisibleDevices& visible,
                                                    const DeviceChoice& choice);

}  // namespace hlaunch
