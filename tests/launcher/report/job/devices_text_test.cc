// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/devices_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/machine.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

std::string Text(const Machine& machine) {
  const DeviceFiles files(machine.root());
  return DevicesText(FindDevices(files), FindProcessors(files));
}

absl::StatusOr<DevicesOptions> ParseDevices(std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "devices"});
  return ParseDevicesOptions(static_cast<int>(words.size()), words.data());
}

TEST(DevicesText, EightGaudi2) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.AddProcess(77, "python3", {"/dev/accel/accel4"});
  for (int pid : {101, 102, 103, 104}) machine.AddProcess(pid, "a", {"/dev/accel/accel7"});
  machine.Put("/sys/bus/pci/devices/0000:b4:00.0/status", "Operational");
  machine.Put("/sys/bus/pci/devices/0000:b3:00.0/status", "Needs reset");
  machine.Remove("/dev/accel/accel3");
  EXPECT_EQ(Text(machine),
            R"(DEVICE  MODEL    PCI ADDRESS   NUMA  CPUS  NODE               STATE
hpu 0   Gaudi 2  0000:9b:00.0  1     4-7   /dev/accel/accel5  free
hpu 1   Gaudi 2  0000:9a:00.0  1     4-7   /dev/accel/accel4  held by python3 (pid 77)
hpu 2   Gaudi 2  0000:b4:00.0  1     4-7   /dev/accel/accel7  held by a (pid 101), a (pid 102), a (pid 103) and 1 more
hpu 3   Gaudi 2  0000:b3:00.0  1     4-7   /dev/accel/accel6  Needs reset
hpu 4   Gaudi 2  0000:1a:00.0  0     0-3   /dev/accel/accel1  free
hpu 5   Gaudi 2  0000:19:00.0  0     0-3   /dev/accel/accel0  free
hpu -   Gaudi 2  0000:34:00.0  0     0-3   /dev/accel/accel3  not here: there is no /dev/accel/accel3
hpu 7   Gaudi 2  0000:33:00.0  0     0-3   /dev/accel/accel2  free
processors: 8 threads, 8 cores, 2 sockets, 2 NUMA nodes
)");
}

TEST(DevicesText, EightH100WithMig) {
  Machine machine;
  DescribeH100Server(machine);
  machine.AddMig(3, 1, 0);
  machine.AddMig(3, 2, 0);
  EXPECT_EQ(Text(machine),
            R"(DEVICE  MODEL           PCI ADDRESS   NUMA  CPUS  NODE          STATE
cuda 0  H100 80GB HBM3  0000:1b:00.0  0     0-3   /dev/nvidia3  free; MIG instances 1/0 2/0
cuda 1  H100 80GB HBM3  0000:43:00.0  0     0-3   /dev/nvidia2  free
cuda 2  H100 80GB HBM3  0000:52:00.0  0     0-3   /dev/nvidia1  free
cuda 3  H100 80GB HBM3  0000:61:00.0  0     0-3   /dev/nvidia0  free
cuda 4  H100 80GB HBM3  0000:9d:00.0  1     4-7   /dev/nvidia7  free
cuda 5  H100 80GB HBM3  0000:c3:00.0  1     4-7   /dev/nvidia6  free
cuda 6  H100 80GB HBM3  0000:d1:00.0  1     4-7   /dev/nvidia5  free
cuda 7  H100 80GB HBM3  0000:df:00.0  1     4-7   /dev/nvidia4  free
processors: 8 threads, 8 cores, 2 sockets, 2 NUMA nodes
)");
}

TEST(DevicesText, EightMi300X) {
  Machine machine;
  DescribeMi300Server(machine);
  EXPECT_EQ(Text(machine),
            R"(DEVICE  MODEL            PCI ADDRESS   NUMA  CPUS  NODE                 STATE
rocm 0  Instinct MI300X  0000:05:00.0  0     -     /dev/dri/renderD128  free
rocm 1  Instinct MI300X  0000:15:00.0  0     -     /dev/dri/renderD136  free
rocm 2  Instinct MI300X  0000:65:00.0  0     -     /dev/dri/renderD144  free
rocm 3  Instinct MI300X  0000:75:00.0  0     -     /dev/dri/renderD152  free
rocm 4  Instinct MI300X  0000:85:00.0  1     -     /dev/dri/renderD160  free
rocm 5  Instinct MI300X  0000:95:00.0  1     -     /dev/dri/renderD168  free
rocm 6  Instinct MI300X  0000:e5:00.0  1     -     /dev/dri/renderD176  free
rocm 7  Instinct MI300X  0000:f5:00.0  1     -     /dev/dri/renderD184  free
processors: 8 threads, 8 cores, 2 sockets, 2 NUMA nodes
)");
}

TEST(DevicesText, SeveralKinds) {
  Machine machine;
  machine.AddNvidia(0, "0000:41:00.0", "NVIDIA L4", -1);
  machine.AddXpu(129, "0000:29:00.0", "i915", "0x0bd5", 2);
  machine.AddNeuron(10, 2);
  machine.Put("/sys/devices/virtual/neuron_device/neuron10/info/architecture/device_name",
              "a\x1b[31mb");
  EXPECT_EQ(
      Text(machine),
      R"(DEVICE     MODEL                              PCI ADDRESS   NUMA  CPUS  NODE                 STATE
cuda 0     L4                                 0000:41:00.0  -     -     /dev/nvidia0         free
neuron 10  ab, 2 cores                        -             -     -     /dev/neuron10        free
xpu 0      Data Center GPU Max 1550, 2 tiles  0000:29:00.0  0     0-3   /dev/dri/renderD129  free
processors: 0 threads
)");
}

TEST(DevicesText, None) {
  Machine machine;
  machine.AddCpus(1, 2, 2);
  EXPECT_EQ(Text(machine),
            "no accelerators\nprocessors: 4 threads, 2 cores, 1 socket, 1 NUMA node\n");
}

TEST(DevicesJson, SaysNullForWhatIsUnknown) {
  Machine machine;
  machine.AddGaudi(1, 4, "0000:19:00.0", -1);
  machine.AddProcess(77, "py\xff", {"/dev/accel/accel1"});
  const DeviceFiles files(machine.root());
  const auto json = nlohmann::json::parse(DevicesJson(FindDevices(files), FindProcessors(files)));
  const nlohmann::json& card = json["devices"][0];
  EXPECT_EQ(card["kind"], "hpu");
  EXPECT_EQ(card["id"], 4);
  EXPECT_EQ(card["index"], 1);
  EXPECT_EQ(card["module_id"], 4);
  EXPECT_EQ(card["pci_address"], "0000:19:00.0");
  EXPECT_TRUE(card["numa_node"].is_null());
  EXPECT_TRUE(card["uuid"].is_null());
  EXPECT_TRUE(card["fault"].is_null());
  EXPECT_EQ(card["holders"][0]["pid"], 77);
  EXPECT_EQ(json["processors"]["threads"], 0);
}

TEST(ParseDevicesOptions, ReadsItsWords) {
  EXPECT_TRUE(ParseDevices({"--json"})->json);
  EXPECT_EQ(ParseDevices({"--sysroot", "/x"})->sysroot, "/x");
  EXPECT_THAT(*ParseDevices({"--help"})->text_to_print, HasSubstr("--sysroot DIR"));
  EXPECT_THAT(ParseDevices({"train.py"}).status().message(), HasSubstr("hlaunch ./devices"));
  EXPECT_THAT(ParseDevices({"--jsn"}).status().message(), HasSubstr("did you mean --json?"));
}

}  // namespace
}  // namespace hlaunch
