// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// The kinds of accelerators. Where a node has several kinds, the first in this order is chosen.
enum class DeviceKind { kHpu, kCuda, kRocm, kAscend, kNeuron, kTpu, kXpu };

inline constexpr DeviceKind kDeviceKinds[] = {
    DeviceKind::kHpu,    DeviceKind::kCuda, DeviceKind::kRocm, DeviceKind::kAscend,
    DeviceKind::kNeuron, DeviceKind::kTpu,  DeviceKind::kXpu};

// "hpu", "cuda", …: one word for people and programs.
inline const char* KindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kHpu:
      return "hpu";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kRocm:
      return "rocm";
    case DeviceKind::kAscend:
      return "ascend";
    case DeviceKind::kNeuron:
      return "neuron";
    case DeviceKind::kTpu:
      return "tpu";
    case DeviceKind::kXpu:
      return "xpu";
  }
  return "";
}

// True if the driver gives a device of this kind to one process at a time. GPUs are shared, and
// monitors hold them all the time.
inline bool IsExclusive(DeviceKind kind) {
  return kind == DeviceKind::kHpu || kind == DeviceKind::kNeuron || kind == DeviceKind::kTpu;
}

// A process that has the device open.
struct DeviceHolder {
  int pid = 0;
  std::string command;
};

// One accelerator of this node as its kernel describes it. A value.
struct Device {
  DeviceKind kind = DeviceKind::kHpu;
  std::string model;
  // The number by which --devices and the kind's list of visible devices name this device: Gaudi's
  // module id, else the place in the order of its runtime. -1 if no process here can use it.
  int id = -1;
  int index = -1;                // The kernel's own number, as in the name of its device node.
  std::optional<int> module_id;  // Gaudi only: the card's place in the server.
  std::string pci_address;       // "0000:3d:00.0"; empty if unknown.
  std::string uuid;              // Empty if unknown.
  int numa_node = -1;            // -1 if unknown, as in most virtual machines.
  std::string local_cpus;        // "0-31,64-95"; empty if unknown.
  std::string node_path;         // "/dev/accel/accel0"
  std::string fault;             // Why no worker can use it, in words; empty if it is operational.
  int parts = 1;                 // How many parts (tiles, cores) a worker can get separately.
  std::vector<std::string> mig;  // NVIDIA's instances, each "GPU instance/compute instance".
  std::vector<DeviceHolder> holders;
};

}  // namespace hlaunch
