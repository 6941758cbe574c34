// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/net/socket/send_buffer.h"
#include "rendezvous/store/c10d/c10d_commands.h"
#include "rendezvous/store/c10d/c10d_protocol.h"
#include "rendezvous/store/c10d/c10d_server_options.h"

namespace hlaunch {

// Bytes that came and were not taken yet. A value.
class Backlog {
 public:
  bool empty() const { return size() == 0; }
  size_t size() const { return text_.size() - taken_; }
  absl::string_view bytes() const { return absl::string_view(text_).substr(taken_); }

  void Append(absl::string_view more) {
    if (taken_ >= size()) text_.erase(0, std::exchange(taken_, 0));
    text_.append(more.data(), more.size());
  }
  // Drops all but the last `size` bytes; without any, it takes no memory.
  void Keep(size_t size) {
    taken_ = text_.size() - size;
    if (size > 0) return;
    taken_ = 0;
    std::string().swap(text_);  // Assigned, it would keep its memory.
  }

 private:
  std::string text_;
  size_t taken_ = 0;  // Its first bytes are no longer needed.
};

// One client of the master store: what it has sent and what it waits for. The derived class
// transports its bytes: on the client's own socket, or on the socket of its node's proxy. Belongs
// to its C10dConnections.
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
  // Sends as many of the replies as possible. Returns false if the client is gone.
  virtual bool SendReplies() = 0;
  // Sets whether more bytes are read from now on. Call it after SendReplies.
  virtual void AwaitRequests(bool reads) = 0;
  // Called when the server closes the connection: tells the client, if nothing else does.
  virtual void TellEnd() = 0;
  // Called when the client has completed its first request.
  virtual void OnKnown() {}
  // Returns where the client comes from, for messages.
  virtual std::string Source() const = 0;

  // True if no request may be taken now, because its reply could not be sent.
  bool blocked(size_t max_unread) {
    return held != nullptr || listing != nullptr || replies().size() > max_unread;
  }

  const Id id;
  C10dParser parser;
  Backlog unparsed;                   // Received bytes that wait: blocked, or the turn is over.
  std::unique_ptr<C10dRequest> held;  // A request that came during a wait; executed after it.
  std::unique_ptr<C10dCommands::Listing> listing;  // A reply that is being made.
  Instant silent_until;        // The end of the awaited silence; Instant() if there is none.
  size_t arriving = 0;         // The bytes it holds of an incomplete request.
  uint64_t arrived_last = 0;   // The place of its last bytes in the order of all arrivals.
  int requests_to_judge = 32;  // Of its first ones; by them its release of torch may be known.
  bool known = false;          // It has completed a request.
  bool waiting = false;        // The client waits, as C10dCommands says.
  bool scheduled = false;      // It is queued for a turn.
  bool gone = false;           // To be closed once it has executed what waits for a turn.
};

}  // namespace hlaunch
