// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <cstdint>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

constexpr uint64_t kAmd = 0x1002;
constexpr char kNodes[] = "/sys/class/kfd/kfd/topology/nodes";

using Properties = std::map<std::string, uint64_t>;

// Reads lines of `name number`. A node that the control group hides cannot be read.
Properties ReadProperties(const DeviceFiles& files, const std::string& node) {
  Properties properties;
  const std::string text = files.Read(absl::StrCat(kNodes, "/", node, "/properties"));
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    uint64_t value = 0;
    if (absl::SimpleAtoi(parts.second, &value)) properties[std::string(parts.first)] = value;
  }
  return properties;
}

// 90402 is gfx942, 90010 is gfx90a.
std::string TargetName(uint64_t version) {
  return absl::StrFormat("gfx%d%x%x", version / 10000, version / 100 % 100, version % 100);
}

std::string ModelName(const DeviceFiles& files, const PciFunction& function, uint64_t target) {
  const std::string named =
      files.Read(absl::StrCat("/sys/bus/pci/devices/", function.address, "/product_name"));
  if (!named.empty()) return named;
  switch (function.device) {
    case 0x7408:
      return "Instinct MI250X";
    case 0x740c:
      return "Instinct MI250X/MI250";
    case 0x740f:
      return "Instinct MI210";
    case 0x74a0:
      return "Instinct MI300A";
    case 0x74a1:
      return "Instinct MI300X";
    case 0x74a5:
      return "Instinct MI325X";
    default:
      return absl::StrCat("AMD ", TargetName(target));
  }
}

Device ReadGpu(const Probe& probe, Properties& said) {
  Device gpu;
  gpu.kind = DeviceKind::kRocm;
  const uint64_t location = said["location_id"];
  const PciFunction function = ReadPci(
      probe.files, absl::StrFormat("%04x:%02x:%02x.%x", said["domain"], location >> 8 & 0xff,
                                   location >> 3 & 0x1f, location & 7));
  SetPlace(function, gpu);
  gpu.model = ModelName(probe.files, function, said["gfx_target_version"]);
  if (said["unique_id"] != 0) gpu.uuid = absl::StrFormat("GPU-%016x", said["unique_id"]);
  gpu.index = static_cast<int>(said["drm_render_minor"] & 0xffff);
  probe.SetNode(absl::StrCat("/dev/dri/renderD", gpu.index), absl::StrCat("226:", gpu.index), gpu);
  if (gpu.id >= 0 && !probe.files.Exists("/dev/kfd")) {
    gpu.id = -1;
    gpu.fault = "not here: there is no /dev/kfd";
  }
  return gpu;
}

}  // namespace

std::vector<Device> FindAmd(const Probe& probe) {
  std::vector<Device> gpus;
  for (const std::string& node : probe.files.List(kNodes)) {  // The order of ROCr and HIP.
    if (NumberAfter(node, "") < 0) continue;
    Properties said = ReadProperties(probe.files, node);
    if (said["simd_count"] == 0 || said["vendor_id"] != kAmd) continue;  // Skips CPU nodes.
    gpus.push_back(ReadGpu(probe, said));
  }
  NumberInOrder(gpus);
  return gpus;
}

}  // namespace hlaunch
