// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/fakes/machine.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

constexpr char kPci[] = "/sys/bus/pci/devices/";

}  // namespace

Machine::Machine() {
  std::string name = (fs::temp_directory_path() / "hlaunch-machine-XXXXXX").string();
  HLAUNCH_CHECK(::mkdtemp(name.data()) != nullptr);
  root_ = fs::canonical(name).string();
}

Machine::~Machine() { fs::remove_all(root_); }

std::string Machine::Inside(const std::string& path) const {
  const std::string folder = fs::weakly_canonical(fs::path(root_ + path).parent_path()).string();
  HLAUNCH_CHECK(folder == root_ || absl::StartsWith(folder, root_ + "/"));
  return root_ + path;
}

void Machine::Put(const std::string& path, const std::string& text) {
  const fs::path file = Inside(path);
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text << "\n";
}

void Machine::Link(const std::string& path, const std::string& target) {
  const fs::path link = Inside(path);
  fs::create_directories(link.parent_path());
  fs::create_symlink(target, link);
}

void Machine::Remove(const std::string& path) { fs::remove_all(Inside(path)); }

void Machine::AddPci(const Function& function) {
  const std::string folder = absl::StrCat(kPci, function.address, "/");
  Put(folder + "vendor", function.vendor);
  Put(folder + "device", function.device);
  Put(folder + "class", function.device_class);
  Put(folder + "numa_node", absl::StrCat(function.numa_node));
  if (!function.cpus.empty()) Put(folder + "local_cpulist", function.cpus);
  if (!function.driver.empty()) Link(folder + "driver", "../../drivers/" + function.driver);
}

void Machine::AddGaudi(int index, int module_id, const std::string& address, int numa_node,
                       const std::string& cpus) {
  AddPci({address, "0x1da3", "0x1020", "0x120000", "habanalabs", numa_node, cpus});
  const std::string folder = kPci + address;
  Put(folder + "/module_id", absl::StrCat(module_id));
  Put(folder + "/device_type", "GAUDI2");
  Put(folder + "/status", "Operational");
  Put(folder + "/pci_addr", address);
  const std::string card = absl::StrCat("/sys/class/accel/accel", index);
  Link(card + "/device", "../../../bus/pci/devices/" + address);
  Put(card + "/dev", absl::StrCat("261:", index));
  Put(absl::StrCat("/sys/class/accel/accel_controlD", index, "/dev"), "261:99");
  Put(absl::StrCat("/dev/accel/accel", index), "");
  Put(absl::StrCat("/dev/accel/accel_controlD", index), "");
}

void Machine::AddOldGaudi(int index, int module_id, const std::string& address) {
  AddPci({address, "0x1da3", "0x1000", "0x120000", "habanalabs", 0, ""});
  const std::string card = absl::StrCat("/sys/class/habanalabs/hl", index);
  Put(card + "/module_id", absl::StrCat(module_id));
  Put(card + "/device_type", "GAUDI SEC");
  Put(card + "/status", "Operational");
  Put(card + "/pci_addr", address);
  Link(card + "/device", "../../../bus/pci/devices/" + address);
  Put(absl::StrCat("/sys/class/habanalabs/hl_controlD", index, "/status"), "Operational");
  Put(absl::StrCat("/dev/hl", index), "");
  Put(absl::StrCat("/dev/hl_controlD", index), "");
}

void Machine::AddNvidia(int minor, const std::string& address, const std::string& model,
                        int numa_node, const std::string& cpus) {
  AddPci({address, "0x10de", "0x2330", "0x030200", "nvidia", numa_node, cpus});
  Put(absl::StrCat("/proc/driver/nvidia/gpus/", address, "/information"),
      absl::StrFormat("Model: \t\t %s\nIRQ:   \t\t 42\n"
                      "GPU UUID: \t GPU-%08x-0000-4000-8000-000000000000\n"
                      "Video BIOS: \t 96.00\nBus Type: \t PCIe\nBus Location: \t %s\n"
                      "Device Minor: \t %d\nGPU Excluded:\t No",
                      model, minor, address, minor));
  Put(absl::StrCat("/dev/nvidia", minor), "");
  Put("/dev/nvidiactl", "");
  Put("/dev/nvidia-uvm", "");
}

void Machine::AddMig(int minor, int gpu_instance, int compute_instance) {
  Put(absl::StrCat("/proc/driver/nvidia/capabilities/gpu", minor, "/mig/gi", gpu_instance, "/ci",
                   compute_instance, "/access"),
      "DeviceFileMinor: 12\nDeviceFileMode: 292\nDeviceFileModify: 1");
}

