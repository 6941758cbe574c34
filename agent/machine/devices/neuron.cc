// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

constexpr char kClass[] = "/sys/devices/virtual/neuron_device";

}  // namespace

std::vector<Device> FindNeuron(const Probe& probe) {
  std::vector<Device> devices;
  for (const std::string& name : probe.files.List(kClass)) {
    const int index = NumberAfter(name, "neuron");
    if (index < 0) continue;
    const std::string folder = absl::StrCat(kClass, "/", name);
    Device device;
    device.kind = DeviceKind::kNeuron;
    device.index = index;
    device.model = probe.files.Read(folder + "/info/architecture/device_name");
    if (device.model.empty()) device.model = "Neuron";
    // The number in the file decides an allocation, so it is not trusted: no device has more than
    // 64 cores.
    device.parts = std::clamp(probe.files.ReadInt(folder + "/core_count", 1), 1, 64);
    device.uuid = probe.files.Read(folder + "/info/serial_number");
    probe.SetNode(absl::StrCat("/dev/", name), probe.files.Read(folder + "/dev"), device);
    if (device.id >= 0) device.id = index;
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace hlaunch
