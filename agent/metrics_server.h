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

// Serves GET /metrics (Prometheus' text format) and GET /healthz ("ok" as long as the loop turns)
// over HTTP/1.1, one request per connection. At most 16 connections at a time, each for 5 s.
//
// Belongs to the loop's thread; `loop` outlives it.
class MetricsServer {
 public:
  // Listens on `address`, a literal, and `port`, or a free one for 0. `text` is called for every
  // scrape.
  //
  // Errors:
  //   InvalidArgument - `address` is no address.
  //   AlreadyExists - somebody listens there.
  //   FailedPrecondition - this host cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(asio::io_context& loop,
                                                              const std::string& address,
                                                              uint16_t port,
                                                              std::function<std::string()> text);
  ~MetricsServer();

  uint16_t port() const;

 private:
  class Impl;
  explicit MetricsServer(std::shared_ptr<Impl> impl);
  // Owned by this object and by handlers that the loop has yet to call.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace hlaunch
