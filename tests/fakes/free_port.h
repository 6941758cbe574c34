// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <random>

#include "rendezvous/net/socket/listen.h"

namespace hlaunch {

// A port of 127.0.0.1 that nobody listens at, for a server that is told its port. It is below those
// that the kernel gives to sockets which ask for any (/proc/sys/net/ipv4/ip_local_port_range), so
// nobody is given it before the server listens. Another call draws the same one of 19,000 rarely.
inline uint16_t FreePort() {
  std::random_device random;
  while (true) {
    const auto port = static_cast<uint16_t>(10000 + random() % 19000);
    if (Listen("127.0.0.1", port).ok()) return port;
  }
}

}  // namespace hlaunch
