// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

std::string ModelName(int device_id) {
  switch (device_id) {
    case 0xd100:
      return "Ascend 310";
    case 0xd500:
      return "Ascend 310P";
    case 0xd801:
      return "Ascend 910";
    case 0xd802:
      return "Ascend 910B";
    default:
      return "Ascend";
  }
}

}  // namespace

// The kernel does not show which chip /dev/davinciN is, so only what all chips share is known.
std::vector<Device> FindAscend(const Probe& probe) {
  std::vector<PciFunction> chips = probe.PciOf(kHuawei);
  chips.erase(std::remove_if(chips.begin(), chips.end(),
                             [](const PciFunction& f) { return f.device_class >> 16 != 0x12; }),
              chips.end());
  const auto all_have = [&chips](auto member) {
    return std::all_of(chips.begin(), chips.end(),
                       [&](const PciFunction& f) { return f.*member == chips[0].*member; });
  };
  std::vector<Device> devices;
  for (const std::string& name : probe.files.List("/dev", "davinci")) {
    const int index = NumberAfter(name, "davinci");
    if (index < 0) continue;
    Device device;
    device.kind = DeviceKind::kAscend;
    device.index = index;
    device.model =
        ModelName(!chips.empty() && all_have(&PciFunction::device) ? chips[0].device : -1);
    if (!chips.empty() && all_have(&PciFunction::numa_node)) {
      device.numa_node = chips[0].numa_node;
      if (all_have(&PciFunction::local_cpus)) device.local_cpus = chips[0].local_cpus;
    }
    probe.SetNode(absl::StrCat("/dev/", name), "", device);
    if (device.id >= 0) device.id = index;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace hlaunch
