// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/kubernetes/api_client.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/address.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "rendezvous/failover/kubernetes/api_objects.h"
#include "rendezvous/net/socket/lookup.h"
#include "rendezvous/net/socket/plain_trouble.h"

namespace hlaunch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kShortAttempt = milliseconds(500);
constexpr Duration kLongAttempt = seconds(3);
constexpr Duration kFirstPause = milliseconds(50);  // Between two attempts; doubles.
constexpr Duration kLastPause = milliseconds(500);
constexpr Duration kNamePatience = seconds(1);  // For the name lookup.
constexpr size_t kMostIdle = 4;
constexpr size_t kMostFileBytes = size_t{1} << 20;
constexpr size_t kMostWords = 500;  // Characters shown of a server's message.

absl::StatusOr<std::string> ReadFile(const std::string& path, absl::string_view what) {
  absl::StatusOr<std::string> content = ReadWholeFile(path, kMostFileBytes);
  if (content.ok() && !content->empty()) return content;
  const absl::string_view why = content.ok() ? "it is empty" : content.status().message();
  return absl::FailedPreconditionError(absl::StrCat("cannot read ", path, ", ", what, ": ", why));
}

// Returns true if the same request may succeed later.
bool MayPass(int status) { return status == 429 || status == 408 || status >= 500; }

bool IsForTheCaller(int status) {
  return status == 200 || status == 201 || status == 404 || status == 409 || status == 410;
}

Duration PauseFor(const HttpResponse& response, Duration pause) {
  int64_t asked = 0;
  if (!absl::SimpleAtoi(response.retry_after, &asked) || asked < 0) return pause;
  return std::max<Duration>(pause, seconds(std::min<int64_t>(asked, 3600)));
}

// Returns the rule of a Role that the path "/api/v1/namespaces/NS/configmaps/NAME" needs.
std::string RuleFor(const ApiClient::Request& request) {
  const std::vector<std::string> parts = absl::StrSplit(request.path, '/');
  const bool core = parts.size() > 1 && parts[1] == "api";
  const size_t resource = core ? 5 : 6;
  if (parts.size() <= resource) return "";
  const bool all = parts.size() == resource + 1;
  const std::string verb = request.method == "POST"     ? "create"
                           : request.method == "PUT"    ? "update"
                           : request.method == "DELETE" ? "delete"
                           : all                        ? "list"
                                                        : "get";
  return absl::StrCat("its Role in namespace ", parts[resource - 1],
                      " lacks the rule {apiGroups: [\"", core ? "" : parts[2], "\"], resources: [",
                      parts[resource], "], verbs: [", verb, "]}");
}

// An attempt that hangs leaves time for another one.
Instant EndOfAttempt(Instant deadline) {
  const Instant now = Now();
  return std::min(deadline, now + std::clamp((deadline - now) / 2, kShortAttempt, kLongAttempt));
}

}  // namespace

std::string Words(const ApiServer& server) {
  return absl::StrCat("Kubernetes at ", HostPort(server.host, server.port));
}

ApiClient::ApiClient(ApiServer server) : server_(std::move(server)), words_(Words(server_)) {}

absl::StatusOr<ApiClient::Answer> ApiClient::Call(const Request& request, Instant deadline,
                                                  int* unanswered) {
  CallTrouble trouble;
  Duration pause = kFirstPause;
  while (Now() < deadline) {
    Duration wait = pause;
    const Instant end = EndOfAttempt(deadline);
    const auto response = TryOnce(request, end, unanswered);
    if (response.ok() && IsForTheCaller(response->status)) {
      return Answer{response->status, response->body};
    }
    const absl::Status told = response.ok() ? InWords(request, *response) : response.status();
    if (!absl::IsUnavailable(told)) {
      return absl::Status(told.code(), absl::StrCat(words_, ": ", told.message()));
    }
    if (response.ok()) {
      // A server that gave up at its own time-out may still carry out the request.
      if (response->status != 429 && unanswered != nullptr) ++*unanswered;
      wait = PauseFor(*response, pause);
    }
    trouble.Learn(std::string(told.message()), /*late=*/!response.ok() && Now() >= end);
    std::this_thread::sleep_for(std::clamp(deadline - Now(), Duration::zero(), wait));
    pause = std::min(2 * pause, kLastPause);
  }
  return absl::UnavailableError(absl::StrCat(words_, ": ", trouble.Words()));
}

absl::StatusOr<HttpResponse> ApiClient::TryOnce(const Request& request, Instant deadline,
                                                int* unanswered) {
  HttpRequest http = {request.method, request.path + request.query, "", request.body};
  if (!server_.token_file.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::string token,
                             ReadFile(server_.token_file, "the service account's token"));
    http.token = std::string(absl::StripAsciiWhitespace(token));
  }
  while (true) {
    std::unique_ptr<HttpsConnection> connection = TakeIdle();
    const bool idle = connection != nullptr;
    if (!idle) {
      HLAUNCH_ASSIGN_OR_RETURN(connection, Connect(deadline));
    }
    auto response = connection->Ask(http, deadline);
    if (response.ok()) {
      KeepIdle(std::move(connection));
      return response;
    }
    if (unanswered != nullptr) ++*unanswered;
    if (!idle || Now() >= deadline) return response;  // A server closes long-idle connections.
  }
}

absl::StatusOr<std::unique_ptr<HttpsConnection>> ApiClient::Connect(Instant deadline) {
  const auto found = Lookup::Start(server_.host)->Await(std::min(deadline, Now() + kNamePatience));
  if (!found.has_value() || !found->ok() || (*found)->empty()) {
    return absl::UnavailableError(absl::StrCat("cannot resolve '", server_.host, "'"));
  }
  HttpsPeer peer;
  {
    MutexLock lock(&mu_);
    peer.literal = (**found)[turns_++ % (*found)->size()];
  }
  peer.port = server_.port;
  peer.host = server_.host;
  if (server_.tls) {
    HLAUNCH_ASSIGN_OR_RETURN(peer.authorities,
                             ReadFile(server_.authority_file, "whose certificates are believed"));
  }
  auto connection = HttpsConnection::Open(peer, deadline);
  if (absl::IsInvalidArgument(connection.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(server_.authority_file, ": ", connection.status().message()));
  }
  return connection;
}

std::unique_ptr<HttpsConnection> ApiClient::TakeIdle() {
  MutexLock lock(&mu_);
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void ApiClient::KeepIdle(std::unique_ptr<HttpsConnection> connection) {
  MutexLock lock(&mu_);
  if (connection->is_open() && idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
}

absl::Status ApiClient::InWords(const Request& request, const HttpResponse& response) const {
  std::string text = MessageIn(response.body).substr(0, kMostWords);
  if (text.empty()) text = absl::StrCat("HTTP status ", response.status);
  if (response.status == 429) absl::StrAppend(&text, "; it has too many requests");
  if (MayPass(response.status)) return absl::UnavailableError(text);
  if (response.status == 401) {
    return absl::PermissionDeniedError(
        absl::StrCat(text, "; it does not take the token",
                     server_.token_file.empty() ? "" : absl::StrCat(" in ", server_.token_file)));
  }
  if (response.status != 403) return absl::InvalidArgumentError(text);
  // An exhausted quota is also refused with 403.
  if (!absl::StrContains(text, " cannot ")) return absl::ResourceExhaustedError(text);
  return absl::PermissionDeniedError(absl::StrCat(text, ": ", RuleFor(request)));
}

}  // namespace hlaunch
