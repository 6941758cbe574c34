// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/host_facts.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/machine/devices/find_devices.h"
#include "agent/workers/process/descendants.h"
#include "launcher/cli/hosts/start_message.h"

namespace hlaunch {
namespace {

constexpr uint64_t kLeastFree = 64 << 20;  // Of the disk that has the parts.
constexpr uint64_t kLeastFiles = 1000;

std::vector<DeviceFact> DevicesOf(const std::string& sysroot) {
  std::vector<DeviceFact> facts;
  for (const Device& device : FindDevices(DeviceFiles(sysroot))) {
    const bool known = device.id >= 0 && facts.size() < kMaxDevices;
    if (known) facts.push_back({device.id, KindName(device.kind), device.fault});
  }
  return facts;
}

int CpusOfThisProcess() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::string TroubleOf(const HostPlaces& places) {
  if (::access(places.program.c_str(), X_OK) != 0) {
    return absl::StrCat("there is no program ", places.program, ": ", std::strerror(errno));
  }
  struct statvfs disk = {};
  if (::statvfs(places.parts.c_str(), &disk) != 0) {
    return absl::StrCat("there is no folder ", places.parts, ": ", std::strerror(errno));
  }
  if ((disk.f_flag & ST_RDONLY) != 0) return absl::StrCat(places.parts, " cannot be written");
  const bool full = disk.f_bavail * disk.f_frsize < kLeastFree;
  // Some file systems do not count files.
  if (full || (disk.f_files > 0 && disk.f_favail < kLeastFiles)) {
    return absl::StrCat("the disk with ", places.parts, " is full");
  }
  return "";
}

}  // namespace

HostFacts LookAtHost(const DaemonConfig& config, const HostPlaces& places) {
  HostFacts facts;
  facts.version = WireVersion();
  facts.boot_id =
      std::string(absl::StripAsciiWhitespace(ReadSmallFile("/proc/sys/kernel/random/boot_id")));
  facts.devices = DevicesOf(places.sysroot);
  facts.slots = config.slots.value_or(std::max(1, CpusOfThisProcess()));
  facts.labels = config.labels;
  facts.trouble = TroubleOf(places);
  return facts;
}

}  // namespace hlaunch
