// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/machine/devices/device.h"
#include "agent/machine/devices/device_files.h"

namespace hlaunch {

// What sysfs says of one PCI function; -1 and empty mean unknown. A value.
struct PciFunction {
  std::string address;  // "0000:3d:00.0"
  int vendor = -1;
  int device = -1;
  int device_class = -1;  // 0x030000: base class, subclass, interface.
  std::string driver;     // The driver's name; empty if none is bound.
  int numa_node = -1;
  std::string local_cpus;
};

// Returns the address in lower case and with a domain of four digits, as sysfs spells it. The forms
// "00000000:3D:00.0", which NVIDIA's tools print, and "3d:00.0" both give "0000:3d:00.0". Empty if
// `text` is not a PCI address.
std::string NormalPciAddress(absl::string_view text);

PciFunction ReadPci(const DeviceFiles& files, absl::string_view address);

// Returns all functions of these vendors, in the order of their addresses.
std::vector<PciFunction> ListPci(const DeviceFiles& files, const std::vector<int>& vendors);

// Sets the PCI address, NUMA node and local CPUs of `device` from `function`.
void SetPlace(const PciFunction& function, Device& device);

}  // namespace hlaunch
