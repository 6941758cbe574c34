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
#include "rendezvous/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A node daemon's end of its connection to the head, which is made again for as long as this lives:
// after a fifth of a second, and after more and more, up to 2 s, until one lasts. One on which
// nothing comes for 10 s is over. The other end is known by its certificate: it is the head of our
// authority.
//
// Belongs to the loop's thread. A name that is no literal is looked up on a thread of its own.
class ClusterLink {
 public:
  struct Events {
    std::function<void()> up;            // The head has let this host in.
    std::function<void(Envelope)> said;  // Not of answers to Ask.
    // It is over, or an attempt has failed; it will be tried again.
    //   Unavailable - the head is not there, or the connection broke.
    //   Unauthenticated - one end does not believe the other one's certificate.
    //   InvalidArgument - our identity is not whole, or the head talks nonsense.
    std::function<void(const absl::Status&)> down;
  };
  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;

  // Begins. No event is called within this.
  ClusterLink(asio::io_context& loop, std::string host, uint16_t port, HostIdentity identity,
              Events events);
  ~ClusterLink();  // Nothing is called any more, Ask's `done` included.
  ClusterLink(const ClusterLink&) = delete;
  ClusterLink& operator=(const ClusterLink&) = delete;

  // Dropped while it is down.
  void Send(const Envelope& envelope);

  // Asks the head. `done` is called once, never within this.
  //
  // Errors of the answer: the head's own, and
  //   Unavailable - it is down, or went down before the answer came.
  //   ResourceExhausted - the question is too long.
  void Ask(std::string verb, nlohmann::json body, std::optional<ClusterUser> user, Done done);

  // What it shows from the next connection on.
  void Renew(HostIdentity identity);

  bool connected() const;

 private:
  class State;
  const std::shared_ptr<State> state_;  // Also owned by what it waits for.
};

}  // namespace hlaunch
