// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "agent/machine/devices/device_plan.h"
#include "agent/machine/devices/visible_devices.h"

namespace hlaunch {

// The slots that were chosen. A value.
struct DeviceChoice {
  std::vector<DeviceSlot> of_worker;  // By local rank.
  std::vector<DeviceSlot> list;       // What all workers may see; their own slots come first.
  bool is_new = false;  // True if the list differs from the one that workers would inherit.
};

// Returns the devices of the workers and the changes of their environment, by the rules of each
// kind. Pure.
//
// Errors:
//   InvalidArgument - the environment of this kind cannot express such a choice.
absl::StatusOr<std::vector<WorkerDevice>> DeviceEnv(DeviceKind kind, const DeviceRequest& request,
                                                    const VisibleDevices& visible,
                                                    const DeviceChoice& choice);

}  // namespace hlaunch
