// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/machine/devices/device.h"
#include "agent/machine/devices/device_files.h"
#include "agent/machine/devices/pci_function.h"

// One function for each vendor finds the devices of its kinds on the machine that the probe shows,
// in the order in which the vendor's runtime numbers them. The functions call no library and open
// no device. What they cannot read stays unknown. A device that another vendor's driver has bound
// is not theirs.

namespace hlaunch {

// The device numbers that this process's control group of version 1 allows. For version 2 a kernel
// program decides, which cannot be read.
class DeviceGroup {
 public:
  explicit DeviceGroup(const DeviceFiles& files);
  // `number` is "195:0", as in the file dev in sysfs. True unless the group forbids it.
  bool Allows(absl::string_view number) const;

 private:
  bool limited_ = false;
  std::vector<std::string> allowed_;  // "195:0", "195:*"
};

inline constexpr int kHabana = 0x1da3;
inline constexpr int kNvidia = 0x10de;
inline constexpr int kHuawei = 0x19e5;  // Also of network cards and management graphics.
inline constexpr int kGoogle = 0x1ae0;  // Also of network cards and disks of its machines.

// What all vendors' functions read, read once: a server has hundreds of PCI functions. Belongs to
// one thread.
class Probe {
 public:
  explicit Probe(const DeviceFiles& machine)
      : files(machine), pci_(ListPci(machine, {kHabana, kNvidia, kHuawei, kGoogle})) {}

  const DeviceFiles& files;

  // Returns the PCI functions of one of the vendors above, in the order of their addresses.
  std::vector<PciFunction> PciOf(int vendor) const;

  // Sets node_path, id and `fault`. The id becomes 0 if the device node is there and the control
  // group allows it, else -1. `fault` says what is wrong, also if this user may not open the node.
  // `number` is the device's major and minor number; empty if unknown.
  void SetNode(const std::string& path, const std::string& number, Device& device) const;

 private:
  mutable std::optional<DeviceGroup> group_;  // Read for the first device.
  std::vector<PciFunction> pci_;
};

std::vector<Device> FindGaudi(const Probe& probe);
std::vector<Device> FindNvidia(const Probe& probe);
std::vector<Device> FindAmd(const Probe& probe);
std::vector<Device> FindIntelGpus(const Probe& probe);
std::vector<Device> FindAscend(const Probe& probe);
std::vector<Device> FindNeuron(const Probe& probe);
std::vector<Device> FindTpus(const Probe& probe);

// Gives the devices whose id is 0 or more the ids 0, 1, … in their order.
void NumberInOrder(std::vector<Device>& devices);

// Describes a device that the kernel shows but that no driver of its vendor has bound.
Device WithoutDriver(DeviceKind kind, const std::string& model, const std::string& bound_driver,
                     absl::string_view right_driver);

}  // namespace hlaunch
