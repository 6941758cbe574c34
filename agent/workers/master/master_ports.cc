// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/master/master_ports.h"

#include <iterator>
#include <utility>

#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr int kNeighbours[] = {1, 2};
constexpr int kTries = 8;

absl::StatusOr<ListeningSocket> OpenStorePort(const MasterPortsWish& wish) {
  if (wish.served) return ListeningSocket{UniqueFd(), wish.port, ""};
  if (wish.worker) return Reserve(wish.port, /*named=*/wish.port != 0);
  return Listen(wish.address, wish.port);
}

absl::StatusOr<MasterPorts> TryPorts(const MasterPortsWish& wish) {
  MasterPorts ports;
  HLAUNCH_ASSIGN_OR_RETURN(ports.store, OpenStorePort(wish));
  for (const int distance : kNeighbours) {
    const int port = ports.store.port + distance;
    if (port > UINT16_MAX) continue;
    auto neighbour = Reserve(static_cast<uint16_t>(port));
    if (neighbour.ok()) ports.neighbours.push_back(std::move(neighbour).value());
  }
  return ports;
}

bool IsGood(const MasterPorts& ports) {
  return ports.neighbours.size() == std::size(kNeighbours) &&
         Reserve(GaudiCachePort(ports.store.port)).ok();
}

}  // namespace

uint16_t GaudiCachePort(uint16_t master_port) {
  const auto port = static_cast<uint16_t>(master_port + 100);
  return static_cast<uint16_t>(port << 8 | port >> 8);
}

absl::StatusOr<MasterPorts> OpenMasterPorts(const MasterPortsWish& wish) {
  const int tries = wish.port == 0 ? kTries : 1;
  std::vector<MasterPorts> tried;  // Held, so the next try gets another port.
  for (int i = 0; i < tries && (tried.empty() || !IsGood(tried.back())); ++i) {
    auto ports = TryPorts(wish);
    if (!ports.ok() && tried.empty()) return ports.status();
    if (!ports.ok()) break;
    tried.push_back(std::move(ports).value());
  }
  MasterPorts best = std::move(tried.back());  // The good one, if there is one.
  if (auto coordinator = Reserve(0); coordinator.ok()) {
    best.coordinator = std::move(coordinator).value();
  }
  return best;
}

}  // namespace hlaunch
