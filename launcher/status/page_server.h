// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "agent/observe/http_server.h"
#include "asio/io_context.hpp"
#include "launcher/status/status_pages.h"
#include "launcher/words/endpoint.h"

namespace hlaunch {

// Serves status pages from a thread of its own, so that no browser is in the way of a job. The
// source is called from that thread, and not any more once this is destroyed.
//
// Belongs to the thread that made it.
class PageServer {
 public:
  // At `place`, a literal, or a free port for 0. Where there is a `token`, the password that is
  // made of it is asked for; without one only this host is served.
  //
  // Errors:
  //   PermissionDenied - `place` is no loopback address, and there is no token.
  //   Internal - OpenSSL refuses.
  //   others - as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const Endpoint& place,
                                                           const std::string& token,
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
  std::thread thread_;
};

// The same, and says where the page is. What cannot be had costs a warning and is null.
std::unique_ptr<PageServer> ServePages(const Endpoint& place, const std::string& token,
                                       StatusPages::Source source);

}  // namespace hlaunch
