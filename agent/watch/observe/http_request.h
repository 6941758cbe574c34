// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Longer requests are refused; a scraper's request has about 300 bytes.
inline constexpr size_t kMaxHttpRequest = 8 << 10;

// What has been read of a request so far. A value.
struct HttpQuestion {
  int status = 0;  // 0 if the request is not complete; 200 if it asks for `path`; any other status
                   // refuses it.
  bool head = false;  // HEAD: the answer is sent without its body.
  std::string path;   // Without '?' and what follows it.
  // Headers that matter for a page in a browser; empty if missing.
  std::string host = {}, origin = {}, authorization = {};
};

// The answer to a request. A value.
struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain";
  std::string body;
  std::vector<std::string> headers = {};  // Additional headers, such as "Allow: GET".
};

// Reads the head of an HTTP/1.x request; bodies are not supported. A request that repeats one of
// the headers read here is refused. Pure; the bytes may come from anybody.
HttpQuestion ReadHttpRequest(absl::string_view bytes);

// A complete response, after which the connection is closed. Pure.
std::string HttpReply(const HttpAnswer& answer, bool head);
std::string HttpReply(int status, absl::string_view type, absl::string_view body, bool head);

}  // namespace hlaunch
