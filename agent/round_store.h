// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "agent/agent_options.h"
#include "agent/workers/master/master_ports.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/store/c10d/c10d_server.h"
#include "rendezvous/store/c10d/store_proxy.h"

namespace hlaunch {

// This node's part in a round's master store: the ports that it offers in case it becomes node rank
// 0; the store itself while it is node rank 0; otherwise this node's connection to it, over which
// the store asks whose the connections of workers are, and which carries them if that is wished.
//
// Belongs to the loop thread; the store and the proxy have threads of their own.
class RoundStore {
 public:
  // `options` must outlive it.
  explicit RoundStore(const AgentOptions& options) : options_(options) {}

  // Closes the store and the proxy of the last round with their connections, then binds new ports.
  //
  // Errors: as OpenMasterPorts.
  absl::Status Renew();

  // Writes into `update` what this node offers in case it becomes node rank 0.
  void Offer(NodeUpdate& update) const;

  // Serves the store on the offered port, unless another process serves it or it is served already.
  // Requires: this node is node rank 0 of `assignment`.
  //
  // Errors: as C10dServer::Start.
  absl::Status Open(const Assignment& assignment);

  // Connects to the store of the round, if it is on another node and has something to ask or to
  // carry; without effect if that has happened already. A proxy for workers listens on the store's
  // own port number, if that is free here.
  //
  // Errors: as Listen and StoreProxy::Start.
  //   Internal - the connection is to be encrypted, and the round has no secret.
  absl::Status Connect(const Assignment& assignment);

  // Call when all workers of this node have exited with 0.
  void WorkersAreDone() {
    if (proxy_ != nullptr) proxy_->WorkersAreDone();
  }

  uint16_t proxy_port() const { return proxy_ != nullptr ? proxy_->port() : 0; }  // 0: no proxy.

 private:
  const AgentOptions& options_;
  MasterPorts ports_;
  std::unique_ptr<C10dServer> store_;
  std::unique_ptr<StoreProxy> proxy_;
  Round connected_ = 0;  // The round of `proxy_`.
};

}  // namespace hlaunch
