// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/page_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/trust/page_password.h"

namespace hlaunch {

PageServer::PageServer(PageRules rules, StatusPages::Source source)
    : pages_(std::move(rules), std::move(source)) {}

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const Endpoint& place,
                                                              const std::string& token,
                                                              Audience audience,
                                                              StatusPages::Source source) {
  if (token.empty() && !IsLoopbackLiteral(place.host)) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot serve the status page at ", HostPort(place),
                     ": without a token it is for this host alone; hlaunch token makes one"));
  }
  PageRules rules = {{HostName()}, token.empty() ? "" : PagePassword(token)};
  if (!token.empty() && rules.password.empty()) {
    return absl::InternalError("cannot serve the status page: OpenSSL makes no password");
  }
  std::unique_ptr<PageServer> served(new PageServer(std::move(rules), std::move(source)));
  PageServer* const raw = served.get();
  HLAUNCH_ASSIGN_OR_RETURN(
      served->server_,
      HttpServer::Start(
          raw->loop_, "the status page", place.host, place.port,
          [raw](const HttpQuestion& question) {
            return raw->pages_.Answer(question, MonotonicClock().Now(), WallMillis());
          },
          token.empty() && audience == Audience::kOwnUser ? HttpServer::Visitors::kOwnUser
                                                          : HttpServer::Visitors::kAll));
  absl::StatusOr<Thread> thread = Thread::Start("status page", [raw] { raw->loop_.run(); });
  if (!thread.ok()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot serve the status page: cannot start a thread: ", thread.status().message()));
  }
  served->thread_ = *std::move(thread);
  return served;
}

PageServer::~PageServer() {
  loop_.stop();
  thread_.Join();
}

std::unique_ptr<PageServer> ServePages(const Endpoint& place, const std::string& token,
                                       PageServer::Audience audience, StatusPages::Source source) {
  auto started = PageServer::Start(place, token, audience, std::move(source));
  if (!started.ok()) {
    LogWarning(absl::StrCat(started.status().message(), "; it goes on without"));
    return nullptr;
  }
  LogInfo(absl::StrCat("the status page is at http://", HostPort(place.host, (*started)->port()),
                       "/", token.empty() ? "" : "; its password: hlaunch token --for-page"));
  return std::move(started).value();
}

}  // namespace hlaunch
