// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/http_request.h"

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

HttpQuestion Refuse(int status) { return {status, false, ""}; }

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
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

// The member that holds the header `name`; null if that header is not read.
std::string* HeaderOf(string_view name, HttpQuestion& request) {
  if (absl::EqualsIgnoreCase(name, "host")) return &request.host;
  if (absl::EqualsIgnoreCase(name, "origin")) return &request.origin;
  if (absl::EqualsIgnoreCase(name, "authorization")) return &request.authorization;
  return nullptr;
}

// Reads the lines after the first. Returns false if they are invalid.
bool ReadHeaders(string_view lines, HttpQuestion& request) {
  for (const string_view line : absl::StrSplit(lines, '\n')) {
    const size_t colon = line.find(':');
    if (colon == line.npos) continue;
    std::string* header = HeaderOf(line.substr(0, colon), request);
    if (header == nullptr) continue;
    const string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
    if (value.empty() || !header->empty()) return false;
    *header = std::string(value);
  }
  return true;
}

}  // namespace

HttpQuestion ReadHttpRequest(string_view bytes) {
  // A client may end lines with \n alone (RFC 9112, 2.2).
  const size_t end = std::min(bytes.find("\r\n\r\n"), bytes.find("\n\n"));
  if (end == string_view::npos) return Refuse(bytes.size() < kMaxHttpRequest ? 0 : 431);
  if (end > kMaxHttpRequest) return Refuse(431);
  const size_t first = std::min(bytes.find('\n'), end);
  const string_view line = absl::StripSuffix(bytes.substr(0, first), "\r");
  const std::vector<string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/")) return Refuse(400);
  if (!absl::StartsWith(words[2], "HTTP/1.")) return Refuse(505);
  if (words[0] != "GET" && words[0] != "HEAD") return Refuse(405);
  if (!absl::StartsWith(words[1], "/")) return Refuse(400);
  HttpQuestion request = {200, words[0] == "HEAD",
                          std::string(words[1].substr(0, words[1].find('?')))};
  if (!ReadHeaders(bytes.substr(first, end - first), request)) return Refuse(400);
  return request;
}

std::string HttpReply(const HttpAnswer& answer, bool head) {
  std::string headers;
  for (const std::string& header : answer.headers) absl::StrAppend(&headers, header, "\r\n");
  return absl::StrCat("HTTP/1.1 ", answer.status, " ", ReasonOf(answer.status),
                      "\r\nContent-Type: ", answer.type, "\r\nContent-Length: ", answer.body.size(),
                      "\r\nConnection: close\r\nCache-Control: no-store\r\n",
                      answer.status == 405 ? "Allow: GET, HEAD\r\n" : "", headers, "\r\n",
                      head ? "" : answer.body);
}

std::string HttpReply(int status, string_view type, string_view body, bool head) {
  return HttpReply({status, std::string(type), std::string(body)}, head);
}

}  // namespace hlaunch
