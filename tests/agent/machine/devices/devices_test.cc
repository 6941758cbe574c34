// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "agent/machine/devices/find_devices.h"
#include "agent/machine/devices/pci_function.h"
#include "tests/fakes/machine.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Device> Find(const Machine& machine) {
  return FindDevices(DeviceFiles(machine.root()));
}

// Each device as "hpu 3 (accel0)": its kind, its id and the last part of its device node.
std::vector<std::string> Names(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) {
    names.push_back(absl::StrCat(KindName(device.kind), " ", device.id, " ",
                                 device.node_path.substr(device.node_path.rfind('/') + 1)));
  }
  return names;
}

TEST(FindGaudi, OrdersCardsByWhereTheySit) {
  Machine machine;
  DescribeGaudi2Server(machine);
  const std::vector<Device> cards = Find(machine);
  EXPECT_THAT(Names(cards),
              ElementsAre("hpu 0 accel5", "hpu 1 accel4", "hpu 2 accel7", "hpu 3 accel6",
                          "hpu 4 accel1", "hpu 5 accel0", "hpu 6 accel3", "hpu 7 accel2"));
  EXPECT_EQ(cards[0].model, "Gaudi 2");
  EXPECT_EQ(cards[0].pci_address, "0000:9b:00.0");
  EXPECT_EQ(cards[0].index, 5);
  EXPECT_EQ(cards[0].module_id, 0);
  EXPECT_EQ(cards[0].numa_node, 1);
  EXPECT_EQ(cards[0].local_cpus, "4-7");
  EXPECT_EQ(cards[0].node_path, "/dev/accel/accel5");
  EXPECT_EQ(cards[0].fault, "");
}

TEST(FindGaudi, ReadsDriversFromBeforeTheAccelClass) {
  Machine machine;
  machine.AddOldGaudi(0, 1, "0000:19:00.0");
  machine.AddOldGaudi(1, 0, "0000:1a:00.0");
  const std::vector<Device> cards = Find(machine);
  EXPECT_THAT(Names(cards), ElementsAre("hpu 0 hl1", "hpu 1 hl0"));
  EXPECT_EQ(cards[0].model, "Gaudi");
}

TEST(FindGaudi, CountsWithAllDigits) {
  Machine machine;
  for (int i = 0; i < 16; ++i) {
    machine.AddGaudi(i, i, absl::StrCat("0000:", i + 10, ":00.0"), 0);
  }
  const std::vector<Device> cards = Find(machine);
  ASSERT_EQ(cards.size(), 16u);
  EXPECT_EQ(cards[2].node_path, "/dev/accel/accel2");
  EXPECT_EQ(cards[12].node_path, "/dev/accel/accel12");
}

TEST(FindGaudi, KeepsSparseModuleIdsOfVirtualMachines) {
  Machine machine;
  constexpr int kModules[] = {7, 0, 3, 6};
  for (int i = 0; i < 4; ++i) {
    machine.AddGaudi(i, kModules[i], absl::StrCat("0000:0", i, ":01.0"), -1);
  }
  const std::vector<Device> cards = Find(machine);
  EXPECT_THAT(Names(cards),
              ElementsAre("hpu 0 accel1", "hpu 3 accel2", "hpu 6 accel3", "hpu 7 accel0"));
  EXPECT_EQ(cards[0].numa_node, -1);
  EXPECT_EQ(cards[0].local_cpus, "");
}

TEST(FindGaudi, LeavesOtherDriversOfTheAccelClassAlone) {
  Machine machine;
  machine.AddGaudi(1, 0, "0000:19:00.0", 0);
  for (const auto& [index, address, vendor, driver] :
       {std::tuple{0, "0000:00:0b.0", "0x8086", "intel_vpu"},
        {2, "0000:41:00.0", "0x17cb", "qaic"},
        {3, "0000:c5:00.1", "0x1022", "amdxdna"}}) {
    machine.AddPci({address, vendor, "0x7d1d", "0x120000", driver, 0, ""});
    machine.Link(absl::StrCat("/sys/class/accel/accel", index, "/device"),
                 absl::StrCat("../../../bus/pci/devices/", address));
    machine.Put(absl::StrCat("/dev/accel/accel", index), "");
  }
  EXPECT_THAT(Names(Find(machine)), ElementsAre("hpu 0 accel1"));
}

