// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/devices/device.h"
#include "agent/devices/device_plan.h"
#include "agent/devices/visible_devices.h"

// Which worker of a node gets which device. Pure.

namespace hlaunch {

// The kinds that a word of --nproc-per-node means: "gpu" (as torch.cuda: CUDA or ROCm), "hpu",
// "xpu", "npu", or a kind's own name. Empty: it is none.
std::vector<DeviceKind> KindsOfWord(absl::string_view word);

// How many workers --nproc-per-node stands for if it is a word: one for each device that
// `request` leaves, whatever `workers` says. 0: there is none.
//
// Errors:
//   InvalidArgument - as FindVisible, and --devices names one that is not there.
absl::StatusOr<int> CountDevices(const DeviceRequest& request, const std::vector<Device>& devices,
                                 const EnvMap& env);

// Worker i gets device i of the visible ones, and where a device takes one process only, of those
// that are free. Nobody asked for devices by name and there are fewer than workers: nobody
// gets any. `env` is what workers would inherit; `devices` outlives the plan.
//
// Errors (warnings with `oversubscribe`, where workers can start at all):
//   InvalidArgument - more workers than devices were asked for, or devices that are not there, or
//     Gaudi cards that are not wired to each other.
//   ResourceExhausted - a device is not operational or is held; the message names both.
absl::StatusOr<DevicePlan> AssignDevices(const DeviceRequest& request,
                                         const std::vector<Device>& devices, const EnvMap& env);

}  // namespace hlaunch
