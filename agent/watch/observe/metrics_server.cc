// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/metrics_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/terminal_text.h"

namespace hlaunch {
namespace {

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

HttpAnswer OkUnless(const std::string& why) {
  return {why.empty() ? 200 : 503, "text/plain",
          absl::StrCat(why.empty() ? "ok" : TerminalText(why), "\n")};
}

HttpAnswer Answer(const MetricsServer::Answers& answers, const HttpQuestion& request) {
  if (request.path == "/metrics") return {200, kMetricsType, answers.metrics()};
  if (request.path == "/healthz") return OkUnless(answers.unhealthy ? answers.unhealthy() : "");
  if (request.path == "/readyz") return OkUnless(answers.not_ready());
  return {404, "text/plain", "/metrics, /healthz and /readyz are here\n"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(asio::io_context& loop,
                                                                    const std::string& address,
                                                                    uint16_t port,
                                                                    Answers answers) {
  HLAUNCH_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpServer> server,
      HttpServer::Start(loop, "metrics", address, port,
                        [answers = std::move(answers)](const HttpQuestion& request) {
                          return Answer(answers, request);
                        }));
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(server)));
}

MetricsServer::MetricsServer(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}

}  // namespace hlaunch
