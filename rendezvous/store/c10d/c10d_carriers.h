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
#include "rendezvous/net/socket/socket_loop.h"
#include "rendezvous/store/access/vouching.h"
#include "rendezvous/store/c10d/c10d_connections.h"
#include "rendezvous/store/c10d/c10d_server_options.h"

namespace hlaunch {

// The connections of the nodes' proxies to the master store. Each carries the connections of many
// workers (see store_streams.h), at most 16,384: a further one is ended at once, and a proxy that
// does not end such streams in turn is closed. A sealed one may also vouch for connections that
// come from its host. Belongs to the thread of its loop.
class C10dCarriers {
 public:
  // All arguments must outlive the object.
  C10dCarriers(SocketLoop& loop, C10dConnections& connections, Vouching& vouching,
               const C10dServerOptions& options);
  ~C10dCarriers();

  // Serves a connection whose first bytes, which were already read, begin like a proxy's. If it is
  // sealed, it must use `sealing_key`; if that is empty, sealed connections are refused. With
  // `only_sealed`, all others are.
  void Add(UniqueFd fd, absl::string_view bytes, const std::string& sealing_key, bool only_sealed);

  // Sends what the streams have to send and what is asked, in one piece for each proxy. Call it
  // once a turn.
  void SendAll();

  // Closes all without telling the peers. Requires: `connections` holds none of their streams any
  // more.
  void Clear();

 private:
  using Id = uint64_t;
  class Carrier;
  class Stream;

  void SendQuestions();
  // Closes a proxy's connection and all streams that it carries. Destroys the carrier.
  void Close(Carrier& carrier);

  SocketLoop& loop_;
  C10dConnections& connections_;
  Vouching& vouching_;
  const C10dServerOptions& options_;
  Id last_id_ = 0;
  absl::flat_hash_map<Id, std::unique_ptr<Carrier>> carriers_;
  std::set<Id> to_send_;  // Carriers that have something to send.
};

}  // namespace hlaunch
