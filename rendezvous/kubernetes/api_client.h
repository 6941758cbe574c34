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
#include "rendezvous/kubernetes/https_connection.h"

namespace hlaunch {

// An API server of Kubernetes, and who asks it. A value.
struct ApiServer {
  std::string host;  // A name or a literal without brackets.
  uint16_t port = 443;
  bool tls = true;
  // Both are read whenever they are needed: tokens of pods turn over each hour.
  std::string authority_file;  // Whose certificates are believed.
  std::string token_file;      // Empty: no token; a proxy adds one.
};

// For people: "Kubernetes at 10.96.0.1:443".
std::string Words(const ApiServer& server);

// Calls an API server until it answers.
//
// Thread-safe. Tokens are in no message.
class ApiClient {
 public:
  struct Request {
    std::string method, path, query, body;
  };
  struct Answer {
    int status = 0;  // 200 and 201, or what the caller knows better about: 404, 409, 410.
    std::string body;
  };

  explicit ApiClient(ApiServer server);

  // Asks until there is an answer, or until `deadline`; later where the server says so (429). A try
  // without an answer may have been done all the same, so a request must bear to be made again;
  // `unanswered` counts these.
  //
  // Errors, which name the server:
  //   Unavailable - there was no answer in time.
  //   PermissionDenied - it refuses this user; the message names the rule that is missing.
  //   InvalidArgument - it takes no such object; one that is too large, say.
  //   others - a file cannot be read.
  absl::StatusOr<Answer> Call(const Request& request, Instant deadline, int* unanswered = nullptr);

  const std::string& words() const { return words_; }

 private:
  absl::StatusOr<HttpResponse> TryOnce(const Request& request, Instant deadline, int* unanswered);
  absl::StatusOr<std::unique_ptr<HttpsConnection>> Connect(Instant deadline);
  std::unique_ptr<HttpsConnection> TakeIdle();
  void KeepIdle(std::unique_ptr<HttpsConnection> connection);
  absl::Status InWords(const Request& request, const HttpResponse& response) const;

  const ApiServer server_;
  const std::string words_;
  Mutex mu_;
  size_t turns_ ABSL_GUARDED_BY(mu_) = 0;  // Connections so far: an address each in turn.
  std::vector<std::unique_ptr<HttpsConnection>> idle_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
