// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// What runs on a device, in the order in which one kind is chosen where a node has several.
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

// Whether the driver gives a device of this kind to one process at a time. GPUs are shared, and
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
  // The number by which --devices and the list of visible devices of its kind name it: Gaudi's
  // module id, else the place in the order of its runtime. -1: no process here can use it.
  int id = -1;
  int index = -1;                // The kernel's own number, as in its device node.
  std::optional<int> module_id;  // Gaudi: where the card sits.
  std::string pci_address;       // "0000:3d:00.0"; empty: unknown.
  std::string uuid;              // Empty: unknown.
  int numa_node = -1;            // -1: unknown, as in most virtual machines.
  std::string local_cpus;        // "0-31,64-95"; empty: unknown.
  std::string node_path;         // "/dev/accel/accel0"
  std::string fault;             // Why no worker can use it, in words; empty: it is operational.
  int parts = 1;                 // What can be given away by itself: tiles, cores.
  std::vector<std::string> mig;  // NVIDIA's instances, each "GPU instance/compute instance".
  std::vector<DeviceHolder> holders;
};

}  // namespace hlaunch
