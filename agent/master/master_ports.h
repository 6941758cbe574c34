// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {

// What a node holds in case that it becomes node rank 0: MASTER_PORT and the ports that
// frameworks serve beside it. A movable value; its end gives them all back.
struct MasterPorts {
  // MASTER_PORT. Listens, or is reserved for rank 0; without a socket if another serves it.
  ListeningSocket store;
  // MASTER_PORT+1 and +2, for restarts within the process (Megatron, HyperPod), reserved; those
  // that were free.
  std::vector<ListeningSocket> neighbours;
  ListeningSocket coordinator;  // Reserved for JAX. Port 0: there was none to be had.
};

struct MasterPortsWish {
  std::string address;  // Where the store listens; empty: on all addresses.
  uint16_t port = 0;    // MASTER_PORT if the user named it, else any whose neighbours are free.
  bool served = false;  // Another listener serves the store on `port`.
  bool worker = false;  // Rank 0 will: the port is reserved on all addresses.
};

// Errors: as Listen, of the store's port; a neighbour or coordinator that cannot be had is none.
absl::StatusOr<MasterPorts> OpenMasterPorts(const MasterPortsWish& wish);

// Where Gaudi's cache of recipes listens: MASTER_PORT+100 with its bytes swapped, for it leaves
// out htons. Nor does it set SO_REUSEADDR, so this port must be free and cannot be reserved.
uint16_t GaudiCachePort(uint16_t master_port);

}  // namespace hlaunch
