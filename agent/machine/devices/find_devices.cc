// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/find_devices.h"

#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/probe.h"

namespace hlaunch {

std::vector<Device> FindDevices(const DeviceFiles& files) {
  const Probe probe(files);
  std::vector<Device> devices;
  for (const auto find :
       {FindGaudi, FindNvidia, FindAmd, FindAscend, FindNeuron, FindTpus, FindIntelGpus}) {
    std::vector<Device> found = find(probe);
    std::move(found.begin(), found.end(), std::back_inserter(devices));
  }
  if (!devices.empty()) FindHolders(files, devices);
  return devices;
}

Processors FindProcessors(const DeviceFiles& files) {
  constexpr char kCpus[] = "/sys/devices/system/cpu";
  std::set<std::string> sockets;
  std::set<std::string> cores;
  Processors found;
  for (const std::string& name : files.List(kCpus)) {
    if (NumberAfter(name, "cpu") < 0) continue;
    const std::string folder = absl::StrCat(kCpus, "/", name, "/");
    if (files.Read(folder + "online") == "0") continue;
    ++found.threads;
    const std::string socket = files.Read(folder + "topology/physical_package_id");
    const std::string core = files.Read(folder + "topology/core_id");
    if (socket.empty() || core.empty()) {
      cores.insert(name);
      continue;
    }
    sockets.insert(socket);
    cores.insert(absl::StrCat(socket, "/", core));
  }
  found.sockets = static_cast<int>(sockets.size());
  found.cores = static_cast<int>(cores.size());
  for (const std::string& name : files.List("/sys/devices/system/node")) {
    found.numa_nodes += NumberAfter(name, "node") >= 0 ? 1 : 0;
  }
  return found;
}

}  // namespace hlaunch
