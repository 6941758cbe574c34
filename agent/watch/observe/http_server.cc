// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/http_server.h"

#include <array>
#include <list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/watch/observe/drop_connection.h"
#include "agent/watch/observe/http_request.h"
#include "asio/buffer.hpp"
#include "asio/io_context.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/steady_timer.hpp"
#include "asio/write.hpp"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/rare_log.h"
#include "rendezvous/net/peer/loopback_peer.h"

namespace hlaunch {
namespace {

using asio::ip::tcp;

constexpr size_t kMaxConnections = 64;
constexpr int kMaxUnaccepted = 256;
constexpr Duration kConnectionLimit = std::chrono::seconds(5);
constexpr Duration kAcceptPause = std::chrono::seconds(1);  // After an error: no descriptors.

absl::Status ListenError(const asio::error_code& error, const std::string& what,
                         const std::string& address, uint16_t port) {
  const std::string text =
      absl::StrCat("cannot serve ", what, " at ", HostPort(address, port), ": ", error.message());
  if (error == asio::error::address_in_use) return absl::AlreadyExistsError(text);
  return absl::FailedPreconditionError(text);
}

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, std::string what, AnswerFn answer, Visitors visitors)
      : loop_(loop),
        acceptor_(loop),
        pause_(loop),
        what_(std::move(what)),
        answer_(std::move(answer)),
        visitors_(visitors) {}

  asio::error_code Listen(const asio::ip::address& address, uint16_t port) {
    const tcp::endpoint endpoint(address, port);
    asio::error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kMaxUnaccepted, error);
    if (!error) port_ = acceptor_.local_endpoint(error).port();
    return error;
  }

  void Accept() {
    acceptor_.async_accept(
        [self = shared_from_this()](const asio::error_code& error, tcp::socket socket) {
          if (self->closed_) return;
          if (error) return self->AcceptLater();
          self->Serve(std::move(socket));
          self->Accept();
        });
  }

  void Close() {
    closed_ = true;
    asio::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const ConnectionPtr& connection : open_) connection->Close();
  }

  uint16_t port() const { return port_; }

 private:
  struct Connection {
    Connection(tcp::socket its_socket, asio::io_context& loop)
        : socket(std::move(its_socket)), limit(loop) {
      asio::error_code ignored;
      source = socket.remote_endpoint(ignored).address().to_string();
    }

    void Close() {
      asio::error_code ignored;
      open = false;
      limit.cancel();
      socket.close(ignored);
    }

    tcp::socket socket;
    asio::steady_timer limit;
    std::string source;  // The client's address.
    bool open = true;
    bool refused = false;  // It is another user's.
    std::array<char, kMaxHttpRequest> bytes;
    size_t size = 0;
    std::string response;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;  // Owned by open_ and its pending handlers.

  void AcceptLater() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error && !self->closed_) self->Accept();
    });
  }

  void Serve(tcp::socket socket) {
    if (open_.size() >= kMaxConnections) DropOne();
    auto connection = std::make_shared<Connection>(std::move(socket), loop_);
    connection->refused = visitors_ == Visitors::kOwnUser && !IsOwn(*connection);
    open_.push_back(connection);
    connection->limit.expires_after(kConnectionLimit);
    connection->limit.async_wait([connection](const asio::error_code& error) {
      if (!error) connection->Close();  // The pending read or write ends with an error.
    });
    Read(connection);
  }

  bool IsOwn(Connection& connection) {
    const absl::Status own = CheckPeerIsOwn(connection.socket.native_handle());
    if (!absl::IsPermissionDenied(own)) return own.ok();
    const std::string line = refusals_.Admit(
        absl::StrCat(what_, ": refused, since it is for this job's user: ", own.message(),
                     "; --any-user serves all users"),
        MonotonicClock().Now());
    if (!line.empty()) LogWarning(line);
    return false;
  }

  void DropOne() {
    std::vector<OpenConnection> open;
    for (const ConnectionPtr& connection : open_) {
      open.push_back({connection->source, !connection->response.empty()});
    }
    End(*std::next(open_.begin(), static_cast<std::ptrdiff_t>(ConnectionToDrop(open))));
  }

  void Read(const ConnectionPtr& connection) {
    connection->socket.async_read_some(
        asio::buffer(connection->bytes) + connection->size,
        [self = shared_from_this(), connection](const asio::error_code& error, size_t count) {
          if (error || !connection->open) return self->End(connection);
          connection->size += count;
          const HttpQuestion request =
              ReadHttpRequest({connection->bytes.data(), connection->size});
          if (request.status == 0) return self->Read(connection);
          connection->response = self->Respond(*connection, request);
          self->Write(connection);
        });
  }

  std::string Respond(const Connection& connection, const HttpQuestion& request) const {
    if (connection.refused) {
      return HttpReply(403, "text/plain",
                       "this is for the user of the job, and root; with a token it asks for a "
                       "password instead\n",
                       request.head);
    }
    if (request.status == 200) return HttpReply(answer_(request), request.head);
    return HttpReply(request.status, "text/plain", "GET and HEAD are answered here\n",
                     request.head);
  }

  void Write(const ConnectionPtr& connection) {
    asio::async_write(connection->socket, asio::buffer(connection->response),
                      [self = shared_from_this(), connection](const asio::error_code&, size_t) {
                        asio::error_code ignored;
                        connection->socket.shutdown(tcp::socket::shutdown_send, ignored);
                        self->End(connection);
                      });
  }

  void End(ConnectionPtr connection) {
    open_.remove(connection);
    connection->Close();
  }

  asio::io_context& loop_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::string what_;
  const AnswerFn answer_;
  const Visitors visitors_;
  RareLog refusals_;
  std::list<ConnectionPtr> open_;  // The oldest first.
  uint16_t port_ = 0;
  bool closed_ = false;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(asio::io_context& loop,
                                                              const std::string& what,
                                                              const std::string& address,
                                                              uint16_t port, AnswerFn answer,
                                                              Visitors visitors) {
  asio::error_code error;
  const asio::ip::address parsed = asio::ip::make_address(address, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot serve ", what, " at ", address, ": it is no address"));
  }
  auto impl = std::make_shared<Impl>(loop, what, std::move(answer), visitors);
  if (error = impl->Listen(parsed, port); error) return ListenError(error, what, address, port);
  impl->Accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { impl_->Close(); }
uint16_t HttpServer::port() const { return impl_->port(); }

}  // namespace hlaunch
