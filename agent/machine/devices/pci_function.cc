// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/pci_function.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr char kPciFolder[] = "/sys/bus/pci/devices";

bool ReadHex(absl::string_view text, size_t max_digits, uint32_t* value) {
  const bool digits = !text.empty() && text.size() <= max_digits &&
                      std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
  return digits && absl::SimpleHexAtoi(text, value);
}

}  // namespace

std::string NormalPciAddress(absl::string_view text) {
  std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  if (fields.size() == 2) fields.insert(fields.begin(), "0");
  if (fields.size() != 3) return "";
  const std::vector<absl::string_view> last = absl::StrSplit(fields[2], '.');
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t slot = 0;
  uint32_t function = 0;
  if (last.size() != 2 || !ReadHex(fields[0], 8, &domain) || !ReadHex(fields[1], 2, &bus) ||
      !ReadHex(last[0], 2, &slot) || !ReadHex(last[1], 1, &function)) {
    return "";
  }
  return absl::StrFormat("%04x:%02x:%02x.%x", domain, bus, slot, function);
}

PciFunction ReadPci(const DeviceFiles& files, absl::string_view address) {
  PciFunction function;
  function.address = NormalPciAddress(address);
  if (function.address.empty()) return function;
  const std::string folder = absl::StrCat(kPciFolder, "/", function.address, "/");
  function.vendor = files.ReadInt(folder + "vendor", -1);
  function.device = files.ReadInt(folder + "device", -1);
  function.device_class = files.ReadInt(folder + "class", -1);
  function.driver = files.LinkName(folder + "driver");
  function.numa_node = std::max(-1, files.ReadInt(folder + "numa_node", -1));
  function.local_cpus = files.Read(folder + "local_cpulist");
  return function;
}

std::vector<PciFunction> ListPci(const DeviceFiles& files, const std::vector<int>& vendors) {
  std::vector<PciFunction> found;
  for (const std::string& name : files.List(kPciFolder)) {
    const int vendor = files.ReadInt(absl::StrCat(kPciFolder, "/", name, "/vendor"), -1);
    if (std::find(vendors.begin(), vendors.end(), vendor) == vendors.end()) continue;
    PciFunction function = ReadPci(files, name);
    if (!function.address.empty()) found.push_back(std::move(function));
  }
  std::sort(found.begin(), found.end(),
            [](const PciFunction& a, const PciFunction& b) { return a.address < b.address; });
  return found;
}

void SetPlace(const PciFunction& function, Device& device) {
  device.pci_address = function.address;
  device.numa_node = function.numa_node;
  device.local_cpus = function.local_cpus;
}

}  // namespace hlaunch
