// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "proto/base/clock.h"
#include "rendezvous/c10d/c10d_commands.h"
#include "rendezvous/c10d/c10d_protocol.h"
#include "rendezvous/c10d/c10d_server_options.h"
#include "rendezvous/listening/send_buffer.h"

namespace hlaunch {

// One client of the master store: what it has sent and what it waits for. How its bytes go to and
// fro is its derived class' part: on a socket of its own, or on its node's proxy's. Belongs to its
// C10dConnections.
class C10dConnection {
 public:
  using Id = C10dCommands::ClientId;

  C10dConnection(Id its_id, const C10dServerOptions& options)
      : id(its_id), parser(options.older, options.limits) {}
  virtual ~C10dConnection() = default;
  C10dConnection(const C10dConnection&) = delete;
  C10dConnection& operator=(const C10dConnection&) = delete;

  // Replies that have not been sent.
  virtual SendBuffer& replies() = 0;
  // Sends what can be sent of them. Returns false if the client is gone.
  virtual bool SendReplies() = 0;
  // Says whether more bytes of it are read from now on; to be called after SendReplies.
  virtual void AwaitRequests(bool reads) = 0;
  // The server closes it: the client must be told, if nothing else tells it.
  virtual void TellEnd() = 0;
  // It has completed its first request.
  virtual void OnKnown() {}
  // Whence the client comes, for messages.
  virtual std::string Source() const = 0;

  // Requests are taken only while nothing stands in the way of their replies.
  bool blocked(size_t max_unread) {
    return held != nullptr || listing != nullptr || replies().size() > max_unread;
  }

  const Id id;
  C10dParser parser;
  std::string unparsed;  // Received, but the connection is blocked or has had its turn.
  std::unique_ptr<C10dRequest> held;  // Came while the client waits; is executed after that.
  std::unique_ptr<C10dCommands::Listing> listing;  // A reply that is being made.
  Instant silent_until;                            // While silence is awaited; else Instant().
  size_t arriving = 0;        // What it holds of a request that has not come whole,
  uint64_t arrived_last = 0;  // and when the last bytes of that came, in an order of all.
  bool known = false;         // It has completed a request.
  bool waiting = false;       // The client waits, as C10dCommands says.
  bool scheduled = false;     // It has a turn to come.
};

}  // namespace hlaunch
