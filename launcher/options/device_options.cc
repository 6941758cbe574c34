// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <string>

#include "agent/devices/visible_devices.h"
#include "launcher/options/option_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

absl::Status SetDevices(string_view text, Options& options) {
  options.no_devices = text == "none";
  options.devices.reset();
  if (text == "none" || text == "all") return absl::OkStatus();
  options.devices = ParseIds(text);
  if (options.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "expected numbers of `hlaunch devices` such as 0,2-3, or all, or none");
}

const OptionRow kRows[] = {
    {"Devices", "", "--devices", "LIST|none",
     "which of this node's, as 0,2-3 (all that are visible)", SetDevices},
    {"", "", "--isolate-devices", "", "each worker sees its own device only",
     [](string_view, Options& options) { return SetFlag(&options.isolate_devices); }},
    {"", "", "--oversubscribe", "", "start on devices that are too few, held or not operational",
     [](string_view, Options& options) { return SetFlag(&options.oversubscribe); }},
    {"", "", "--per-node", "",
     "one worker, which starts its node's others itself, as Lightning does",
     [](string_view, Options& options) { return SetFlag(&options.per_node); }},
    {"", "", "--sysroot", "DIR", "read of devices what DIR/sys, DIR/proc and DIR/dev describe",
     [](string_view text, Options& options) {
       options.sysroot = std::string(text);
       return absl::OkStatus();
     }},
};

}  // namespace

absl::Span<const OptionRow> DeviceOptions() { return kRows; }

}  // namespace hlaunch
