// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace hlaunch {

// A network between clients and a server on loopback that can fail: forwards bytes, drops
// connections, or swallows everything.
//
// Thread-safe. Owns its threads.
class TcpProxy {
 public:
  // Forwards to `target` (a literal), `port`.
  TcpProxy(const std::string& target, uint16_t port);
  ~TcpProxy();

  uint16_t port() const;  // On 127.0.0.1.

  // Resets all connections; new ones are forwarded.
  void DropConnections();

  // From now on takes connections and bytes and forwards nothing; nothing is closed either.
  void Swallow();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
