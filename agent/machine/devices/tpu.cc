// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

const char* TpuModelName(int device_id) {
  switch (device_id) {
    case 0x0027:
      return "TPU v2/v3";
    case 0x005e:
      return "TPU v4";
    case 0x0062:
      return "TPU v5p";
    case 0x0063:
      return "TPU v5e";
    case 0x006f:
      return "TPU v6e";
    default:
      return nullptr;
  }
}

// Chip `place` is /dev/accel<place>, or the vfio group of its PCI function. The entries of
// /sys/class/accel and /dev/accel/ are another vendor's.
std::string NodePath(const DeviceFiles& files, const PciFunction& function, int place) {
  const std::string group =
      files.LinkName(absl::StrCat("/sys/bus/pci/devices/", function.address, "/iommu_group"));
  const std::string vfio = absl::StrCat("/dev/vfio/", group);
  const bool by_vfio = function.driver == "vfio-pci" || (!group.empty() && files.Exists(vfio));
  return by_vfio ? vfio : absl::StrCat("/dev/accel", place);
}

}  // namespace

std::vector<Device> FindTpus(const Probe& probe) {
  std::vector<Device> chips;
  for (const PciFunction& function : probe.PciOf(kGoogle)) {
    const char* model = TpuModelName(function.device);
    if (model == nullptr) continue;
    Device chip;
    chip.kind = DeviceKind::kTpu;
    chip.model = model;
    chip.index = static_cast<int>(chips.size());
    SetPlace(function, chip);
    probe.SetNode(NodePath(probe.files, function, chip.index), "", chip);
    chips.push_back(std::move(chip));
  }
  NumberInOrder(chips);
  return chips;
}

}  // namespace hlaunch
