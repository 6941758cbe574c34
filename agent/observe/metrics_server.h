// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Serves GET /metrics (Prometheus' text format), GET /healthz ("ok" as long as the loop turns, or
// 503 and what is wrong) and GET /readyz (the same, or 503 and why not) over HTTP/1.1, one request
// per connection. At most 64 connections at a time: the next one drops another, of the address that
// has most of them, so that a probe is answered whoever else connects. Each has 5 s for its request
// and the answer.
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
  ~MetricsServer();

  uint16_t port() const;

 private:
  class Impl;
  explicit MetricsServer(std::shared_ptr<Impl> impl);
  // Owned by this object and by handlers that the loop has yet to call.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
