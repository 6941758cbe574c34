// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

// The address of a rendezvous, and what the node and the rendezvous prove to each other.
struct RendezvousEndpoint {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 0;
  Trust trust;
  // Hosts and ports of further services. One of all the services leads; the client tries them in
  // turn.
  std::vector<std::pair<std::string, uint16_t>> others = {};
};

}  // namespace hlaunch
