// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/show_devices.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/machine/devices/device_files.h"
#include "launcher/command/print_text.h"
#include "launcher/report/job/devices_text.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {

int ShowDevices(int argc, char** argv) {
  const absl::StatusOr<DevicesOptions> options = ParseDevicesOptions(argc, argv);
  if (!options.ok()) {
    LogError(options.status().message());
    return kExitUsage;
  }
  if (options->text_to_print) return PrintText(*options->text_to_print);
  const DeviceFiles files(options->sysroot);
  if (!files.Exists("/")) {
    LogError(absl::StrCat("--sysroot ", options->sysroot, ": there is no such directory"));
    return kExitUsage;
  }
  const std::vector<Device> devices = FindDevices(files);
  const Processors processors = FindProcessors(files);
  return PrintText(options->json ? DevicesJson(devices, processors)
                                 : DevicesText(devices, processors));
}

}  // namespace hlaunch
