// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/watch/observe/http_server.h"
#include "asio/io_context.hpp"
#include "launcher/report/status/status_pages.h"
#include "launcher/text/endpoint.h"
#include "proto/base/thread.h"

namespace hlaunch {

// Serves status pages from a thread of its own, so that a browser cannot delay a job. The source is
// called from that thread, and no more once the server is destroyed.
//
// Belongs to the thread that made it.
class PageServer {
 public:
  // Whom a page without a password is for.
  enum class Audience { kOwnUser, kThisHost };

  // Serves at `place`, a literal address; port 0 takes a free port. If `token` is set, visitors
  // must give the password made from it; else only `audience` is served.
  //
  // Errors:
  //   PermissionDenied - `place` is no loopback address and there is no token.
  //   Internal - OpenSSL makes no password.
  //   ResourceExhausted - no thread could be started.
  //   others - as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const Endpoint& place,
                                                           const std::string& token,
                                                           Audience audience,
                                                           StatusPages::Source source);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  uint16_t port() const { return server_->port(); }

 private:
  PageServer(PageRules rules, StatusPages::Source source);

  asio::io_context loop_{1};
  StatusPages pages_;
  std::unique_ptr<HttpServer> server_;
  Thread thread_;
};

// The same, and logs where the page is. If it cannot be served, warns and returns null.
std::unique_ptr<PageServer> ServePages(const Endpoint& place, const std::string& token,
                                       PageServer::Audience audience, StatusPages::Source source);

}  // namespace hlaunch
