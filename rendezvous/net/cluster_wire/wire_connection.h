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
#include "rendezvous/net/cluster_wire/tls_context.h"

namespace hlaunch {

inline constexpr size_t kMostQueued = 16 << 20;  // Bytes that wait for a peer to read them.

// The news with which a peer says only that it is alive. It never reaches Events::said.
inline constexpr char kPing[] = "ping";

// One connection to the other end of the wire: first the handshake, then messages both ways.
//
// Owned by its creator and by pending handlers. Belongs to the loop's thread.
class WireConnection : public std::enable_shared_from_this<WireConnection> {
 public:
  struct Events {
    std::function<void()> shaken;                    // The handshake has succeeded.
    std::function<void(Envelope)> said;              // The peer has sent this; never a ping.
    std::function<void()> pinged;                    // The peer has sent a ping.
    std::function<void(const absl::Status&)> ended;  // Once, never from within a call of ours.
  };

  // Makes a connection over a connected socket that does not block.
  //
  // Errors:
  //   ResourceExhausted - the kernel cannot watch one more socket.
  static absl::StatusOr<std::shared_ptr<WireConnection>> Of(asio::io_context& loop, UniqueFd fd,
                                                            TlsContext context);

  // Begins the handshake. After it the connection accepts frames of at most `max_frame`.
  void Begin(bool is_server, size_t max_frame, Events events);

  // Queues the envelope. An answer that is too long for a frame is replaced by an error; any other
  // envelope that is too long is lost and logged. The connection ends if more than kMostQueued
  // would be queued. A large answer is replaced by an error if more than half of that would be
  // queued with it.
  void Send(const Envelope& envelope);

  // Ends the connection. `ended` is called later with `why`; nothing else is called any more.
  void End(absl::Status why);
  // Ends the connection. Nothing is called any more, not even `ended`.
  void Drop();

  void set_max_frame(size_t max_frame) { reader_.set_max_frame(max_frame); }

  // Returns the peer's certificate; null if it has shown none. Known after the handshake.
  const X509* shown() const;
  const std::string& name() const { return name_; }  // "10.0.0.7 port 40112", for messages.
  Instant heard() const { return heard_; }           // When bytes came last.
  size_t queued() const { return waiting_.size() + leaving_.size(); }

  // For Of only.
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
  std::string waiting_;  // To be sent after leaving_.
  std::string leaving_;  // Being sent; empty if nothing is.
  Instant heard_;
  bool ended_ = false;
};

// Returns the address of the peer of the connected socket `fd`, as a literal; that of an IPv4 peer
// is IPv4 also on an IPv6 socket. Empty if the socket is not connected any more.
std::string PeerLiteral(int fd);

// Returns what is sent for `envelope`; unset if nothing is, since it is too long. Pure.
std::optional<std::string> FrameFor(const Envelope& envelope);

}  // namespace hlaunch
