// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/cluster/envelope.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A node daemon's end of its connection to the head. The link connects again for as long as it
// lives: after at most 0.2 s at first, then after longer and longer pauses of at most 2 s, until a
// connection lasts. It closes a connection on which nothing arrives for 10 s. The peer must show
// the certificate of the head of our authority.
//
// A host name is looked up on a thread of its own. Belongs to the loop's thread.
class ClusterLink {
 public:
  struct Events {
    std::function<void()> up;            // The head has let this host in.
    std::function<void(Envelope)> said;  // Not called for answers to Ask.
    // The connection has ended, or an attempt has failed. The link will try again.
    //   Unavailable - the head cannot be reached, or the connection broke.
    //   Unauthenticated - one end does not accept the other one's certificate.
    //   InvalidArgument - our identity is damaged, or the head sends no valid message.
    std::function<void(const absl::Status&)> down;
  };
  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;

  // Begins to connect. Calls no event itself.
  ClusterLink(asio::io_context& loop, std::string host, uint16_t port, HostIdentity identity,
              Events events);
  ~ClusterLink();  // Nothing is called any more, not even Ask's `done`.
  ClusterLink(const ClusterLink&) = delete;
  ClusterLink& operator=(const ClusterLink&) = delete;

  // Drops the envelope while the link is down.
  void Send(const Envelope& envelope);

  // Asks the head. `done` is called once, never from within Ask.
  //
  // Errors of the answer: the head's own, and
  //   Unavailable - the link is down, or went down before the answer came.
  //   ResourceExhausted - the question is too long.
  void Ask(std::string verb, nlohmann::json body, std::optional<ClusterUser> user, Done done);

  // Shows this identity from the next connection on.
  void Renew(HostIdentity identity);

  bool connected() const;

 private:
  class State;
  const std::shared_ptr<State> state_;  // Also owned by pending handlers.
};

}  // namespace hlaunch
