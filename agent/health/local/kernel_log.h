// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/devices/device_files.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A line of the kernel's log that speaks of a fault. A value.
struct KernelFault {
  enum class Weight {
    kNote,   // To be looked at: a process was killed, a disk erred once.
    kFatal,  // What it speaks of does not work any more until somebody sees to it.
  };
  Weight weight = Weight::kNote;
  std::string what;  // "Xid 79", "out of memory", …
  std::string line;
  Duration since_boot{};
};

// The faults in `log`, oldest first: lines as in /dev/kmsg ("6,12,3456789,-;text") or as
// dmesg prints them ("<6>[    3.456789] text"). What an application can bring about by itself (most
// Xids of NVIDIA's driver) is none. Pure.
std::vector<KernelFault> FindKernelFaults(absl::string_view log);

// The end of the kernel's log: of this machine from the kernel, else from the file dev/kmsg.
//
// Errors:
//   PermissionDenied - the kernel shows it to root only.
//   NotFound - there is none.
absl::StatusOr<std::string> ReadKernelLog(const DeviceFiles& files);

}  // namespace hlaunch
