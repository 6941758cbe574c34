// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/devices/device.h"
#include "agent/devices/device_files.h"

namespace hlaunch {

// The processors of a machine, which every job has.
struct Processors {
  int sockets = 0;  // 0: unknown.
  int cores = 0;
  int threads = 0;
  int numa_nodes = 0;
};

// All accelerators of the machine, kind by kind in the order of kDeviceKinds, each kind in the
// order in which workers get them, with the processes that hold them as far as this user may
// see. Reads /sys, /proc and the names in /dev; nothing is opened but regular files, and nothing
// is written. Thread-safe; takes about a millisecond where there is none.
std::vector<Device> FindDevices(const DeviceFiles& files);

Processors FindProcessors(const DeviceFiles& files);

// Puts into `devices` who has one of their device nodes open: all processes for root, else those
// of this user.
void FindHolders(const DeviceFiles& files, std::vector<Device>& devices);

}  // namespace hlaunch
