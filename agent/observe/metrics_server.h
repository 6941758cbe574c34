// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/observe/http_server.h"

namespace hlaunch {

// Serves GET /metrics (Prometheus' text format), GET /healthz ("ok" as long as the loop turns, or
// 503 and what is wrong) and GET /readyz (the same, or 503 and why not), as HttpServer does.
//
// Belongs to the loop's thread; `loop` outlives it.
class MetricsServer {
 public:
  // Each is called for every request of its kind.
  struct Answers {
    std::function<std::string()> metrics;
    std::function<std::string()> not_ready;  // Why not, in a line; empty: it is.
    // What is wrong with this process, in a line; empty: nothing. Null: it never says.
    std::function<std::string()> unhealthy = nullptr;
  };

  // Listens on `address`, a literal, and `port`, or a free one for 0.
  //
  // Errors:
  //   InvalidArgument - `address` is no address.
  //   AlreadyExists - somebody listens there.
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
