// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/machine/devices/find_devices.h"

namespace hlaunch {

void FindHolders(const DeviceFiles& files, std::vector<Device>& devices) {
  std::multimap<std::string, Device*> by_node;
  for (Device& device : devices) by_node.emplace(device.node_path, &device);
  by_node.erase("");
  if (by_node.empty()) return;
  for (const std::string& process : files.List("/proc")) {
    const int pid = NumberAfter(process, "");
    if (pid <= 0) continue;
    std::set<Device*> held;
    for (const auto& [fd, target] : files.Links(absl::StrCat("/proc/", process, "/fd"))) {
      if (!absl::StartsWith(target, "/dev/")) continue;
      const auto [first, last] = by_node.equal_range(target);
      for (auto it = first; it != last; ++it) held.insert(it->second);
    }
    if (held.empty()) continue;
    const std::string command = files.Read(absl::StrCat("/proc/", process, "/comm"));
    for (Device* device : held) device->holders.push_back({pid, command});
  }
}

}  // namespace hlaunch
