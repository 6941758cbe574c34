// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {

// The ports that a node holds in case it becomes node rank 0: MASTER_PORT and the ports that
// frameworks serve next to it. A movable value; its destruction releases all of them.
struct MasterPorts {
  // MASTER_PORT. The socket listens, or reserves the port for rank 0. There is no socket if another
  // listener serves the port.
  ListeningSocket store;
  // MASTER_PORT+1 and +2, reserved for restarts within the process (Megatron, HyperPod), as far as
  // they were free.
  std::vector<ListeningSocket> neighbours;
  ListeningSocket coordinator;  // Reserved for JAX. Port 0 if none was available.
};

struct MasterPortsWish {
  std::string address;  // Where the store listens; all addresses if empty.
  // MASTER_PORT if the user named it, else 0: any port whose neighbours are free.
  uint16_t port = 0;
  bool served = false;  // Another listener serves the store on `port`.
  bool worker = false;  // Rank 0 will serve the store: the port is reserved on all addresses.
};

// Errors: as Listen, for the store's port. A neighbour or coordinator port that is not available is
// left out.
absl::StatusOr<MasterPorts> OpenMasterPorts(const MasterPortsWish& wish);

// The port of Gaudi's cache of recipes: MASTER_PORT+100 with its bytes swapped, because the cache
// omits htons. It does not set SO_REUSEADDR either, so this port must be free and cannot be
// reserved.
uint16_t GaudiCachePort(uint16_t master_port);

}  // namespace hlaunch
