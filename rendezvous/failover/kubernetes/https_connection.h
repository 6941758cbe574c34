// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A server, and how its identity is checked. A value.
struct HttpsPeer {
  std::string literal;  // Its address.
  uint16_t port = 443;
  std::string host;  // The name or address that its certificate must have.
  // The trusted authorities, in PEM. If unset, HTTP is used without TLS.
  std::optional<std::string> authorities;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/api/v1"
  std::string token;   // The bearer token; empty if none.
  std::string body;    // JSON.
};

struct HttpResponse {
  int status = 0;           // 200
  std::string retry_after;  // The header's text.
  std::string body;
};

// One connection to an HTTP server, which takes one request after another. No answer is larger than
// kMostAnswerBytes.
//
// Not thread-safe.
class HttpsConnection {
 public:
  static constexpr size_t kMostAnswerBytes = size_t{48} << 20;

  // Errors:
  //   Unavailable - no connection before `deadline`, or the certificate is not trusted.
  //   InvalidArgument - `authorities` hold no certificate.
  static absl::StatusOr<std::unique_ptr<HttpsConnection>> Open(const HttpsPeer& peer,
                                                               Instant deadline);
  virtual ~HttpsConnection() = default;

  // Errors:
  //   Unavailable - no answer before `deadline`; the server may still have done it. The
  //       connection cannot be used any more.
  virtual absl::StatusOr<HttpResponse> Ask(const HttpRequest& request, Instant deadline) = 0;

  // Returns true if the connection takes another request.
  virtual bool is_open() const = 0;
};

}  // namespace hlaunch
