// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/machine_checks.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/health/run_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/machine.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr char kPci[] = "/sys/bus/pci/devices/";

DeviceFiles Files(const Machine& machine) { return DeviceFiles(machine.root()); }

void SetLink(Machine& machine, const std::string& address, int width, int possible) {
  machine.Put(absl::StrCat(kPci, address, "/current_link_width"), absl::StrCat(width));
  machine.Put(absl::StrCat(kPci, address, "/max_link_width"), absl::StrCat(possible));
  machine.Put(absl::StrCat(kPci, address, "/current_link_speed"), "16.0 GT/s PCIe");
}

constexpr const char* kGaudis[] = {"0000:19:00.0", "0000:1a:00.0", "0000:33:00.0", "0000:34:00.0",
                                   "0000:9a:00.0", "0000:9b:00.0", "0000:b3:00.0", "0000:b4:00.0"};

TEST(MachineChecks, SayNothingAgainstAMachineWithoutSensors) {
  const Machine machine;
  CheckPlan plan;
  plan.sysroot = machine.root();
  std::vector<CheckResult> results;
  RunChecks(plan, [&](const CheckResult& result) { results.push_back(result); });
  EXPECT_EQ(results.size(), ChecksToAwait(plan).size());
  EXPECT_LE(WorstOf(results), CheckState::kUnknown);
}

TEST(CheckDevices, CountsThoseThatWork) {
  Machine machine;
  DescribeGaudi2Server(machine);
  const CheckResult result = CheckDevices(Files(machine), {DeviceKind::kHpu, 8});
  EXPECT_EQ(result.state, CheckState::kOk) << result.reason;
  EXPECT_THAT(result.value, Optional(8.0));
  EXPECT_EQ(result.reason, "Gaudi 2");
}

TEST(CheckDevices, FailsForWantOfOneThatWasAskedFor) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.Put(absl::StrCat(kPci, kGaudis[2], "/status"), "Disabled");
  const CheckResult result = CheckDevices(Files(machine), {DeviceKind::kHpu, 8});
  EXPECT_EQ(result.state, CheckState::kFail);
  EXPECT_THAT(result.reason, HasSubstr("7 of the 8 hpu devices asked for work"));
  EXPECT_THAT(result.reason, HasSubstr(kGaudis[2]));
  EXPECT_EQ(CheckDevices(Files(machine), {DeviceKind::kHpu, 7}).state, CheckState::kWarn);
}

TEST(CheckDevices, SeesACardThatFellOffItsBus) {
  Machine machine;
  DescribeH100Server(machine);
  machine.Put(absl::StrCat(kPci, "0000:52:00.0/config"), "\xff\xff\xff\xff\xff\xff");
  const CheckResult result = CheckDevices(Files(machine), {});
  EXPECT_EQ(result.state, CheckState::kFail);
  EXPECT_THAT(result.reason, HasSubstr("0000:52:00.0"));
  // A sleeping device is not woken for the check.
  machine.Put(absl::StrCat(kPci, "0000:52:00.0/power/runtime_status"), "suspended");
  EXPECT_EQ(CheckDevices(Files(machine), {}).state, CheckState::kOk);
}

TEST(CheckDevices, NamesWhoHoldsACardThatOnlyOneProcessCanUse) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.AddProcess(4711, "python3", {"/dev/accel/accel5"});
  const CheckResult result = CheckDevices(Files(machine), {});
  EXPECT_EQ(result.state, CheckState::kWarn);
  EXPECT_THAT(result.reason, HasSubstr("python3 (pid 4711)"));
  Machine gpus;
  DescribeH100Server(gpus);
  gpus.AddProcess(4711, "nvidia-persiste", {"/dev/nvidia0"});
  EXPECT_EQ(CheckDevices(Files(gpus), {}).state, CheckState::kOk);
}

