// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/machine/devices/device.h"
#include "agent/machine/devices/find_devices.h"

// The command line and the output of `hlaunch devices`. Pure.

namespace hlaunch {

struct DevicesOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  std::string sysroot;                       // Empty: this machine.
  bool json = false;
};

// Requires: the command line begins with `devices`.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<DevicesOptions> ParseDevicesOptions(int argc, const char* const* argv);

// Returns text for people: a table, and a line about the processors.
std::string DevicesText(const std::vector<Device>& devices, const Processors& processors);

// The same for programs, with more facts, as one JSON object.
std::string DevicesJson(const std::vector<Device>& devices, const Processors& processors);

}  // namespace hlaunch