TEST(FindGaudi, FindsCardsByTheirDriverAndByVirtualDevices) {
  Machine machine;
  machine.AddPci({"0000:19:00.0", "0x1da3", "0x1020", "0x120000", "habanalabs", 0, ""});
  machine.Put("/sys/bus/pci/devices/0000:19:00.0/accel/accel0/dev", "261:0");
  machine.Link("/sys/bus/pci/devices/0000:19:00.0/accel/accel0/device", "../../../0000:19:00.0");
  machine.Put("/sys/bus/pci/devices/0000:19:00.0/module_id", "4");
  machine.Link("/sys/bus/pci/drivers/habanalabs/0000:19:00.0", "../../devices/0000:19:00.0");
  machine.Put("/sys/devices/virtual/accel/accel3/device/module_id", "2");
  machine.Put("/sys/devices/virtual/accel/accel3/device/pci_addr", "0000:1A:00.0");
  machine.Put("/sys/devices/virtual/accel/accel3/device/device_type", "GAUDI3");
  machine.Put("/dev/accel/accel0", "");
  machine.Put("/dev/accel/accel3", "");
  const std::vector<Device> cards = Find(machine);
  EXPECT_THAT(Names(cards), ElementsAre("hpu 2 accel3", "hpu 4 accel0"));
  EXPECT_EQ(cards[0].pci_address, "0000:1a:00.0");
  EXPECT_EQ(cards[0].model, "Gaudi 3");
}

TEST(FindGaudi, UsesTheKernelsNumbersWhereAModuleIdIsMissingOrGivenTwice) {
  for (const char* second : {"", "0", "none"}) {
    Machine machine;
    machine.AddGaudi(4, 0, "0000:19:00.0", 0);
    machine.AddGaudi(5, 1, "0000:1a:00.0", 0);
    machine.Put("/sys/bus/pci/devices/0000:1a:00.0/module_id", second);
    for (const Device& card : Find(machine)) EXPECT_EQ(card.id, card.index) << second;
  }
}

TEST(FindGaudi, SaysWhatIsWrongWithACard) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.Put("/sys/bus/pci/devices/0000:9b:00.0/status", "In reset");
  machine.Remove("/dev/accel/accel4");
  machine.AddPci({"0000:cc:00.0", "0x1da3", "0x1030", "0x120000", "vfio-pci", 0, ""});
  const std::vector<Device> cards = Find(machine);
  EXPECT_EQ(cards[0].fault, "In reset");
  EXPECT_EQ(cards[0].id, 0);
  EXPECT_EQ(cards[1].fault, "not here: there is no /dev/accel/accel4");
  EXPECT_EQ(cards[1].id, -1);
  EXPECT_EQ(cards[1].module_id, 1);
  EXPECT_EQ(cards[2].id, 2);
  bool found = false;
  for (const Device& card : cards) {
    if (card.pci_address != "0000:cc:00.0") continue;
    found = true;
    EXPECT_EQ(card.model, "Gaudi 3");
    EXPECT_EQ(card.fault, "not here: vfio-pci has it, not habanalabs");
  }
  EXPECT_TRUE(found);
}

TEST(FindNvidia, NumbersGpusInTheOrderOfThePciBus) {
  Machine machine;
  DescribeH100Server(machine);
  machine.AddPci({"0000:1b:00.1", "0x10de", "0x10f0", "0x040300", "snd_hda_intel", 0, ""});
  const std::vector<Device> gpus = Find(machine);
  EXPECT_THAT(Names(gpus),
              ElementsAre("cuda 0 nvidia3", "cuda 1 nvidia2", "cuda 2 nvidia1", "cuda 3 nvidia0",
                          "cuda 4 nvidia7", "cuda 5 nvidia6", "cuda 6 nvidia5", "cuda 7 nvidia4"));
  EXPECT_EQ(gpus[0].model, "H100 80GB HBM3");
  EXPECT_EQ(gpus[0].uuid, "GPU-00000003-0000-4000-8000-000000000000");
  EXPECT_EQ(gpus[4].numa_node, 1);
}

