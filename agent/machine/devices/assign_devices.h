// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/machine/devices/device.h"
#include "agent/machine/devices/device_plan.h"
#include "agent/machine/devices/visible_devices.h"

// Which worker of a node gets which device. Pure.

namespace hlaunch {

// The kinds that a word of --nproc-per-node means: "gpu" (as torch.cuda: CUDA or ROCm), "hpu",
// "xpu", "npu", or a kind's own name. Empty if the word is none of these.
std::vector<DeviceKind> KindsOfWord(absl::string_view word);

// How many workers a word of --nproc-per-node stands for: one for each device that `request`
// leaves, whatever `workers` says. 0 if there is none and nobody asked for devices by name.
//
// Errors:
//   InvalidArgument - as FindVisible; --devices names a device that is not there; or devices were
//     asked for by name and none is left.
absl::StatusOr<int> CountDevices(const DeviceRequest& request, const std::vector<Device>& devices,
                                 const EnvMap& env);

// Gives device i of the visible ones to worker i; where a device takes one process only, device i
// of the free ones. If nobody asked for devices by name and there are fewer devices than workers,
// no worker gets any. `env` is what workers would inherit; `devices` outlives the plan.
//
// Errors (warnings with `oversubscribe`, where workers can start at all):
//   InvalidArgument - more workers than devices were asked for, or devices that are not there, or
//     Gaudi cards that are not wired to each other.
//   ResourceExhausted - a device is not operational or is held; the message names both.
absl::StatusOr<DevicePlan> AssignDevices(const DeviceRequest& request,
                                         const std::vector<Device>& devices, const EnvMap& env);

}  // namespace hlaunch
