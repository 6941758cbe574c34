// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlaunch {

// One CPU as the kernel counts them (a hardware thread), and what it shares with others. A core
// and a cache are named by the first CPU of theirs. A value.
struct Cpu {
  int id = 0;
  int core = 0;
  int cache = 0;   // The largest one that it has, mostly level 3.
  int node = 0;    // NUMA node, by the kernel's number.
  int socket = 0;  // By its place in the machine.
};

// The CPUs of a machine, in the order of their numbers, also those that nobody may use. A value.
struct Topology {
  std::vector<Cpu> cpus;
  bool is_this_machine = true;
};

// Where to look. Everything empty: this machine, or the one that the user gave hwloc in its own
// variables (HWLOC_XMLFILE, HWLOC_SYNTHETIC).
struct TopologySource {
  std::string root;       // The machine that root/sys and root/proc describe.
  std::string synthetic;  // hwloc's words: "pack:2 numa:1 l3:2 core:8 pu:2"
  std::string xml_file;   // As lstopo writes it.
};

// Asks hwloc, which is loaded here and nowhere else, and so costs only those who bind: some
// milliseconds, and more on large machines. Not thread-safe: hwloc takes settings from
// variables; call it before threads exist.
//
// Errors:
//   FailedPrecondition - hwloc is not installed, or of another generation.
//   InvalidArgument - it makes no sense of what it was shown.
absl::StatusOr<Topology> LoadTopology(const TopologySource& source = {});

}  // namespace hlaunch
