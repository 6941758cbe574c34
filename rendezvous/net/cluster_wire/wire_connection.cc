// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/wire_connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "asio/buffer.hpp"
#include "asio/post.hpp"
#include "asio/write.hpp"
#include "openssl/ssl.h"
#include "proto/base/log.h"
#include "rendezvous/net/socket/accept.h"

namespace hlaunch {
namespace {

constexpr size_t kSmallAnswer = 64 << 10;  // Answers to orders are smaller; none may be lost.

asio::ip::tcp ProtocolOf(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size);
  return own.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

void SendAtOnce(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

std::string PeerLiteral(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  std::array<char, NI_MAXHOST> host{};
  auto* address = reinterpret_cast<sockaddr*>(&peer);
  if (::getpeername(fd, address, &size) != 0 ||
      ::getnameinfo(address, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return std::string(absl::StripPrefix(host.data(), "::ffff:"));
}

std::optional<std::string> FrameFor(const Envelope& envelope) {
  const std::string text = EncodeEnvelope(envelope);
  if (text.size() <= kMaxClusterFrame) return EncodeFrameOf(text);
  if (!envelope.is_answer()) return std::nullopt;
  return EncodeFrameOf(EncodeEnvelope(
      ErrorTo(envelope, absl::ResourceExhaustedError(absl::StrCat(
                            "the answer would have ", text.size(), " bytes, which is too long")))));
}

WireConnection::WireConnection(asio::ip::tcp::socket socket, TlsContext context)
    : context_(std::move(context)),
      stream_(std::move(socket), *context_),
      name_(PeerName(stream_.next_layer().native_handle())),
      reader_(kMaxStrangerFrame) {}

absl::StatusOr<std::shared_ptr<WireConnection>> WireConnection::Of(asio::io_context& loop,
                                                                   UniqueFd fd,
                                                                   TlsContext context) {
  SendAtOnce(fd.get());
  asio::ip::tcp::socket socket(loop);
  asio::error_code error;
  socket.assign(ProtocolOf(fd.get()), fd.get(), error);
  if (error) return absl::ResourceExhaustedError(error.message());
  fd.Release();
  return std::make_shared<WireConnection>(std::move(socket), std::move(context));
}

void WireConnection::Begin(bool is_server, size_t max_frame, Events events) {
  events_ = std::move(events);
  reader_.set_max_frame(max_frame);
  heard_ = MonotonicClock().Now();
  stream_.async_handshake(
      is_server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
      [self = shared_from_this()](const asio::error_code& error) { self->Shaken(error); });
}

void WireConnection::Shaken(const asio::error_code& error) {
  if (ended_) return;
  if (error) return Broke(error);
  heard_ = MonotonicClock().Now();
  events_.shaken();
  if (!ended_) Read();
}

void WireConnection::Read() {
  stream_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](const asio::error_code& error, size_t size) {
                            self->Came(error, size);
                          });
}

void WireConnection::Came(const asio::error_code& error, size_t size) {
  if (ended_) return;
  if (error) return Broke(error);
  heard_ = MonotonicClock().Now();
  const auto frames = reader_.Take(absl::string_view(buffer_.data(), size));
  if (!frames.ok()) return End(frames.status());
  for (const std::string& frame : *frames) {
    if (!ended_) Take(frame);
  }
  if (!ended_) Read();
}

void WireConnection::Take(const std::string& frame) {
  absl::StatusOr<Envelope> envelope = DecodeEnvelope(frame);
  if (!envelope.ok()) return End(envelope.status());
  if (envelope->tell == kPing) {
    events_.pinged();
  } else {
    events_.said(*std::move(envelope));
  }
}

void WireConnection::Send(const Envelope& envelope) {
  if (ended_) return;
  std::optional<std::string> frame = FrameFor(envelope);
  if (!frame.has_value()) {
    return LogError(absl::StrCat("a message to ", name_,
                                 " is too long and was not sent: ", envelope.ask, envelope.tell));
  }
  const bool is_large = envelope.is_answer() && frame->size() > kSmallAnswer;
  if (is_large && queued() + frame->size() > kMostQueued / 2) {
    frame = FrameFor(
        ErrorTo(envelope, absl::ResourceExhaustedError("too much waits for this host; ask again")));
  }
  if (queued() + frame->size() > kMostQueued) {
    return End(absl::ResourceExhaustedError(
        absl::StrCat("it does not read what it is sent: ", queued(), " bytes wait for it")));
  }
  waiting_ += *frame;
  if (leaving_.empty()) Write();
}

void WireConnection::Write() {
  leaving_.swap(waiting_);
  if (leaving_.empty()) return std::string().swap(waiting_);  // Frees it: it may have been large.
  asio::async_write(stream_, asio::buffer(leaving_),
                    [self = shared_from_this()](const asio::error_code& error, size_t) {
                      if (self->ended_) return;
                      if (error) return self->Broke(error);
                      std::string().swap(self->leaving_);
                      self->Write();
                    });
}

void WireConnection::Broke(const asio::error_code& error) {
  const std::string why = WhyNoTls(stream_.native_handle(), error);
  const bool is_proof = error.category() == asio::error::get_ssl_category();
  End(is_proof ? absl::UnauthenticatedError(why) : absl::UnavailableError(why));
}

void WireConnection::End(absl::Status why) {
  if (ended_) return;
  ended_ = true;
  asio::post(stream_.get_executor(), [self = shared_from_this(), why = std::move(why)] {
    asio::error_code ignored;
    self->stream_.next_layer().close(ignored);
    const auto ended = std::exchange(self->events_, {}).ended;
    if (ended) ended(why);
  });
}

void WireConnection::Drop() {
  ended_ = true;
  // Destroys the callbacks later, since one of them may be the caller.
  asio::post(stream_.get_executor(), [events = std::exchange(events_, {})] {});
  asio::error_code ignored;
  stream_.next_layer().close(ignored);
}

const X509* WireConnection::shown() const {
  // The connection's session owns the certificate and outlives what the caller does with it.
  return SSL_get0_peer_certificate(const_cast<WireConnection*>(this)->stream_.native_handle());
}

}  // namespace hlaunch
