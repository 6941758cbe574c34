// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/failover/kubernetes/https_connection.h"

namespace hlaunch {

// A Kubernetes API server, and the credentials for it. A value.
struct ApiServer {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 443;
  bool tls = true;
  // Both files are read whenever they are needed: tokens of pods change every hour.
  std::string authority_file;  // The trusted authorities.
  std::string token_file;      // If empty, no token is sent; a proxy adds one.
};

// For people: "Kubernetes at 10.96.0.1:443".
std::string Words(const ApiServer& server);

// Calls an API server until it answers.
//
// Thread-safe. Tokens are in no message.
class ApiClient {
 public:
  // What most calls are given to be answered.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  struct Request {
    std::string method, path, query, body;
  };
  struct Answer {
    int status = 0;  // 200, 201, or one that the caller must judge: 404, 409, 410.
    std::string body;
  };

  explicit ApiClient(ApiServer server);

  // Repeats the request until there is an answer or until `deadline`; waits longer where the server
  // says so (Retry-After). The server may have done a try that got no answer, so the request must
  // be safe to repeat; `unanswered` counts such tries.
  //
  // Errors, which name the server:
  //   Unavailable - there was no answer in time.
  //   PermissionDenied - the server refuses this user; the message names the missing rule.
  //   InvalidArgument - the server does not accept the object; it may be too large.
  //   ResourceExhausted - a quota is used up.
  //   others - a file cannot be read.
  absl::StatusOr<Answer> Call(const Request& request, Instant deadline, int* unanswered = nullptr);

  const std::string& words() const { return words_; }

 private:
  absl::StatusOr<HttpResponse> TryOnce(const Request& request, Instant deadline, int* unanswered);
  absl::StatusOr<std::unique_ptr<HttpsConnection>> Connect(Instant deadline);
  std::unique_ptr<HttpsConnection> TakeIdle();
  void KeepIdle(std::unique_ptr<HttpsConnection> connection);
  // Unlike Call, does not name the server.
  absl::Status InWords(const Request& request, const HttpResponse& response) const;

  const ApiServer server_;
  const std::string words_;
  Mutex mu_;
  size_t turns_ ABSL_GUARDED_BY(mu_) = 0;  // Connections so far; they take the addresses in turn.
  std::vector<std::unique_ptr<HttpsConnection>> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
