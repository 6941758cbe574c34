// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "asio/io_context.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/ssl/stream.hpp"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/frame.h"
#include "rendezvous/cluster_wire/tls_context.h"

namespace hlaunch {

inline constexpr size_t kMostQueued = 16 << 20;  // Bytes for a peer that does not read them.

// News that say nothing but that who sends them lives. They never reach Events::said.
inline constexpr char kPing[] = "ping";

// One connection to the other end of the wire: first the handshake, then messages both ways.
//
// Belongs to the loop's thread; owned by who made it and by what it waits for.
class WireConnection : public std::enable_shared_from_this<WireConnection> {
 public:
  struct Events {
    std::function<void()> shaken;                    // The handshake has succeeded.
    std::function<void(Envelope)> said;              // The other end; never of a ping.
    std::function<void()> pinged;                    // It lives.
    std::function<void(const absl::Status&)> ended;  // Once, never within a call of ours.
  };

  // Over a connected socket that does not block.
  //
  // Errors:
  //   ResourceExhausted - the kernel watches no socket more.
  static absl::StatusOr<std::shared_ptr<WireConnection>> Of(asio::io_context& loop, UniqueFd fd,
                                                            TlsContext context);

  // Begins the handshake. After it frames of at most `max_frame` are taken.
  void Begin(bool is_server, size_t max_frame, Events events);

  // Queues it. What is too long for a frame is not sent: instead of such an answer an error is, and
  // anything else is lost and logged. The connection ends if more than kMostQueued is queued; an
  // error is sent instead of a large answer with which it would be more than half of that.
  void Send(const Envelope& envelope);

  // Ends it, for which `why` is given to `ended`: later, and nothing else is called any more.
  void End(absl::Status why);
  // Ends it, and nothing at all is called any more.
  void Drop();

  void set_max_frame(size_t max_frame) { reader_.set_max_frame(max_frame); }

  // Null: the other end has shown no certificate. Known after the handshake.
  const X509* shown() const;
  const std::string& name() const { return name_; }  // "10.0.0.7 port 40112", for messages.
  Instant heard() const { return heard_; }           // When bytes came last.
  size_t queued() const { return waiting_.size() + leaving_.size(); }

  // By Of.
  WireConnection(asio::ip::tcp::socket socket, TlsContext context);

 private:
  void Shaken(const asio::error_code& error);
  void Read();
  void Came(const asio::error_code& error, size_t size);
  void Take(const std::string& frame);
  void Write();
  void Broke(const asio::error_code& error);

  const TlsContext context_;  // Outlives the stream.
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
  const std::string name_;
  Events events_;
  FrameReader reader_;
  std::array<char, 4096> buffer_;
  std::string waiting_;  // To be sent after what is leaving.
  std::string leaving_;  // Empty: nothing is being sent.
  Instant heard_;
  bool ended_ = false;
};

// The address of the other end of the connected socket `fd`, a literal: IPv4 also where the socket
// is one of IPv6. Empty: it is connected no more.
std::string PeerLiteral(int fd);

// What is sent for `envelope`; unset: nothing, since it is too long. Pure.
std::optional<std::string> FrameFor(const Envelope& envelope);

}  // namespace hlaunch
