// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/watch/observe/http_server.h"

namespace hlaunch {

// Serves GET /metrics (Prometheus' text format), GET /healthz ("ok" as long as the loop turns, or
// 503 and what is wrong) and GET /readyz ("ok", or 503 and why the process is not ready), as
// HttpServer does.
//
// Belongs to the loop's thread; `loop` outlives it.
class MetricsServer {
 public:
  // Each function is called for every request of its kind.
  struct Answers {
    std::function<std::string()> metrics;
    // Why the process is not ready, in one line; empty if it is.
    std::function<std::string()> not_ready;
    // What is wrong with this process, in one line; empty if nothing is. Null if it always counts
    // as healthy.
    std::function<std::string()> unhealthy = nullptr;
  };

  // Listens on `address`, a literal, and `port`; port 0 means a free one.
  //
  // Errors:
  //   InvalidArgument - `address` is not an address.
  //   AlreadyExists - another process listens there.
  //   FailedPrecondition - this host cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(asio::io_context& loop,
                                                              const std::string& address,
                                                              uint16_t port, Answers answers);
  uint16_t port() const { return server_->port(); }

 private:
  explicit MetricsServer(std::unique_ptr<HttpServer> server);
  const std::unique_ptr<HttpServer> server_;
};

}  // namespace hlaunch