void Machine::AddAmd(int node, int minor, const std::string& address, int numa_node) {
  AddPci({address, "0x1002", "0x74a1", "0x120000", "amdgpu", numa_node, ""});
  unsigned bus = 0;
  unsigned slot = 0;
  HLAUNCH_CHECK(std::sscanf(address.c_str(), "%*x:%x:%x", &bus, &slot) == 2);
  Put(absl::StrCat("/sys/class/kfd/kfd/topology/nodes/", node, "/properties"),
      absl::StrCat("cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\ndevice_id 29857\n",
                   "location_id ", bus << 8 | slot << 3, "\ndomain 0\ndrm_render_minor ", minor,
                   "\nunique_id ", 0x1000 + node, "\ngfx_target_version 90402"));
  Put("/dev/kfd", "");
  Put(absl::StrCat("/dev/dri/renderD", minor), "");
}

void Machine::AddXpu(int minor, const std::string& address, const std::string& driver,
                     const std::string& device, int tiles) {
  AddPci({address, "0x8086", device, "0x038000", driver, 0, "0-3"});
  const std::string render = absl::StrCat("/sys/class/drm/renderD", minor);
  Link(render + "/device", "../../../bus/pci/devices/" + address);
  Put(render + "/dev", absl::StrCat("226:", minor));
  for (int tile = 0; tile < tiles; ++tile) {
    const std::string folder = kPci + address;
    if (driver == "xe") {
      Put(absl::StrCat(folder, "/tile", tile, "/gt0/id"), "0");
    } else {
      Put(absl::StrCat(folder, "/drm/card", minor - 128, "/gt/gt", tile, "/id"), "0");
    }
  }
  Put(absl::StrCat("/dev/dri/renderD", minor), "");
}

void Machine::AddAscend(int index, const std::string& address) {
  AddPci({address, "0x19e5", "0xd802", "0x120000", "devdrv_device_driver", index / 4, ""});
  Put(absl::StrCat("/dev/davinci", index), "");
  Put("/dev/davinci_manager", "");
}

void Machine::AddNeuron(int index, int cores) {
  const std::string folder = absl::StrCat("/sys/devices/virtual/neuron_device/neuron", index);
  Put(folder + "/core_count", absl::StrCat(cores));
  Put(folder + "/info/architecture/device_name", "Trainium1");
  Put(absl::StrCat("/dev/neuron", index), "");
}

void Machine::AddTpu(int place, const std::string& address, const std::string& device) {
  AddPci({address, "0x1ae0", device, "0xff0000", "", 0, ""});
  Put(absl::StrCat("/dev/accel", place), "");
}

void Machine::AddProcess(int pid, const std::string& command,
                         const std::vector<std::string>& open) {
  const std::string folder = absl::StrCat("/proc/", pid);
  Put(folder + "/comm", command);
  for (size_t fd = 0; fd < open.size(); ++fd) Link(absl::StrCat(folder, "/fd/", fd), open[fd]);
}

void Machine::AddCpus(int sockets, int cores_per_socket, int threads_per_core) {
  const int cores = sockets * cores_per_socket;
  for (int cpu = 0; cpu < cores * threads_per_core; ++cpu) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/");
    Put(folder + "physical_package_id", absl::StrCat(cpu % cores / cores_per_socket));
    Put(folder + "core_id", absl::StrCat(cpu % cores_per_socket));
  }
  for (int node = 0; node < sockets; ++node) {
    Put(absl::StrCat("/sys/devices/system/node/node", node, "/cpulist"), "");
  }
}

void DescribeGaudi2Server(Machine& machine) {
  // The kernel's numbers follow the bus; where a card sits is another order.
  constexpr int kModules[] = {5, 4, 7, 6, 1, 0, 3, 2};
  constexpr const char* kBuses[] = {"19", "1a", "33", "34", "9a", "9b", "b3", "b4"};
  for (int i = 0; i < 8; ++i) {
    machine.AddGaudi(i, kModules[i], absl::StrCat("0000:", kBuses[i], ":00.0"), i / 4,
                     i < 4 ? "0-3" : "4-7");
  }
  machine.AddCpus(2, 4, 1);
}

void DescribeH100Server(Machine& machine) {
  constexpr const char* kBuses[] = {"1b", "43", "52", "61", "9d", "c3", "d1", "df"};
  constexpr int kMinors[] = {3, 2, 1, 0, 7, 6, 5, 4};
  for (int i = 0; i < 8; ++i) {
    machine.AddNvidia(kMinors[i], absl::StrCat("0000:", kBuses[i], ":00.0"),
                      "NVIDIA H100 80GB HBM3", i / 4, i < 4 ? "0-3" : "4-7");
  }
  machine.AddCpus(2, 4, 1);
}

void DescribeMi300Server(Machine& machine) {
  constexpr const char* kBuses[] = {"05", "15", "65", "75", "85", "95", "e5", "f5"};
  for (int node = 0; node < 2; ++node) {
    machine.Put(absl::StrCat("/sys/class/kfd/kfd/topology/nodes/", node, "/properties"),
                "cpu_cores_count 96\nsimd_count 0\nvendor_id 4098");
  }
  for (int i = 0; i < 8; ++i) {
    machine.AddAmd(i + 2, 128 + 8 * i, absl::StrCat("0000:", kBuses[i], ":00.0"), i / 4);
  }
  machine.AddCpus(2, 4, 1);
}

}  // namespace hlaunch
