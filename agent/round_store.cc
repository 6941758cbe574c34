// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/node_facts.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/net/trust/sealed_stream.h"

namespace hlaunch {
namespace {

// Workers see the port that the user may have named, unless it is in use on this host.
absl::StatusOr<ListeningSocket> ListenForWorkers(uint16_t port) {
  auto listener = Listen("127.0.0.1", port);
  return listener.ok() ? std::move(listener) : Listen("127.0.0.1", 0);
}

}  // namespace

absl::Status RoundStore::Renew() {
  proxy_.reset();
  store_.reset();
  ports_ = {};  // The new ports may be the same.
  HLAUNCH_ASSIGN_OR_RETURN(ports_,
                           OpenMasterPorts({options_.store_address, options_.store_port,
                                            options_.store_is_shared, options_.worker_store}));
  return absl::OkStatus();
}

void RoundStore::Offer(NodeUpdate& update) const {
  update.store_port = ports_.store.port;
  update.coordinator_port = ports_.coordinator.port;
  update.worker_store = options_.worker_store;
}

absl::Status RoundStore::Open(const Assignment& assignment) {
  if (options_.store_is_shared || options_.worker_store || store_ != nullptr) {
    return absl::OkStatus();
  }
  C10dServerOptions options = options_.store;
  options.access =
      AccessOfRound(options.access.value_or(StoreAccess()), assignment.members,
                    IsOwnAddress(assignment.master_addr) ? assignment.master_addr : "");
  options.access->vouched = options_.store_sealed;
  options.access->any_user = options_.spec.any_user;
  // Another node's proxy seals its stream.
  if (assignment.num_nodes > 1) options.sealing_key = SealingKey(assignment.comm_secret);
  HLAUNCH_ASSIGN_OR_RETURN(store_, C10dServer::Start(std::move(ports_.store), options));
  return absl::OkStatus();
}

absl::Status RoundStore::Connect(const Assignment& assignment) {
  if (assignment.node_rank == 0 || assignment.worker_store) return absl::OkStatus();
  if (!options_.store_proxy && !options_.store_sealed) return absl::OkStatus();
  if (proxy_ != nullptr && connected_ == assignment.round) return absl::OkStatus();
  proxy_.reset();
  std::optional<ListeningSocket> listener;
  if (options_.store_proxy) {
    HLAUNCH_ASSIGN_OR_RETURN(listener, ListenForWorkers(assignment.master_port));
  }
  StoreProxyOptions options{assignment.master_addr, assignment.master_port};
  options.max_unread_bytes =
      std::max(options.max_unread_bytes, 2 * MaxC10dMessageBytes(options_.store.limits));
  options.any_user = options_.spec.any_user;
  if (options_.store_sealed) options.sealing_key = SealingKey(assignment.comm_secret);
  if (options_.store_sealed && options.sealing_key.empty()) {
    return absl::InternalError("the round has no secret to seal the master store's streams with");
  }
  HLAUNCH_ASSIGN_OR_RETURN(proxy_, StoreProxy::Start(std::move(listener), options));
  connected_ = assignment.round;
  return absl::OkStatus();
}

}  // namespace hlaunch
