// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/health/local/check_result.h"
#include "agent/machine/devices/device_files.h"

// The checks that try what a job will do on this host. They cannot run on a described machine. Each
// may block for as long as the kernel, a file server or a name server takes.

namespace hlaunch {

// Checks that a file can be written in `directory`, or in the nearest existing folder above it. It
// leaves nothing behind. The value is the free space there in GiB. If `bytes` is not 0, so many
// bytes are written to measure the speed, which the reason tells.
CheckResult CheckLogDirectory(const std::string& directory, size_t bytes);

// Checks /dev/shm, which data loaders and collectives need. The value is its size in GiB.
CheckResult CheckSharedMemory(const std::string& directory = "/dev/shm");

// Checks the limits of open files and of locked memory. Locked memory is judged only where `files`
// shows an RDMA device.
CheckResult CheckLimits(const DeviceFiles& files);

// Checks whether a time service keeps the clock right. The value is the largest error in ms that
// the kernel knows of.
CheckResult CheckClock();

// Checks that `host` has an address. The value is how long the answer took, in ms.
CheckResult CheckName(const std::string& host);

// Checks that the processor computes right. The value is the CPU time of fixed work in ms; `full`
// measures longer.
CheckResult CheckProcessor(bool full);

// Measures memory. The value is GB/s copied by one core.
CheckResult CheckMemorySpeed();

}  // namespace hlaunch
