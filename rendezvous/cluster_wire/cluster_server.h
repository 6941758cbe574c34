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
#include "rendezvous/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The head's end of its connections to node daemons. A peer is a host that has shown a certificate
// of the cluster's authority and was admitted; there is one of each host, the newest. Who shows
// none is a stranger, who may ask one question in kStrangerPatience. Who shows a wrong one gets
// nothing. A peer that says nothing for kSilence, does not read what it is sent, sends what is no
// message, or whose certificate has expired is cut.
//
// Belongs to the loop's thread.
class ClusterServer {
 public:
  struct Events {
    // Whether it may be a peer, beyond that its certificate is right.
    std::function<bool(const CertifiedHost&)> admits;
    // Whether it is the host of this machine, which may come from here with a certificate that has
    // expired, to have it renewed. Unset: none is.
    std::function<bool(const CertifiedHost&)> is_own;
    std::function<void(uint64_t peer, const std::string& host)> came;
    std::function<void(uint64_t peer, Envelope)> said;
    std::function<void(uint64_t peer)> left;  // Of each that came, once.
    // A stranger at `address` asks; Send answers, in kStrangerPatience.
    std::function<void(uint64_t stranger, const Envelope& question, const std::string& address)>
        stranger;
  };

  // `listener` listens and does not block. No event is called within this.
  //
  // Errors:
  //   InvalidArgument - `identity` is not whole, or not the head's.
  //   Internal - OpenSSL refuses.
  //   ResourceExhausted - the kernel watches no socket more.
  static absl::StatusOr<std::unique_ptr<ClusterServer>> Start(asio::io_context& loop,
                                                              UniqueFd listener,
                                                              HostIdentity identity, Events events);
  ~ClusterServer();  // Closes all connections; nothing is called any more.

  // To a peer, or a stranger that has asked. Dropped if it has left.
  void Send(uint64_t id, const Envelope& envelope);
  // Nothing that it says comes any more; `left` is called later.
  void Cut(uint64_t peer);
  // What those see who connect from now on.
  //
  // Errors: as of Start; then nothing changes.
  absl::Status Renew(const HostIdentity& identity);

  size_t peers() const;

 private:
  class Connections;
  explicit ClusterServer(std::shared_ptr<Connections> connections);

  const std::shared_ptr<Connections> connections_;  // Also owned by what it waits for.
};

}  // namespace hlaunch