TEST(FindNvidia, CountsOnlyWhatACudaProgramSees) {
  Machine machine;
  DescribeH100Server(machine);
  machine.Remove("/dev/nvidia3");
  machine.Put("/proc/driver/nvidia/gpus/0000:43:00.0/information",
              "Model: NVIDIA H100\nGPU UUID: GPU-\?\?\?-\?\?\n"
              "Device Minor: 2\nGPU Excluded: Yes");
  machine.AddPci({"0000:0a:00.0", "0x10de", "0x1db6", "0x030000", "nouveau", 0, ""});
  const std::vector<Device> gpus = Find(machine);
  ASSERT_EQ(gpus.size(), 9u);
  EXPECT_EQ(gpus[0].fault, "not here: nouveau has it, not nvidia");
  EXPECT_EQ(gpus[1].fault, "not here: there is no /dev/nvidia3");
  EXPECT_EQ(gpus[2].fault, "not here: the driver was told to exclude it");
  EXPECT_EQ(gpus[2].uuid, "");
  EXPECT_EQ(gpus[3].id, 0);
  EXPECT_EQ(gpus[8].id, 5);
}

TEST(FindNvidia, FindsTheInstancesOfASplitGpu) {
  Machine machine;
  machine.AddNvidia(10, "0001:1b:00.0", "NVIDIA H100", 0);
  for (int gi : {13, 7, 9}) machine.AddMig(10, gi, 0);
  machine.AddMig(1, 1, 0);  // It belongs to another GPU.
  const std::vector<Device> gpus = Find(machine);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_THAT(gpus[0].mig, ElementsAre("7/0", "9/0", "13/0"));
}

TEST(FindDevices, KeepsToTheControlGroupOfVersionOne) {
  Machine machine;
  DescribeH100Server(machine);
  machine.Put("/proc/self/cgroup", "11:cpuset:/x\n4:devices:/docker/abc");
  machine.Put("/sys/fs/cgroup/devices/docker/abc/devices.list",
              "c 1:3 rwm\nc 195:7 rw\nc 195:255 rw\nc 226:* m");
  std::vector<std::string> here;
  for (const Device& gpu : Find(machine)) {
    if (gpu.id >= 0) here.push_back(gpu.node_path);
  }
  EXPECT_THAT(here, ElementsAre("/dev/nvidia7"));
  machine.Put("/sys/fs/cgroup/devices/docker/abc/devices.list", "a *:* rwm");
  EXPECT_EQ(Find(machine).back().id, 7);
}

TEST(FindAmd, FollowsTheOrderOfTheKernelsTopology) {
  Machine machine;
  DescribeMi300Server(machine);
  machine.Put("/sys/class/kfd/kfd/topology/nodes/4/properties", "");  // Hidden by a cgroup.
  const std::vector<Device> gpus = Find(machine);
  ASSERT_EQ(gpus.size(), 7u);
  EXPECT_EQ(gpus[0].model, "Instinct MI300X");
  EXPECT_EQ(gpus[0].node_path, "/dev/dri/renderD128");
  EXPECT_EQ(gpus[0].pci_address, "0000:05:00.0");
  EXPECT_EQ(gpus[0].uuid, "GPU-0000000000001002");
  EXPECT_EQ(gpus[2].id, 2);
  EXPECT_EQ(gpus[2].node_path, "/dev/dri/renderD152");
  machine.Remove("/dev/kfd");
  EXPECT_EQ(Find(machine)[0].fault, "not here: there is no /dev/kfd");
}

