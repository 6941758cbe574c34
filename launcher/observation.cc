// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/observation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "rendezvous/route.h"

namespace hlaunch {

Observation::Observation(asio::io_context& loop, const OutputRelay& relay, const Options& options,
                         const std::string& directory, const std::string& job_id,
                         const std::string& host)
    : metrics_(job_id, host) {
  if (!directory.empty()) StartLog(directory + "/events.jsonl", {job_id, host, -1});
  if (options.metrics_port) StartServer(loop, relay, options);
}

void Observation::StartLog(const std::string& path, EventSource source) {
  auto log = EventLog::Open(path, std::move(source));
  if (log.ok()) {
    log_ = std::move(log).value();
  } else {
    LogWarning(absl::StrCat(log.status().message(), "; the job goes on without"));
  }
}

void Observation::StartServer(asio::io_context& loop, const OutputRelay& relay,
                              const Options& options) {
  auto server = MetricsServer::Start(
      loop, options.metrics_address, *options.metrics_port,
      [this, &relay] { return metrics_.Text(relay.bytes_read(), MonotonicClock().Now()); });
  if (server.ok()) {
    server_ = std::move(server).value();
    LogInfo(absl::StrCat("metrics are at http://",
                         HostPort(options.metrics_address, server_->port()), "/metrics"));
  } else {
    LogWarning(absl::StrCat(server.status().message(), "; the job goes on without"));
  }
}

void Observation::Tell(const NodeEvent& event) {
  metrics_.Count(event, MonotonicClock().Now());
  if (log_ != nullptr) log_->Write(event);
}

}  // namespace hlaunch
