// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/watch/observe/http_request.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Serves GET and HEAD over HTTP/1.1, one request per connection. It keeps at most 64 connections.
// The next one drops a connection of the address that has the most, so a probe is answered even if
// another client opens many. Each connection has 5 s for its request of at most 8 KiB and the
// answer.
//
// Belongs to the loop's thread; `loop` outlives it.
class HttpServer {
 public:
  // Whom it answers.
  enum class Visitors {
    kAll,
    kOwnUser,  // This process's user and root, on this host. Others read that they may not.
  };
  // Returns the answer to a request that could be read. It must not block.
  using AnswerFn = std::function<HttpAnswer(const HttpQuestion& request)>;

  // Listens on `address`, a literal, and `port`; port 0 means a free one. `what` names the service
  // in messages.
  //
  // Errors:
  //   InvalidArgument - `address` is not an address.
  //   AlreadyExists - another process listens there.
  //   FailedPrecondition - this host cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(asio::io_context& loop,
                                                           const std::string& what,
                                                           const std::string& address,
                                                           uint16_t port, AnswerFn answer,
                                                           Visitors visitors = Visitors::kAll);
  ~HttpServer();

  uint16_t port() const;

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  // Owned by this object and by handlers that the loop has yet to call.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