TEST(FindIntelGpus, CountsTilesAndLeavesTheProcessorsGraphics) {
  Machine machine;
  machine.AddXpu(130, "0000:9a:00.0", "xe", "0x0bd5", 2);
  machine.AddXpu(129, "0000:29:00.0", "i915", "0x0bda", 1);
  machine.AddXpu(128, "0000:00:02.0", "i915", "0x4680", 1);
  machine.AddXpu(131, "0000:03:00.0", "ast", "0x2000", 1);  // Another maker's display.
  const std::vector<Device> gpus = Find(machine);
  EXPECT_THAT(Names(gpus), ElementsAre("xpu 0 renderD129", "xpu 1 renderD130"));
  EXPECT_EQ(gpus[0].model, "Data Center GPU Max 1100");
  EXPECT_EQ(gpus[0].parts, 1);
  EXPECT_EQ(gpus[1].parts, 2);
}

TEST(FindAscend, SaysOnlyWhatAllChipsShare) {
  Machine machine;
  for (int i = 0; i < 2; ++i) machine.AddAscend(i, absl::StrCat("0000:8", i, ":00.0"));
  machine.AddPci({"0000:01:00.0", "0x19e5", "0x1822", "0x020000", "hinic", 1, ""});
  std::vector<Device> chips = Find(machine);
  EXPECT_THAT(Names(chips), ElementsAre("ascend 0 davinci0", "ascend 1 davinci1"));
  EXPECT_EQ(chips[0].model, "Ascend 910B");
  EXPECT_EQ(chips[0].pci_address, "");
  EXPECT_EQ(chips[0].numa_node, 0);
  machine.AddAscend(4, "0000:84:00.0");
  EXPECT_EQ(Find(machine)[0].numa_node, -1);
}

TEST(FindNeuron, CountsCores) {
  Machine machine;
  for (int i : {0, 2, 10}) machine.AddNeuron(i, 2);
  const std::vector<Device> devices = Find(machine);
  EXPECT_THAT(Names(devices),
              ElementsAre("neuron 0 neuron0", "neuron 2 neuron2", "neuron 10 neuron10"));
  EXPECT_EQ(devices[0].model, "Trainium1");
  EXPECT_EQ(devices[0].parts, 2);
}

TEST(FindTpus, TakesChipsAndNothingElseOfGoogle) {
  Machine machine;
  machine.AddTpu(0, "0000:00:04.0", "0x0063");
  machine.AddTpu(1, "0000:00:05.0", "0x0063");
  machine.AddPci({"0000:00:06.0", "0x1ae0", "0x0042", "0x020000", "gve", 0, ""});
  EXPECT_THAT(Names(Find(machine)), ElementsAre("tpu 0 accel0", "tpu 1 accel1"));
  machine.AddPci({"0000:00:07.0", "0x1ae0", "0x006f", "0xff0000", "vfio-pci", 0, ""});
  machine.Link("/sys/bus/pci/devices/0000:00:07.0/iommu_group", "../../../kernel/iommu_groups/12");
  machine.Put("/dev/vfio/12", "");
  EXPECT_EQ(Find(machine)[2].node_path, "/dev/vfio/12");
}

TEST(FindHolders, NamesWhoHasADeviceOpen) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.AddProcess(77, "python3", {"/dev/null", "/dev/accel/accel5", "/dev/accel/accel5"});
  machine.AddProcess(9, "hl-smi", {"/dev/accel/accel_controlD5"});
  machine.AddProcess(100, "a.out", {"/dev/accel/accel5", "socket:[1]"});
  machine.Put("/proc/self/fd", "no folder");
  machine.Put("/proc/123456789012345678901/comm", "no pid");
  const std::vector<Device> cards = Find(machine);
  ASSERT_EQ(cards[0].holders.size(), 2u);
  EXPECT_EQ(cards[0].holders[0].pid, 77);
  EXPECT_EQ(cards[0].holders[0].command, "python3");
  EXPECT_EQ(cards[0].holders[1].pid, 100);
  EXPECT_THAT(cards[1].holders, IsEmpty());
}

