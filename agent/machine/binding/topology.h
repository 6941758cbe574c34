// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlaunch {

// One CPU as the kernel counts them (a hardware thread), and what it shares with other CPUs. A core
// or a cache is identified by its first CPU. A value.
struct Cpu {
  int id = 0;
  int core = 0;
  int cache = 0;   // The largest cache of the CPU, usually level 3.
  int node = 0;    // The kernel's number of its NUMA node.
  int socket = 0;  // The socket's place in the machine.
};

// The CPUs of a machine, in the order of their numbers, including CPUs that may not be used. A
// value.
struct Topology {
  std::vector<Cpu> cpus;
  bool is_this_machine = true;
};

// Where the topology comes from. If all fields are empty: this machine, or the one that the user
// gave hwloc in its own variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC).
struct TopologySource {
  std::string root;       // Folder of a machine described by root/sys and root/proc.
  std::string synthetic;  // In hwloc's syntax: "pack:2 numa:1 l3:2 core:8 pu:2"
  std::string xml_file;   // A file as lstopo writes it.
};

// Asks hwloc for the topology. hwloc is loaded only here, so only jobs that bind pay for it: some
// milliseconds, and more on large machines. Not thread-safe: hwloc is configured by environment
// variables. Call this before there are threads.
//
// Errors:
//   FailedPrecondition - hwloc is not installed, or has another major version.
//   InvalidArgument - hwloc cannot interpret the source.
absl::StatusOr<Topology> LoadTopology(const TopologySource& source = {});

}  // namespace hlaunch
