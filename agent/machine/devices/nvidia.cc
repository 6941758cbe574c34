// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/machine/devices/pci_function.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {
namespace {

constexpr int kMajor = 195;  // The fixed major number of /dev/nvidia<minor>.
constexpr char kGpus[] = "/proc/driver/nvidia/gpus";

std::map<std::string, std::string> KeysAndValues(const std::string& text) {
  std::map<std::string, std::string> values;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    values[std::string(absl::StripAsciiWhitespace(parts.first))] =
        std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return values;
}

// The instances of a GPU in MIG mode, read from their capabilities.
std::vector<std::string> MigInstances(const DeviceFiles& files, int minor) {
  std::vector<std::string> found;
  const std::string folder = absl::StrCat("/proc/driver/nvidia/capabilities/gpu", minor, "/mig");
  for (const std::string& gpu_instance : files.List(folder)) {
    const int gi = NumberAfter(gpu_instance, "gi");
    if (gi < 0) continue;
    for (const std::string& name : files.List(absl::StrCat(folder, "/", gpu_instance))) {
      const int ci = NumberAfter(name, "ci");
      if (ci >= 0) found.push_back(absl::StrCat(gi, "/", ci));
    }
  }
  return found;
}

Device ReadGpu(const Probe& probe, const std::string& name) {
  std::map<std::string, std::string> said =
      KeysAndValues(probe.files.Read(absl::StrCat(kGpus, "/", name, "/information")));
  Device gpu;
  gpu.kind = DeviceKind::kCuda;
  SetPlace(ReadPci(probe.files, name), gpu);
  gpu.model = std::string(absl::StripPrefix(said["Model"], "NVIDIA "));
  if (gpu.model.empty()) gpu.model = "NVIDIA GPU";
  gpu.uuid = said["GPU UUID"];
  // The driver masks it until a process with the right has used the GPU.
  if (gpu.uuid.find('?') != std::string::npos) gpu.uuid.clear();
  gpu.index = NumberAfter(said["Device Minor"], "");
  if (gpu.index < 0) {
    gpu.fault = "not here: its device minor is unknown";
    return gpu;
  }
  gpu.mig = MigInstances(probe.files, gpu.index);
  probe.SetNode(absl::StrCat("/dev/nvidia", gpu.index), absl::StrCat(kMajor, ":", gpu.index), gpu);
  if (said["GPU Excluded"] == "Yes") {
    gpu.id = -1;
    gpu.fault = "not here: the driver was told to exclude it";
  }
  return gpu;
}

}  // namespace

std::vector<Device> FindNvidia(const Probe& probe) {
  std::vector<Device> gpus;
  std::set<std::string> seen;
  for (const std::string& name : probe.files.List(kGpus)) {
    if (NormalPciAddress(name).empty()) continue;
    gpus.push_back(ReadGpu(probe, name));
    seen.insert(gpus.back().pci_address);
  }
  for (const PciFunction& function : probe.PciOf(kNvidia)) {
    const bool display = function.device_class >> 16 == 0x03;  // Not its sound and USB parts.
    if (!display || seen.contains(function.address) || function.driver == "nvidia") continue;
    gpus.push_back(WithoutDriver(DeviceKind::kCuda,
                                 absl::StrFormat("NVIDIA GPU 0x%04x", function.device),
                                 function.driver, "nvidia"));
    SetPlace(function, gpus.back());
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const Device& a, const Device& b) { return a.pci_address < b.pci_address; });
  NumberInOrder(gpus);
  return gpus;
}

}  // namespace hlaunch
