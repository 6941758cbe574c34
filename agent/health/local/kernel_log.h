// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/machine/devices/device_files.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A line of the kernel's log that reports a fault. A value.
struct KernelFault {
  enum class Weight {
    kNote,   // Worth a look: a process was killed, a disk had one error.
    kFatal,  // The device stays out of use until it is repaired.
  };
  Weight weight = Weight::kNote;
  std::string what;  // "Xid 79", "out of memory", …
  std::string line;
  Duration since_boot{};
};

// The faults in `log`, oldest first. Lines look as in /dev/kmsg ("6,12,3456789,-;text") or as dmesg
// prints them ("<6>[    3.456789] text"). What an application can cause by itself (most Xids of
// NVIDIA's driver) does not count as a fault. Pure.
std::vector<KernelFault> FindKernelFaults(absl::string_view log);

// Returns the end of the kernel's log: from the kernel for this machine, else from the file
// dev/kmsg of the described machine.
//
// Errors:
//   PermissionDenied - the kernel shows it to root only.
//   NotFound - there is none.
absl::StatusOr<std::string> ReadKernelLog(const DeviceFiles& files);

}  // namespace hlaunch
