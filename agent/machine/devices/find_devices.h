// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/machine/devices/device.h"
#include "agent/machine/devices/device_files.h"

namespace hlaunch {

// The processors of a machine; every job can use them.
struct Processors {
  int sockets = 0;  // 0 if unknown.
  int cores = 0;
  int threads = 0;
  int numa_nodes = 0;
};

// Finds all accelerators of the machine, kind by kind in the order of kDeviceKinds, each kind in
// the order in which workers get them, with the processes that hold them as far as this user may
// see. Reads /sys, /proc and the names in /dev; opens only regular files and writes nothing.
// Thread-safe; takes about a millisecond on a machine without accelerators.
std::vector<Device> FindDevices(const DeviceFiles& files);

Processors FindProcessors(const DeviceFiles& files);

// Adds to `devices` the processes that have one of their device nodes open: all processes for root,
// else those of this user.
void FindHolders(const DeviceFiles& files, std::vector<Device>& devices);

}  // namespace hlaunch
