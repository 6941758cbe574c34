// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/devices/device_files.h"
#include "agent/health/local/check_result.h"

// The checks that try what a job will do on this host, and so cannot be asked of a described
// machine. Each may block for as long as the kernel, a file server or a name server likes.

namespace hlaunch {

// That a file can be written in `directory`, or in the folder above in which it will be made. It
// leaves nothing behind. The value is the room there in GiB; with `bytes` it is also filled for the
// speed, which the reason tells.
CheckResult CheckLogDirectory(const std::string& directory, size_t bytes);

// /dev/shm, which data loaders and collectives need. The value is its size in GiB.
CheckResult CheckSharedMemory(const std::string& directory = "/dev/shm");

// Open files and locked memory. Locked memory is judged where `files` shows an RDMA device.
CheckResult CheckLimits(const DeviceFiles& files);

// Whether something keeps the clock right. The value is the largest error in ms that the kernel
// knows of.
CheckResult CheckClock();

// That `host` has an address. The value is how long the answer took, in ms.
CheckResult CheckName(const std::string& host);

// The value is the CPU time of fixed work in ms; `full` measures longer.
CheckResult CheckProcessor(bool full);

// The value is GB/s copied by one core.
CheckResult CheckMemorySpeed();

}  // namespace hlaunch
