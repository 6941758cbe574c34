// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

constexpr int kIntel = 0x8086;
constexpr char kDrmClass[] = "/sys/class/drm";
constexpr char kIntegrated[] = "0000:00:02.0";  // The graphics of the processor itself.

std::string IntelModelName(int device_id) {
  switch (device_id) {
    case 0x0bd5:
      return "Data Center GPU Max 1550";
    case 0x0bd9:
    case 0x0bda:
      return "Data Center GPU Max 1100";
    case 0x56c0:
      return "Data Center GPU Flex 170";
    case 0x56c1:
      return "Data Center GPU Flex 140";
    case 0x56a0:
      return "Arc A770";
    case 0xe20b:
      return "Arc B580";
    default:
      return absl::StrFormat("Intel GPU 0x%04x", device_id);
  }
}

// The driver xe has a folder for each tile. The driver i915 has a gt for each tile, and with i915
// tiles never share one.
int Tiles(const DeviceFiles& files, const std::string& drm, const std::string& pci) {
  int tiles = 0;
  for (const std::string& name : files.List(pci)) tiles += NumberAfter(name, "tile") >= 0 ? 1 : 0;
  if (tiles > 0) return tiles;
  for (const std::string& card : files.List(drm + "/device/drm")) {
    if (NumberAfter(card, "card") < 0) continue;
    for (const std::string& name : files.List(absl::StrCat(drm, "/device/drm/", card, "/gt"))) {
      tiles += NumberAfter(name, "gt") >= 0 ? 1 : 0;
    }
  }
  return std::max(1, tiles);
}

}  // namespace

std::vector<Device> FindIntelGpus(const Probe& probe) {
  std::vector<Device> gpus;
  for (const std::string& name : probe.files.List(kDrmClass)) {
    const int index = NumberAfter(name, "renderD");
    if (index < 0) continue;
    const std::string drm = absl::StrCat(kDrmClass, "/", name);
    const PciFunction function = ReadPci(probe.files, probe.files.LinkName(drm + "/device"));
    const bool ours = function.driver == "i915" || function.driver == "xe";
    if (!ours || function.vendor != kIntel || function.address == kIntegrated) continue;
    Device gpu;
    gpu.kind = DeviceKind::kXpu;
    gpu.model = IntelModelName(function.device);
    gpu.index = index;
    gpu.parts = Tiles(probe.files, drm, "/sys/bus/pci/devices/" + function.address);
    SetPlace(function, gpu);
    probe.SetNode(absl::StrCat("/dev/dri/", name), probe.files.Read(drm + "/dev"), gpu);
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const Device& a, const Device& b) { return a.pci_address < b.pci_address; });
  NumberInOrder(gpus);
  return gpus;
}

}  // namespace hlaunch