TEST(FindProcessors, CountsWhatIsOnline) {
  Machine machine;
  machine.AddCpus(2, 4, 2);
  machine.Put("/sys/devices/system/cpu/cpu15/online", "0");
  machine.Put("/sys/devices/system/cpu/cpufreq/boost", "1");
  const Processors found = FindProcessors(DeviceFiles(machine.root()));
  EXPECT_EQ(found.sockets, 2);
  EXPECT_EQ(found.cores, 8);
  EXPECT_EQ(found.threads, 15);
  EXPECT_EQ(found.numa_nodes, 2);
}

TEST(NormalPciAddress, IsAsSysfsSpellsIt) {
  EXPECT_EQ(NormalPciAddress("0000:3d:00.0"), "0000:3d:00.0");
  EXPECT_EQ(NormalPciAddress("00000000:3D:00.0"), "0000:3d:00.0");
  EXPECT_EQ(NormalPciAddress("3d:00.0"), "0000:3d:00.0");
  EXPECT_EQ(NormalPciAddress("10000:e1:00.0"), "10000:e1:00.0");
  for (const char* wrong : {"", ":", "3d", "0000:3d:00", "0000:3d:00.0.0", "x:3d:00.0",
                            "000000001:3d:00.0", "0000:3d1:00.0", "-1:3d:00.0", "bind"}) {
    EXPECT_EQ(NormalPciAddress(wrong), "") << wrong;
  }
}

TEST(DeviceFiles, NoLinkLeadsOutOfTheRoot) {
  Machine machine;
  machine.Put("/etc/inside", "ours");
  machine.Link("/absolute", "/etc/inside");
  machine.Link("/upwards", "../../../../../../../../etc/inside");
  machine.Link("/host", "/etc/passwd");
  machine.Link("/loop", "loop");
  const DeviceFiles files(machine.root() + "//");
  EXPECT_EQ(files.Read("/absolute"), "ours");
  EXPECT_EQ(files.Read("/upwards"), "ours");
  EXPECT_EQ(files.Read("/host"), "");
  EXPECT_EQ(files.Read("/loop"), "");
  EXPECT_EQ(files.Link("/loop"), "loop");
}

