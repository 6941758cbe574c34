// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/kernel_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using Weight = KernelFault::Weight;

TEST(FindKernelFaults, ReadsBothShapesOfALine) {
  const auto faults = FindKernelFaults(
      "3,77,123456789,-;Out of memory: Killed process 12 (python3)\n SUBSYSTEM=x\n"
      "<3>[  200.500000] Out of memory: Killed process 13 (python3)\n"
      "not a line of any log\n<3>[nothing\n;\n");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].since_boot, std::chrono::microseconds(123456789));
  EXPECT_EQ(faults[1].since_boot, std::chrono::milliseconds(200500));
  EXPECT_EQ(faults[1].line, "Out of memory: Killed process 13 (python3)");
}

TEST(FindKernelFaults, KnowsFaultsFromTheDoingsOfPrograms) {
  struct Line {
    const char* text;
    const char* what;  // Empty if it is no fault.
    Weight weight;
  };
  const Line kLines[] = {
      {"NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off", "Xid 79", Weight::kFatal},
      {"NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU fault", "", Weight::kNote},
      {"NVRM: Xid (PCI:0000:3b:00): 63, row remap", "Xid 63", Weight::kNote},
      {"NVRM: Xid (PCI:0000:3b:00): , cut", "", Weight::kNote},
      {"habanalabs 0000:19:00.0: Performing hard-reset", "Gaudi card was reset", Weight::kNote},
      {"habanalabs 0000:19:00.0: reset failed, device is not usable", "Gaudi card is lost",
       Weight::kFatal},
      {"habanalabs 0000:19:00.0: Found GAUDI2 device", "", Weight::kNote},
      {"usb 1-1: hard reset", "", Weight::kNote},
      {"blk_update_request: I/O error, dev sda, sector 1", "I/O error", Weight::kNote},
      {"INFO: task python3:12 blocked for more than 120 seconds.", "hung task", Weight::kNote},
      {"Memory cgroup out of memory: Killed process 5", "", Weight::kNote},
      {"mce: [Hardware Error]: CPU 1: Machine Check", "hardware error", Weight::kNote},
  };
  for (const Line& line : kLines) {
    const auto faults = FindKernelFaults(std::string("6,1,5,-;") + line.text);
    ASSERT_EQ(faults.size(), *line.what == '\0' ? 0u : 1u) << line.text;
    if (faults.empty()) continue;
    EXPECT_EQ(faults[0].what, line.what);
    EXPECT_EQ(faults[0].weight, line.weight) << line.text;
  }
}

TEST(ReadKernelLog, OfThisMachineIsALogOrAReasonWhyNot) {
  const auto log = ReadKernelLog(DeviceFiles());
  if (!log.ok()) {
    EXPECT_NE(log.status().message(), "");
  } else {
    FindKernelFaults(*log);
  }
}

}  // namespace
}  // namespace hlaunch
