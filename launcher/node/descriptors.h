// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// Raises this process's soft limit on open descriptors to the hard limit. Returns the limit before,
// which workers get again; unset if it did not change.
std::optional<uint64_t> RaiseDescriptorLimit();

// Makes room for `count` descriptors in this process's table, or for as many as the limit allows.
// If the table grows later, while the process has threads, the process waits for a grace period of
// the kernel (RCU): 8 to 32 ms each time, at 64 descriptors, 256 and so on. Each reserved
// descriptor costs 8 bytes.
//
// Requires: descriptor 0 is open; no other thread was started yet.
void ReserveDescriptors(uint64_t count);

// Returns the number of descriptors without which a node that starts `nproc` workers cannot begin;
// a node with a rendezvous client needs more than one that runs alone. Pure.
uint64_t LeastDescriptors(int nproc, bool meets_others);

// Checks that this process can open `count` more descriptors. If the limit is high, it is not
// looked at closely.
//
// Errors: ResourceExhausted - the message says how many there are and how to get more.
absl::Status CheckDescriptors(uint64_t count);

// Returns the present soft limit.
uint64_t DescriptorLimit();

// The facts about a job that decide how many descriptors the host of its rendezvous needs.
struct DescriptorNeed {
  int max_nodes = 1;
  int spares = 0;
  int nproc = 1;  // Assumed for each node: the number of this node.
  // The master store may be in this process; then all workers connect to it.
  bool store_here = true;
};

struct Ceiling {
  int64_t nodes = 0;    // About how many nodes the limit allows.
  uint64_t needed = 0;  // The limit that the whole job needs.
  std::string reason;   // What the descriptors are used for.
};

// Counts a connection for each agent, one for each agent and worker at the store, and the
// descriptors of this node and its own workers. Pure.
Ceiling DecideCeiling(const DescriptorNeed& need, uint64_t limit);

}  // namespace hlaunch