// The kernel gives up on a path with ".." while a file on the machine is renamed.
TEST(DeviceFiles, ReadsThroughLinksWhileOthersRenameFiles) {
  Machine machine;
  machine.Put("/sys/bus/pci/card/module_id", "7");
  machine.Link("/sys/class/accel/accel0", "../../bus/pci/card");
  const DeviceFiles files(machine.root());
  std::atomic<bool> done = false;
  std::thread other([&] {
    const std::string a = machine.root() + "/a", b = machine.root() + "/b";
    std::ofstream(a) << "x";
    while (!done) {
      ::rename(a.c_str(), b.c_str());
      ::rename(b.c_str(), a.c_str());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_EQ(files.Read("/sys/class/accel/accel0/module_id"), "7");
  }
  done = true;
  other.join();
}

TEST(DeviceFiles, ReadsRegularFilesOnlyAndNotAllOfThem) {
  Machine machine;
  machine.Put("/huge", std::string(1 << 20, 'x'));
  ASSERT_EQ(::mkfifo((machine.root() + "/pipe").c_str(), 0600), 0);
  const DeviceFiles files(machine.root());
  EXPECT_EQ(files.Read("/huge").size(), 64u << 10);
  EXPECT_EQ(files.Read("/pipe"), "");  // An open() would wait for a writer.
  EXPECT_EQ(files.Read("/"), "");
  EXPECT_EQ(files.Read("/absent"), "");
  EXPECT_THAT(DeviceFiles("/nowhere").List("/sys"), IsEmpty());
  EXPECT_EQ(DeviceFiles("").Read("/dev/zero"), "");
}

TEST(DeviceFiles, KnowsWhatThisUserMayOpen) {
  Machine machine;
  machine.Put("/dev/open", "");
  machine.Put("/dev/closed", "");
  ::chmod((machine.root() + "/dev/closed").c_str(), 0);
  const DeviceFiles files(machine.root());
  EXPECT_TRUE(files.MayOpen("/dev/open"));
  EXPECT_FALSE(files.MayOpen("/dev/absent"));
  EXPECT_EQ(files.MayOpen("/dev/closed"), ::geteuid() == 0);
}

TEST(NumberAfter, TakesNothingButThePrefixAndDigits) {
  EXPECT_EQ(NumberAfter("accel12", "accel"), 12);
  for (const char* wrong : {"accel", "accel1x", "accel-1", "accel_controlD0", "accel99999999999",
                            "accel 1", "hl1", ""}) {
    EXPECT_EQ(NumberAfter(wrong, "accel"), -1) << wrong;
  }
}

// Any file of any vendor may be absent, garbage, huge, a folder, a pipe or a link to itself. Then
// fewer devices are found, but nothing ends or hangs. The seed is fixed, so a failure is
// repeatable.
TEST(FindDevices, SurvivesBrokenTrees) {
  std::mt19937 random(20240611);
  const auto below = [&random](size_t n) { return random() % n; };
  const std::string garbage[] = {"",
                                 "\xff\xfe\0\0",
                                 "-1",
                                 "99999999999999999999",
                                 "0x",
                                 "0xzz",
                                 "../../..",
                                 std::string(100000, '7'),
                                 "simd_count\nsimd_count x",
                                 "Device Minor: 999999999999\nGPU UUID",
                                 "c\nc x\na b c d"};
  for (int round = 0; round < 30; ++round) {
    Machine machine;
    machine.AddGaudi(0, 1, "0000:19:00.0", 0);
    machine.AddGaudi(10, 0, "0000:1a:00.0", 0);
    machine.AddCpus(1, 2, 1);
    machine.AddOldGaudi(3, 2, "0000:55:00.0");
    machine.AddNvidia(0, "0000:01:00.0", "NVIDIA A", 0);
    machine.AddMig(0, 1, 0);
    machine.AddAmd(0, 128, "0000:02:00.0", 0);
    machine.AddXpu(129, "0000:03:00.0", "xe", "0x0bd5", 2);
    machine.AddAscend(0, "0000:04:00.0");
    machine.AddNeuron(0, 2);
    machine.AddTpu(0, "0000:06:00.0", "0x0063");
    machine.AddProcess(5, "x", {"/dev/accel/accel0"});
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(machine.root())) {
      paths.push_back(entry.path().string().substr(machine.root().size()));
    }
    std::sort(paths.begin(), paths.end());
    for (int broken = 0; broken < 25; ++broken) {
      const std::string path = paths[below(paths.size())];
      const std::string place = path.substr(0, path.rfind('/'));
      std::error_code error;
      if (!std::filesystem::is_directory(machine.root() + place, error)) continue;
      machine.Remove(path);
      switch (below(5)) {
        case 0:
          break;
        case 1:
          machine.Link(path, path.substr(place.size() + 1));  // A link to itself.
          break;
        case 2:
          ::mkfifo((machine.root() + path).c_str(), 0600);
          break;
        case 3:
          machine.Put(path + "/accel0/gi1/1", "x");
          break;
        default:
          machine.Put(path, garbage[below(std::size(garbage))]);
      }
    }
    const DeviceFiles files(machine.root());
    const std::vector<Device> devices = FindDevices(files);
    EXPECT_LE(devices.size(), 32u);
    for (const Device& device : devices) {
      EXPECT_TRUE(device.id >= 0 || !device.fault.empty()) << device.node_path;
      EXPECT_GE(device.numa_node, -1);
      EXPECT_GE(device.parts, 1);
    }
    FindProcessors(files);
  }
}

TEST(FindDevices, FindsNothingWhereThereIsNothing) {
  Machine machine;
  EXPECT_THAT(Find(machine), IsEmpty());
}

// Reads the files of this machine, whatever it has. It opens no device.
TEST(FindDevices, ReadsThisMachine) {
  for (const Device& device : FindDevices(DeviceFiles())) {
    EXPECT_TRUE(device.id >= 0 || !device.fault.empty());
  }
  EXPECT_GE(FindProcessors(DeviceFiles()).threads, 1);
}

}  // namespace
}  // namespace hlaunch
