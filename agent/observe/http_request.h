// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Longer requests are refused; a scraper's has some 300 bytes.
inline constexpr size_t kMaxHttpRequest = 8 << 10;

// What has come of a request so far. A value.
struct HttpRequest {
  int status = 0;     // 0: more must come; 200: `path` is asked for; else refuse with this.
  bool head = false;  // HEAD: the same answer without its body.
  std::string path;   // Without what follows '?'.
};

// Reads the head of an HTTP/1.x request; bodies are not served. Pure; of anybody's bytes.
HttpRequest ReadHttpRequest(absl::string_view bytes);

// A whole response, after which the connection is closed. Pure.
std::string HttpResponse(int status, absl::string_view type, absl::string_view body, bool head);

}  // namespace hlaunch
