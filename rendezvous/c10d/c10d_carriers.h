// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/c10d/c10d_connections.h"
#include "rendezvous/c10d/c10d_server_options.h"
#include "rendezvous/listening/socket_loop.h"

namespace hlaunch {

// The connections of nodes' proxies to the master store, of which each carries those of many
// workers (see store_streams.h). Belongs to the thread of its loop.
class C10dCarriers {
 public:
  // All three outlive it.
  C10dCarriers(SocketLoop& loop, C10dConnections& connections, const C10dServerOptions& options);
  ~C10dCarriers();

  // Serves a connection whose first bytes, which were read already, begin as a proxy's do. One that
  // is sealed must have `sealing_key`; empty: none may be.
  void Add(UniqueFd fd, absl::string_view bytes, const std::string& sealing_key);

  // Sends what the streams have to say, in one piece for each proxy. To be called once a turn.
  void SendAll();

  // Closes all without a word. Requires: `connections` holds none of their streams any more.
  void Clear();

 private:
  using Id = uint64_t;
  class Carrier;
  class Stream;

  // Closes the connection of a proxy and all that it carries. The carrier is destroyed.
  void Close(Carrier& carrier);

  SocketLoop& loop_;
  C10dConnections& connections_;
  const C10dServerOptions& options_;
  Id last_id_ = 0;
  absl::flat_hash_map<Id, std::unique_ptr<Carrier>> carriers_;
  std::set<Id> to_send_;  // Those that have something to send.
};

}  // namespace hlaunch
