// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/probe.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

// "4:devices:/docker/abc" leads to /sys/fs/cgroup/devices/docker/abc; in a container, whose cgroup
// is mounted as the root, it leads to /sys/fs/cgroup/devices.
std::string DeviceList(const DeviceFiles& files) {
  for (absl::string_view line : absl::StrSplit(files.Read("/proc/self/cgroup"), '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "devices") == controllers.end()) continue;
    const std::string own =
        files.Read(absl::StrCat("/sys/fs/cgroup/devices", fields[2], "/devices.list"));
    return own.empty() ? files.Read("/sys/fs/cgroup/devices/devices.list") : own;
  }
  return "";
}

}  // namespace

DeviceGroup::DeviceGroup(const DeviceFiles& files) {
  const std::string list = DeviceList(files);
  if (list.empty()) return;
  limited_ = true;
  for (absl::string_view line : absl::StrSplit(list, '\n')) {  // "c 195:* rwm"
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() != 3) continue;
    if (fields[0] == "a") limited_ = false;
    if (fields[0] == "c" && fields[2].find('r') != std::string::npos) allowed_.push_back(fields[1]);
  }
}

bool DeviceGroup::Allows(absl::string_view number) const {
  if (!limited_ || number.empty()) return true;
  const std::string all = absl::StrCat(number.substr(0, number.find(':')), ":*");
  return std::any_of(allowed_.begin(), allowed_.end(), [&](const std::string& allowed) {
    return allowed == number || allowed == all || allowed == "*:*";
  });
}

std::vector<PciFunction> Probe::PciOf(int vendor) const {
  std::vector<PciFunction> found;
  std::copy_if(pci_.begin(), pci_.end(), std::back_inserter(found),
               [vendor](const PciFunction& function) { return function.vendor == vendor; });
  return found;
}

void Probe::SetNode(const std::string& path, const std::string& number, Device& device) const {
  device.node_path = path;
  device.id = -1;
  if (!files.Exists(path)) {
    device.fault = absl::StrCat("not here: there is no ", path);
    return;
  }
  if (!group_.has_value()) group_.emplace(files);
  if (!group_->Allows(number)) {
    device.fault = absl::StrCat("not here: the control group does not allow ", path);
    return;
  }
  device.id = 0;
  if (!files.MayOpen(path)) device.fault = absl::StrCat("no permission to open ", path);
}

void NumberInOrder(std::vector<Device>& devices) {
  int next = 0;
  for (Device& device : devices) {
    if (device.id >= 0) device.id = next++;
  }
}

Device WithoutDriver(DeviceKind kind, const std::string& model, const std::string& bound_driver,
                     absl::string_view right_driver) {
  Device device;
  device.kind = kind;
  device.model = model;
  device.fault =
      absl::StrCat("not here: ", bound_driver.empty() ? "no driver" : bound_driver + " has it",
                   ", not ", right_driver);
  return device;
}

}  // namespace hlaunch
