// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/devices/device.h"
#include "agent/devices/device_files.h"
#include "agent/health/local/check_result.h"

// The checks that read what the kernel shows of a machine: real, or described by a tree of files.
//
// Each gives one result, however many devices it looks at; the worst of them is named. None
// fails for want of a sensor: what the kernel does not show is unknown. They read regular files
// only and write nothing. Thread-safe.

namespace hlaunch {

// The devices that a job wants of this node.
struct DevicesWanted {
  std::optional<DeviceKind> kind;  // Unset: whatever is there.
  int count = 0;                   // At least so many that work.
  bool in_use = false;             // The job has them by now: a holder is no finding.
};

// Present, bound to their driver, operational, answering on the bus, not held by a process.
CheckResult CheckDevices(const DeviceFiles& files, const DevicesWanted& wanted);

// Width and speed of the PCIe links of accelerators and network cards. A card is measured by its
// own kind on this machine, and else by what card and slot can do together. Speed is told and
// not judged: an idle card lowers it. The value is the sum of the lanes.
CheckResult CheckPcieLinks(const DeviceFiles& files);

// AER counters of the same cards, since boot. The value counts what was not corrected.
CheckResult CheckPcieErrors(const DeviceFiles& files);

// EDAC counters of the memory controllers, since boot. The value counts what was corrected.
CheckResult CheckMemoryErrors(const DeviceFiles& files);

// Sensors at their critical limit. The value is the hottest, in degrees.
CheckResult CheckHeat(const DeviceFiles& files);

// How often CPUs were slowed down for heat or power since boot; unset: the kernel does not say.
std::optional<int64_t> ThrottleCount(const DeviceFiles& files);

// Faults in the kernel's log within the last hour; the value counts them. A fatal one within ten
// minutes fails the check: an older one may have been mended since.
CheckResult CheckKernelLog(const DeviceFiles& files);

// Ethernet: that a card has a link, and few errors. The value is the speed of all links that are
// up, in Gbit/s.
CheckResult CheckNetwork(const DeviceFiles& files);

// How often cards with a link, and InfiniBand and RoCE ports, have lost it since boot. The value is
// the sum.
CheckResult CheckLinkLosses(const DeviceFiles& files);

// InfiniBand and RoCE ports. The value is the rate of all that are active, in Gbit/s.
CheckResult CheckFabric(const DeviceFiles& files);

// The value is what new programs may take, in GiB.
CheckResult CheckMemory(const DeviceFiles& files);

}  // namespace hlaunch
