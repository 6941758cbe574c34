// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/https_connection.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/host_name_verification.hpp"
#include "boost/beast/core/error.hpp"
#include "boost/beast/core/flat_buffer.hpp"
#include "boost/beast/core/tcp_stream.hpp"
#include "boost/beast/http.hpp"
#include "boost/beast/ssl/ssl_stream.hpp"
#include "boost/beast/version.hpp"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace net = boost::asio;
using Tcp = beast::tcp_stream;
using Tls = beast::ssl_stream<beast::tcp_stream>;

constexpr size_t kMostHeaderBytes = size_t{64} << 10;

absl::Status Broken(absl::string_view what, const beast::error_code& error) {
  if (error == beast::error::timeout)
    return absl::UnavailableError(absl::StrCat(what, ": no answer in time"));
  if (error == http::error::end_of_stream || error == net::error::eof) {
    return absl::UnavailableError(absl::StrCat(what, ": it closed the connection"));
  }
  return absl::UnavailableError(absl::StrCat(what, ": ", error.message()));
}

http::request<http::string_body> Message(const HttpRequest& request, const std::string& host) {
  http::request<http::string_body> message(http::string_to_verb(request.method), request.target,
                                           11);
  message.set(http::field::host, host);
  message.set(http::field::user_agent, "hlaunch");
  message.set(http::field::accept, "application/json");
  if (!request.token.empty()) {
    message.set(http::field::authorization, absl::StrCat("Bearer ", request.token));
  }
  if (!request.body.empty()) message.set(http::field::content_type, "application/json");
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

// A connection over one kind of stream. Its loop runs only during a call.
template <typename Stream>
class ConnectionOver final : public HttpsConnection {
 public:
  template <typename... Words>
  explicit ConnectionOver(std::string host_field, Words&&... words)
      : host_field_(std::move(host_field)), stream_(loop_, std::forward<Words>(words)...) {}

  // Begins an operation with `start` and runs the loop until it ends.
  template <typename Start>
  beast::error_code Await(Instant deadline, const Start& start) {
    beast::get_lowest_layer(stream_).expires_at(deadline);
    beast::error_code result = net::error::operation_aborted;
    start([&result](const beast::error_code& error, auto&&...) { result = error; });
    loop_.restart();
    loop_.run();
    return result;
  }

  absl::StatusOr<HttpResponse> Ask(const HttpRequest& request, Instant deadline) override {
    open_ = false;
    const auto message = Message(request, host_field_);
    beast::error_code error = Await(
        deadline, [&](auto handler) { http::async_write(stream_, message, std::move(handler)); });
    if (error) return Broken("cannot send", error);
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMostAnswerBytes);
    parser.header_limit(kMostHeaderBytes);
    error = Await(deadline, [&](auto handler) {
      http::async_read(stream_, buffer_, parser, std::move(handler));
    });
    if (error) return Broken("no answer", error);
    open_ = parser.keep_alive();
    HttpResponse response;
    response.status = parser.get().result_int();
    const auto retry_after = parser.get()[http::field::retry_after];
    response.retry_after = std::string(retry_after.data(), retry_after.size());
    response.body = std::move(parser.get().body());
    return response;
  }

  bool is_open() const override { return open_; }
  Stream& stream() { return stream_; }

 private:
  const std::string host_field_;
  net::io_context loop_;
  Stream stream_;
  beast::flat_buffer buffer_;
  bool open_ = true;
};

template <typename Stream>
absl::Status Connect(ConnectionOver<Stream>& connection, const HttpsPeer& peer, Instant deadline) {
  beast::error_code error;
  const auto address = net::ip::make_address(peer.literal, error);
  if (error) return Broken("cannot connect", error);
  error = connection.Await(deadline, [&](auto handler) {
    beast::get_lowest_layer(connection.stream())
        .async_connect(net::ip::tcp::endpoint(address, peer.port), std::move(handler));
  });
  if (error) return Broken("cannot connect", error);
  // A request goes out in two pieces, and the second must not wait for the acknowledgement of the
  // first.
  beast::get_lowest_layer(connection.stream())
      .socket()
      .set_option(net::ip::tcp::no_delay(true), error);
  return absl::OkStatus();
}

// A TLS connection. Each has its own context, since the trusted authorities may change.
class TlsConnection final : public HttpsConnection {
 public:
  explicit TlsConnection(const HttpsPeer& peer)
      : context_(Made()), over_(HostPort(peer.host, peer.port), context_) {}

  absl::Status Begin(const HttpsPeer& peer, Instant deadline) {
    beast::error_code error;
    context_.add_certificate_authority(net::buffer(*peer.authorities), error);
    if (error) return absl::InvalidArgumentError("it holds no certificate in PEM");
    Tls& stream = over_.stream();
    stream.set_verify_mode(net::ssl::verify_peer);
    stream.set_verify_callback(net::ssl::host_name_verification(peer.host));
    // The certificate may be checked for a name or an address, but only a name may be sent as SNI
    // (RFC 6066).
    if (!IsAddressLiteral(peer.host)) {
      SSL_set_tlsext_host_name(stream.native_handle(), peer.host.c_str());
    }
    HLAUNCH_RETURN_IF_ERROR(Connect(over_, peer, deadline));
    error = over_.Await(deadline, [&](auto handler) {
      stream.async_handshake(net::ssl::stream_base::client, std::move(handler));
    });
    if (!error) return absl::OkStatus();
    const long verdict = SSL_get_verify_result(stream.native_handle());
    if (verdict == X509_V_OK) return Broken("no TLS", error);
    return absl::UnavailableError(
        absl::StrCat("its certificate is not believed: ", X509_verify_cert_error_string(verdict)));
  }

  absl::StatusOr<HttpResponse> Ask(const HttpRequest& request, Instant deadline) override {
    return over_.Ask(request, deadline);
  }
  bool is_open() const override { return over_.is_open(); }

 private:
  static net::ssl::context Made() {
    net::ssl::context context(net::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    return context;
  }

  net::ssl::context context_;
  ConnectionOver<Tls> over_;
};

absl::StatusOr<std::unique_ptr<HttpsConnection>> OpenIn(const HttpsPeer& peer, Instant deadline) {
  if (peer.authorities) {
    auto tls = std::make_unique<TlsConnection>(peer);
    HLAUNCH_RETURN_IF_ERROR(tls->Begin(peer, deadline));
    return tls;
  }
  auto plain = std::make_unique<ConnectionOver<Tcp>>(HostPort(peer.host, peer.port));
  HLAUNCH_RETURN_IF_ERROR(Connect(*plain, peer, deadline));
  return plain;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpsConnection>> HttpsConnection::Open(const HttpsPeer& peer,
                                                                       Instant deadline) {
  try {
    return OpenIn(peer, deadline);
  } catch (const std::exception& error) {  // Out of descriptors or memory.
    return absl::UnavailableError(absl::StrCat("cannot connect: ", error.what()));
  }
}

}  // namespace hlaunch
