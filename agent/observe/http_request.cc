// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/observe/http_request.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

using absl::string_view;

HttpRequest Refuse(int status) { return {status, false, ""}; }

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

}  // namespace

HttpRequest ReadHttpRequest(string_view bytes) {
  // A client may end lines with \n alone (RFC 9112, 2.2).
  const size_t end = std::min(bytes.find("\r\n\r\n"), bytes.find("\n\n"));
  if (end == string_view::npos) return Refuse(bytes.size() < kMaxHttpRequest ? 0 : 431);
  if (end > kMaxHttpRequest) return Refuse(431);
  const string_view line =
      absl::StripSuffix(bytes.substr(0, std::min(bytes.find('\n'), end)), "\r");
  const std::vector<string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/")) return Refuse(400);
  if (!absl::StartsWith(words[2], "HTTP/1.")) return Refuse(505);
  if (words[0] != "GET" && words[0] != "HEAD") return Refuse(405);
  if (!absl::StartsWith(words[1], "/")) return Refuse(400);
  return {200, words[0] == "HEAD", std::string(words[1].substr(0, words[1].find('?')))};
}

std::string HttpResponse(int status, string_view type, string_view body, bool head) {
  return absl::StrCat("HTTP/1.1 ", status, " ", ReasonOf(status), "\r\nContent-Type: ", type,
                      "\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\nCache-Control: no-store\r\n",
                      status == 405 ? "Allow: GET, HEAD\r\n" : "", "\r\n", head ? "" : body);
}

}  // namespace hlaunch
