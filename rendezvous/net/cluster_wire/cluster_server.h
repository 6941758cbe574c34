// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The head's end of its connections to node daemons. A peer is a host that has shown a certificate
// of the cluster's authority and was admitted; only the newest connection of each host stays. A
// client that shows no certificate is a stranger and may ask one question within kStrangerPatience.
// A client that shows a wrong one gets no answer. A peer is cut if it is silent for kSilence, does
// not read what it is sent, sends an invalid message, or if its certificate has expired.
//
// Belongs to the loop's thread.
class ClusterServer {
 public:
  struct Events {
    // Returns true if the host, whose certificate is right, may be a peer.
    std::function<bool(const CertifiedHost&)> admits;
    // Returns true for the host of this machine, which may connect from here with an expired
    // certificate to have it renewed. If unset, no host may.
    std::function<bool(const CertifiedHost&)> is_own;
    std::function<void(uint64_t peer, const std::string& host)> came;
    std::function<void(uint64_t peer, Envelope)> said;
    std::function<void(uint64_t peer)> left;  // Once for each peer that came.
    // A stranger at `address` asks. Send must answer within kStrangerPatience.
    std::function<void(uint64_t stranger, const Envelope& question, const std::string& address)>
        stranger;
  };

  // `listener` is a listening socket that does not block. Start calls no event.
  //
  // Errors:
  //   InvalidArgument - `identity` is damaged, or not the head's.
  //   Internal - OpenSSL fails.
  //   ResourceExhausted - the kernel cannot watch one more socket.
  static absl::StatusOr<std::unique_ptr<ClusterServer>> Start(asio::io_context& loop,
                                                              UniqueFd listener,
                                                              HostIdentity identity, Events events);
  ~ClusterServer();  // Closes all connections. No event is called any more.

  // Sends to a peer, or to a stranger that has asked. Drops the envelope if the receiver has left.
  void Send(uint64_t id, const Envelope& envelope);
  // Closes the peer's connection. Nothing that the peer says arrives any more; `left` is called
  // later.
  void Cut(uint64_t peer);
  // Shows this identity on connections that begin from now on.
  //
  // Errors: as Start; nothing changes then.
  absl::Status Renew(const HostIdentity& identity);

  size_t peers() const;

 private:
  class Connections;
  explicit ClusterServer(std::shared_ptr<Connections> connections);

  const std::shared_ptr<Connections> connections_;  // Also owned by pending handlers.
};

}  // namespace hlaunch
