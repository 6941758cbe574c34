// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/machine/devices/visible_devices.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/parse_int.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr int kMaxCores = 65536;

absl::Status SetDevices(string_view text, Options& options) {
  options.devices.none = text == "none";
  options.devices.ids.reset();
  if (text == "none" || text == "all") return absl::OkStatus();
  options.devices.ids = ParseIds(text);
  if (options.devices.ids) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "expected numbers of `hlaunch devices` such as 0,2-3, or all, or none");
}

const OptionRow kDeviceRows[] = {
    {"Devices", "", "--devices", "LIST|none",
     "which of this node's, as 0,2-3 (all that are visible)", SetDevices},
    {"", "", "--isolate-devices", "", "each worker sees its own device only",
     [](string_view, Options& options) { return SetFlag(&options.devices.isolate); }},
    {"", "", "--oversubscribe", "", "start on devices that are too few, held or not operational",
     [](string_view, Options& options) { return SetFlag(&options.devices.oversubscribe); }},
    {"", "", "--per-node", "",
     "one worker, which starts its node's others itself, as Lightning does",
     [](string_view, Options& options) { return SetFlag(&options.devices.starts_others); }},
    {"", "", "--sysroot", "DIR", "read of devices what DIR/sys, DIR/proc and DIR/dev describe",
     [](string_view text, Options& options) {
       options.sysroot = std::string(text);
       return absl::OkStatus();
     }},
};

absl::Status SetBind(string_view text, Options& options) {
  options.binding.cores = 0;
  if (absl::ConsumePrefix(&text, "core:")) {
    options.binding.mode = BindMode::kCore;
    if (ParseInt(text, 1, kMaxCores, &options.binding.cores)) return absl::OkStatus();
    return absl::InvalidArgumentError("expected core:N, the cores of each worker");
  }
  options.binding.slots.clear();
  if (absl::ConsumePrefix(&text, "slots:")) {
    options.binding.mode = BindMode::kSlots;
    options.binding.slots = absl::StrSplit(text, ';');
    const std::vector<std::string>& slots = options.binding.slots;
    if (std::all_of(slots.begin(), slots.end(), IsSlotList)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "expected slots:A;B, the cores of each local rank, such as slots:0-1;2 or slots:0:0;1:0");
  }
  for (const BindMode mode : {BindMode::kAuto, BindMode::kNone, BindMode::kNuma, BindMode::kSocket,
                              BindMode::kCore, BindMode::kL3}) {
    if (text != BindModeName(mode)) continue;
    options.binding.mode = mode;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "expected auto, none, numa, socket, core, core:N, l3 or slots:A;B");
}

// Sets a binding from torchrun's words.
absl::Status SetNumaBinding(string_view text, Options& options) {
  if (text == "node") {
    options.binding.numa = BindMode::kNuma;
  } else if (text == "socket") {
    options.binding.numa = BindMode::kSocket;
  } else if (text == "exclusive") {
    options.binding.numa = BindMode::kCore;
  } else if (text == "core-complex") {
    options.binding.numa = BindMode::kL3;
  } else {
    return absl::InvalidArgumentError("expected node, socket, exclusive or core-complex");
  }
  return absl::OkStatus();
}

const OptionRow kBindingRows[] = {
    Excluding("--numa-binding", kLeaveOneOut,
              {"Binding to CPUs", "", "--bind", "auto|none|numa|socket|core[:N]|l3",
               "to those near its device (auto: where no worker loses any); slots:A;B: to those of "
               "each local rank",
               SetBind}),
    {"", "", "--numa-binding", "node|socket|exclusive|core-complex",
     "torchrun's words: as numa, socket, core or l3", SetNumaBinding},
    {"", "", "--report-bindings", "", "draw which worker may run where",
     [](string_view, Options& options) { return SetFlag(&options.binding.report); }},
};

}  // namespace

absl::Span<const OptionRow> DeviceOptions() { return kDeviceRows; }

absl::Span<const OptionRow> BindingOptions() { return kBindingRows; }

}  // namespace hlaunch