TEST(CheckPcieLinks, FailsWhereACardHasFewerLanesThanItsLikes) {
  Machine machine;
  DescribeGaudi2Server(machine);
  for (const char* address : kGaudis) SetLink(machine, address, 16, 16);
  EXPECT_EQ(CheckPcieLinks(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckPcieLinks(Files(machine)).value, Optional(128.0));
  SetLink(machine, kGaudis[3], 8, 16);
  const CheckResult result = CheckPcieLinks(Files(machine));
  EXPECT_EQ(result.state, CheckState::kFail);
  EXPECT_EQ(result.reason, "0000:34:00.0 has x8, its likes have x16");
}

TEST(CheckPcieLinks, TakesASlotThatIsNarrowerThanItsCardAsItIs) {
  Machine machine;
  machine.AddNvidia(0, "0000:01:00.0", "Laptop GPU", -1);
  SetLink(machine, "0000:01:00.0", 8, 16);
  EXPECT_EQ(CheckPcieLinks(Files(machine)).state, CheckState::kOk);
  SetLink(machine, "0000:01:00.0", 4, 16);
  EXPECT_EQ(CheckPcieLinks(Files(machine)).state, CheckState::kWarn);
  // The slot has no more lanes: sysfs has the card below its port.
  machine.Put("/sys/devices/pci0000:00/0000:00:01.0/max_link_width", "4");
  machine.Put(absl::StrCat(kPci, "0000:00:01.0/max_link_width"), "4");
  const std::string real = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
  std::filesystem::rename(machine.root() + kPci + "0000:01:00.0", machine.root() + real);
  machine.Link(absl::StrCat(kPci, "0000:01:00.0"),
               "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  EXPECT_EQ(CheckPcieLinks(Files(machine)).state, CheckState::kOk);
}

TEST(CheckPcieLinks, TakesRegistersOfVirtualMachinesForUnknown) {
  Machine machine;
  machine.AddNvidia(0, "0000:01:00.0", "H100", -1);
  SetLink(machine, "0000:01:00.0", 255, 255);
  EXPECT_EQ(CheckPcieLinks(Files(machine)).state, CheckState::kUnknown);
}

TEST(CheckPcieErrors, WarnsOfThoseThatWereNotCorrected) {
  Machine machine;
  DescribeGaudi2Server(machine);
  const std::string folder = absl::StrCat(kPci, kGaudis[0], "/aer_dev_");
  machine.Put(folder + "correctable", "RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7");
  machine.Put(folder + "fatal", "Undefined 0\nTOTAL_ERR_FATAL 0");
  machine.Put(folder + "nonfatal", "Undefined 0\nTOTAL_ERR_NONFATAL 0");
  EXPECT_EQ(CheckPcieErrors(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckPcieErrors(Files(machine)).reason, HasSubstr("7 more were corrected"));
  machine.Put(folder + "fatal", "SDES 2\nTOTAL_ERR_FATAL 2");
  EXPECT_EQ(CheckPcieErrors(Files(machine)).state, CheckState::kWarn);
  EXPECT_THAT(CheckPcieErrors(Files(machine)).value, Optional(2.0));
}

TEST(CheckMemoryErrors, FailsForOneThatWasNotCorrected) {
  Machine machine;
  EXPECT_EQ(CheckMemoryErrors(Files(machine)).state, CheckState::kUnknown);
  machine.Put("/sys/devices/system/edac/mc/mc0/ce_count", "12");
  machine.Put("/sys/devices/system/edac/mc/mc0/ue_count", "0");
  EXPECT_EQ(CheckMemoryErrors(Files(machine)).state, CheckState::kOk);
  machine.Put("/sys/devices/system/edac/mc/mc0/ce_count", "120000");
  EXPECT_EQ(CheckMemoryErrors(Files(machine)).state, CheckState::kWarn);
  machine.Put("/sys/devices/system/edac/mc/mc1/ue_count", "1");
  EXPECT_EQ(CheckMemoryErrors(Files(machine)).state, CheckState::kFail);
}

TEST(CheckHeat, WarnsAtTheCriticalLimitAndOfNoSensorThatIsNotConnected) {
  Machine machine;
  EXPECT_EQ(CheckHeat(Files(machine)).state, CheckState::kUnknown);
  machine.Put("/sys/class/hwmon/hwmon0/name", "coretemp");
  machine.Put("/sys/class/hwmon/hwmon0/temp1_input", "71000");
  machine.Put("/sys/class/hwmon/hwmon0/temp1_crit", "100000");
  machine.Put("/sys/class/hwmon/hwmon1/name", "board");
  machine.Put("/sys/class/hwmon/hwmon1/temp1_input", "-128000");
  machine.Put("/sys/class/hwmon/hwmon1/temp1_crit", "0");
  EXPECT_EQ(CheckHeat(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckHeat(Files(machine)).value, Optional(71.0));
  machine.Put("/sys/class/hwmon/hwmon0/temp1_input", "100000");
  EXPECT_EQ(CheckHeat(Files(machine)).state, CheckState::kWarn);
}

TEST(ThrottleCount, AddsUpAllCpus) {
  Machine machine;
  EXPECT_EQ(ThrottleCount(Files(machine)), std::nullopt);
  machine.Put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
  machine.Put("/sys/devices/system/cpu/cpu11/thermal_throttle/package_throttle_count", "4");
  EXPECT_EQ(ThrottleCount(Files(machine)), 7);
}

TEST(CheckKernelLog, FailsForAFatalFaultOfTheLastMinutesAlone) {
  Machine machine;
  machine.Put("/proc/uptime", "10000.00 39000.00");
  machine.Put("/dev/kmsg",
              "6,1,100000000,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
              "6,2,9990000000,-;usb 1-1: new device");
  EXPECT_EQ(CheckKernelLog(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckKernelLog(Files(machine)).reason, HasSubstr("1 before"));
  machine.Put("/dev/kmsg", "6,1,8000000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1");
  EXPECT_EQ(CheckKernelLog(Files(machine)).state, CheckState::kWarn);
  machine.Put("/dev/kmsg", "6,1,9990000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1");
  EXPECT_EQ(CheckKernelLog(Files(machine)).state, CheckState::kFail);
  EXPECT_THAT(CheckKernelLog(Files(machine)).reason, HasSubstr("Xid 79"));
}

TEST(CheckKernelLog, CountsANewFaultThoughAnOldOneIsNoLongerOfTheLastHour) {
  Machine machine;
  const std::string old = "6,1,100000000,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1\n";
  machine.Put("/proc/uptime", "3690.00 3000.00");
  machine.Put("/dev/kmsg", old);
  EXPECT_EQ(CheckKernelLog(Files(machine)).value, 1);
  machine.Put("/proc/uptime", "3710.00 3000.00");
  machine.Put("/dev/kmsg", old + "6,2,3705000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1");
  EXPECT_EQ(CheckKernelLog(Files(machine)).value, 2);
}

TEST(CheckKernelLog, IsUnknownWithoutALog) {
  const Machine machine;
  EXPECT_EQ(CheckKernelLog(Files(machine)).state, CheckState::kUnknown);
}

TEST(CheckNetwork, LooksAtCardsAlone) {
  Machine machine;
  machine.Put("/sys/class/net/lo/operstate", "unknown");
  machine.Put("/sys/class/net/docker0/operstate", "down");
  EXPECT_EQ(CheckNetwork(Files(machine)).state, CheckState::kUnknown);
  machine.Put("/sys/class/net/eth0/device/vendor", "0x15b3");
  machine.Put("/sys/class/net/eth0/operstate", "up");
  machine.Put("/sys/class/net/eth0/speed", "25000");
  machine.Put("/sys/class/net/wlan0/device/vendor", "0x8086");
  machine.Put("/sys/class/net/wlan0/operstate", "down");
  EXPECT_EQ(CheckNetwork(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckNetwork(Files(machine)).value, Optional(25.0));
  machine.Put("/sys/class/net/eth0/statistics/rx_errors", "5000");
  machine.Put("/sys/class/net/eth0/statistics/rx_packets", "90000000");
  EXPECT_EQ(CheckNetwork(Files(machine)).state, CheckState::kOk);
  machine.Put("/sys/class/net/eth0/statistics/rx_packets", "90000");
  EXPECT_EQ(CheckNetwork(Files(machine)).state, CheckState::kWarn);
}

void PutPort(Machine& machine, const std::string& device, const std::string& state,
             const std::string& physical) {
  const std::string port = absl::StrCat("/sys/class/infiniband/", device, "/ports/1/");
  machine.Put(port + "state", state);
  machine.Put(port + "phys_state", physical);
  machine.Put(port + "rate", "400 Gb/sec (4X NDR)");
}

TEST(CheckFabric, CountsActivePortsAndWarnsOfALinkThatIsNotReady) {
  Machine machine;
  EXPECT_EQ(CheckFabric(Files(machine)).state, CheckState::kOk);
  PutPort(machine, "mlx5_0", "4: ACTIVE", "5: LinkUp");
  PutPort(machine, "mlx5_10", "1: DOWN", "3: Disabled");
  EXPECT_EQ(CheckFabric(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckFabric(Files(machine)).value, Optional(400.0));
  PutPort(machine, "mlx5_10", "2: INIT", "5: LinkUp");
  EXPECT_EQ(CheckFabric(Files(machine)).state, CheckState::kWarn);
  EXPECT_THAT(CheckFabric(Files(machine)).reason, HasSubstr("mlx5_10/1 is INIT"));
}

TEST(CheckLinkLosses, CountsThoseOfCardsAndPorts) {
  Machine machine;
  machine.Put("/sys/class/net/lo/carrier_down_count", "7");  // lo is no network card.
  EXPECT_EQ(CheckLinkLosses(Files(machine)).state, CheckState::kUnknown);
  machine.Put("/sys/class/net/eth0/device/vendor", "0x15b3");
  machine.Put("/sys/class/net/eth0/carrier_down_count", "1");
  machine.Put("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0");
  machine.Put("/sys/class/infiniband/mlx5_1/ports/2/counters/link_downed", "3");
  const CheckResult result = CheckLinkLosses(Files(machine));
  EXPECT_EQ(result.state, CheckState::kOk);  // The count is since boot, so the time is unknown.
  EXPECT_THAT(result.value, Optional(4.0));
  EXPECT_EQ(result.reason, "since boot: eth0: 1, mlx5_1/2: 3");
}

TEST(CheckMemory, WarnsWhereLittleIsLeft) {
  Machine machine;
  machine.Put("/proc/meminfo", "MemTotal:  67108864 kB\nMemFree: 1 kB\nMemAvailable: 33554432 kB");
  EXPECT_EQ(CheckMemory(Files(machine)).state, CheckState::kOk);
  EXPECT_THAT(CheckMemory(Files(machine)).value, Optional(32.0));
  machine.Put("/proc/meminfo", "MemTotal:  67108864 kB\nMemAvailable: 1048576 kB");
  EXPECT_EQ(CheckMemory(Files(machine)).state, CheckState::kWarn);
}

}  // namespace
}  // namespace hlaunch
