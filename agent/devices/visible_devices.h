// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/devices/device.h"

// Which devices the inherited environment lets workers see, and in which order. Pure.

namespace hlaunch {

// Variables by name.
using EnvMap = std::map<std::string, std::string>;

// From entries `NAME=value`; of a repeated name the first, as getenv has it.
EnvMap ToEnvMap(const std::vector<std::string>& entries);

// What one worker can be given: a device, or a tile or core of one.
struct DeviceSlot {
  const Device* device = nullptr;  // Unknown: a token that names nothing we know, as MIG-….
  int id = -1;                     // What --devices calls it; -1: nothing.
  std::string token;               // How the list of visible devices names it.
};

// The slots of one kind that workers may get, in their order.
struct VisibleDevices {
  std::vector<DeviceSlot> slots;
  // The variable to name them in. Empty: the kind has none, or `foreign` chooses.
  std::string variable;
  std::vector<std::string> others;  // Set beside it, and to be removed if it is written.
  std::string by;                   // What restricted them; empty: nothing, these are all.
  bool unordered = false;  // CUDA's numbers do not follow the bus, so who is who is unknown.
  std::string foreign;     // A variable that hlaunch does not understand: nothing is known.
};

// `devices` outlives the result.
//
// Errors:
//   InvalidArgument - HABANA_VISIBLE_MODULES names a card that is not here, or one twice.
absl::StatusOr<VisibleDevices> FindVisible(DeviceKind kind, const std::vector<Device>& devices,
                                           const EnvMap& env);

// "0-3,8" of 0, 1, 2, 3, 8; in the order given.
std::string FormatIds(const std::vector<int>& ids);

// The other way: numbers and inclusive ranges. Empty: it is none, or beyond 4096.
std::optional<std::vector<int>> ParseIds(absl::string_view text);

}  // namespace hlaunch
