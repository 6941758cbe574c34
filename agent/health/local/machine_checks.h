// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/health/local/check_result.h"
#include "agent/machine/devices/device.h"
#include "agent/machine/devices/device_files.h"

// The checks that read what the kernel shows of a machine, real or described by a tree of files.
//
// Each check gives one result, however many devices it looks at, and names the worst of them. No
// check fails because a sensor is missing: what the kernel does not show is unknown. The checks
// read only regular files and write nothing. Thread-safe.

namespace hlaunch {

// The devices that a job wants on this node.
struct DevicesWanted {
  std::optional<DeviceKind> kind;  // Any kind if unset.
  int count = 0;                   // At least this many must work.
  bool in_use = false;             // The job uses the devices already, so a holder is no finding.
};

// Checks that devices are present, bound to their driver, operational, answering on the bus, and
// not held by a process.
CheckResult CheckDevices(const DeviceFiles& files, const DevicesWanted& wanted);

// Checks the width and speed of the PCIe links of accelerators and network cards. A card is
// compared with cards of its kind on this machine, and otherwise with what card and slot can do
// together. The speed is reported but not judged, because an idle card lowers it. The value is the
// sum of the lanes.
CheckResult CheckPcieLinks(const DeviceFiles& files);

// Checks the AER counters of the same cards, since boot. The value counts uncorrected errors.
CheckResult CheckPcieErrors(const DeviceFiles& files);

// Checks the EDAC counters of the memory controllers, since boot. The value counts corrected
// errors.
CheckResult CheckMemoryErrors(const DeviceFiles& files);

// Checks for sensors at their critical limit. The value is the hottest, in degrees.
CheckResult CheckHeat(const DeviceFiles& files);

// How often CPUs were slowed down for heat or power since boot; unset if the kernel does not say.
std::optional<int64_t> ThrottleCount(const DeviceFiles& files);

// Looks for faults in the kernel's log within the last hour. A fatal one within ten minutes fails
// the check: the device may have been repaired after an older one. The value counts all faults in
// the log, also older ones, so that a new one always adds to it.
CheckResult CheckKernelLog(const DeviceFiles& files);

// Checks that an Ethernet card has a link and few errors. The value is the speed of all links that
// are up, in Gbit/s.
CheckResult CheckNetwork(const DeviceFiles& files);

// Counts how often network cards, and InfiniBand and RoCE ports, lost their link since boot. The
// value is the sum.
CheckResult CheckLinkLosses(const DeviceFiles& files);

// Checks the InfiniBand and RoCE ports. The value is the rate of all active ports, in Gbit/s.
CheckResult CheckFabric(const DeviceFiles& files);

// Checks the free memory. The value is what new programs may take, in GiB.
CheckResult CheckMemory(const DeviceFiles& files);

}  // namespace hlaunch
