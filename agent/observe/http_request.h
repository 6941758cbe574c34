// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Longer requests are refused; a scraper's has some 300 bytes.
inline constexpr size_t kMaxHttpRequest = 8 << 10;

// What has come of a request so far. A value.
struct HttpQuestion {
  int status = 0;     // 0: more must come; 200: `path` is asked for; else refuse with this.
  bool head = false;  // HEAD: the same answer without its body.
  std::string path;   // Without what follows '?'.
  // Headers that matter to a page in a browser; empty: there is none.
  std::string host = {}, origin = {}, authorization = {};
};

// What is answered. A value.
struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain";
  std::string body;
  std::vector<std::string> headers = {};  // Further ones, such as "Allow: GET".
};

// Reads the head of an HTTP/1.x request; bodies are not served. One that has a header twice which
// is read here is refused. Pure; of anybody's bytes.
HttpQuestion ReadHttpRequest(absl::string_view bytes);

// A whole response, after which the connection is closed. Pure.
std::string HttpReply(const HttpAnswer& answer, bool head);
std::string HttpReply(int status, absl::string_view type, absl::string_view body, bool head);

}  // namespace hlaunch
