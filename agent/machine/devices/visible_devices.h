// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/machine/devices/device.h"

// Finds which devices the inherited environment lets workers see, and in which order. Pure.

namespace hlaunch {

// Variables by name.
using EnvMap = std::map<std::string, std::string>;

// Makes a map of entries `NAME=value`. Of a repeated name the first counts, as with getenv.
EnvMap ToEnvMap(const std::vector<std::string>& entries);

// What one worker can get: a device, or a tile or core of one.
struct DeviceSlot {
  const Device* device = nullptr;  // Null if the token names nothing known here, such as MIG-….
  int id = -1;                     // The number that --devices uses for it; -1 if it has none.
  std::string token;               // Its name in the list of visible devices.
};

// The slots of one kind that workers may get, in their order.
struct VisibleDevices {
  std::vector<DeviceSlot> slots;
  // The variable that lists the slots.
  std::string variable;
  std::vector<std::string> others;  // Variables to remove when `variable` is written.
  std::string by;  // The variable that restricts the slots; empty if all devices are visible.
  // CUDA's numbers do not follow the bus, so it is unknown which number is which device.
  bool unordered = false;
  // Why the variable's list cannot mean what it says, as in "X=0,9 names 9, …"; empty: it can.
  std::string doubt;
  // A variable that hlaunch does not understand and that decides instead; empty if there is none.
  std::string foreign;
};

// `devices` outlives the result.
//
// Errors:
//   InvalidArgument - HABANA_VISIBLE_MODULES names a card that is not here, or one twice.
absl::StatusOr<VisibleDevices> FindVisible(DeviceKind kind, const std::vector<Device>& devices,
                                           const EnvMap& env);

// A line for a host without accelerators where `env` has a list that names some; empty: it has
// none.
std::string ListWithoutDevices(const EnvMap& env);

// Formats 0, 1, 2, 3, 8 as "0-3,8"; keeps the order given.
std::string FormatIds(const std::vector<int>& ids);

// The way back, of numbers and inclusive ranges. Empty if `text` is no such list, or if an id or
// the number of ids exceeds the limit of 4096.
std::optional<std::vector<int>> ParseIds(absl::string_view text);

}  // namespace hlaunch
