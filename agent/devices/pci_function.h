// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/devices/device.h"
#include "agent/devices/device_files.h"

namespace hlaunch {

// What sysfs says of one PCI function. A value; -1 and empty: unknown.
struct PciFunction {
  std::string address;  // "0000:3d:00.0"
  int vendor = -1;
  int device = -1;
  int device_class = -1;  // 0x030000: base class, subclass, interface.
  std::string driver;     // Its name; empty: none is bound.
  int numa_node = -1;
  std::string local_cpus;
};

// Lower case and with a domain of four digits, as sysfs spells it: "00000000:3D:00.0", which
// NVIDIA's tools print, and "3d:00.0" are both "0000:3d:00.0". Empty: it is no PCI address.
std::string NormalPciAddress(absl::string_view text);

PciFunction ReadPci(const DeviceFiles& files, absl::string_view address);

// All functions of these vendors in the order of their addresses.
std::vector<PciFunction> ListPci(const DeviceFiles& files, const std::vector<int>& vendors);

// Puts address and place of `function` into `device`.
void SetPlace(const PciFunction& function, Device& device);

}  // namespace hlaunch
