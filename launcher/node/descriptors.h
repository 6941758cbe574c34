// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// Raises this process's soft limit on open descriptors to the hard one. Returns what it was before,
// which is what workers are to have again; unset if it is unchanged.
std::optional<uint64_t> RaiseDescriptorLimit();

// Makes room for `count` descriptors in this process's table, or for as many as the limit allows.
// A table that grows later, while the process has threads, makes it wait for a grace period of the
// kernel (RCU): 8 to 32 ms each time, at 64 descriptors, 256 and so on. Costs 8 bytes each.
//
// Requires: descriptor 0 is open; no other thread was started yet.
void ReserveDescriptors(uint64_t count);

// The soft limit now.
uint64_t DescriptorLimit();

// What a job asks of the descriptors of the host of its rendezvous.
struct DescriptorNeed {
  int max_nodes = 1;
  int spares = 0;
  int nproc = 1;           // On each node, for want of a better word.
  bool store_here = true;  // The master store may be in this process: all workers connect to it.
};

struct Ceiling {
  int64_t nodes = 0;    // How many the limit carries, about.
  uint64_t needed = 0;  // The limit that carries the whole job.
  std::string reason;   // Where they go.
};

// Pure. A connection for each agent, one for each worker at the store, and what this node and its
// own workers take.
Ceiling DecideCeiling(const DescriptorNeed& need, uint64_t limit);

}  // namespace hlaunch
