// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/address.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr size_t kMaxUrl = 2000;
constexpr size_t kMaxHost = 253;

bool IsPlain(string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char letter) { return absl::ascii_isgraph(letter); });
}

bool IsHostName(string_view text) {
  return !text.empty() && text.size() <= kMaxHost &&
         std::all_of(text.begin(), text.end(), [](char letter) {
           return absl::ascii_isalnum(letter) || letter == '-' || letter == '.' || letter == '_';
         });
}

// "host", "host:port", "[address]:port".
bool TakeAuthority(string_view text, EventUrl& url) {
  string_view port;
  const bool bracketed = absl::ConsumePrefix(&text, "[");
  const size_t end = text.find(bracketed ? ']' : ':');
  if (bracketed && end == string_view::npos) return false;
  if (end != string_view::npos) {
    port = text.substr(end + (bracketed ? 1 : 0));
    text = text.substr(0, end);
  }
  int number = url.port;
  if (!port.empty()) {
    if (!absl::ConsumePrefix(&port, ":") || !absl::SimpleAtoi(port, &number)) return false;
  }
  if (number < 1 || number > 65535) return false;
  url.host = std::string(text);
  url.port = static_cast<uint16_t>(number);
  return bracketed ? IsAddressLiteral(url.host) : IsHostName(text);
}

}  // namespace

absl::StatusOr<EventUrl> ParseEventUrl(string_view text) {
  if (absl::StartsWith(text, "https://")) {
    return InvalidArgumentError(
        absl::StrCat("https is not spoken here; give a command that speaks it: 'curl --silent "
                     "--data-binary @- ",
                     text, "'"));
  }
  const auto wrong = [] {
    return InvalidArgumentError("expected a URL such as http://hooks.example:8080/7");
  };
  if (text.size() > kMaxUrl || !IsPlain(text) || !absl::ConsumePrefix(&text, "http://")) {
    return wrong();
  }
  const size_t end = std::min(text.find_first_of("/?#"), text.size());
  EventUrl url;
  const string_view target = text.substr(end, text.find('#') - end);
  if (!target.empty()) url.target = absl::StrCat(target[0] == '/' ? "" : "/", target);
  if (absl::StrContains(text.substr(0, end), "@")) {
    return InvalidArgumentError(
        "a password in a URL is seen by all users of the host; give a command that knows it");
  }
  if (!TakeAuthority(text.substr(0, end), url)) return wrong();
  return url;
}

std::string PostOfEvent(const EventUrl& url, string_view event) {
  const std::string host =
      url.port == 80 && !absl::StrContains(url.host, ":") ? url.host : HostPort(url.host, url.port);
  return absl::StrCat("POST ", url.target, " HTTP/1.1\r\nHost: ", host,
                      "\r\nUser-Agent: hlaunch\r\nContent-Type: application/json\r\n"
                      "Content-Length: ",
                      event.size(), "\r\nConnection: close\r\n\r\n", event);
}

string_view WithoutInterim(string_view answer) {
  constexpr size_t kCodeAt = 9;  // Behind "HTTP/1.1 ".
  constexpr string_view kEnd = "\r\n\r\n";
  while (absl::StartsWith(answer, "HTTP/1.") && answer.size() > kCodeAt && answer[kCodeAt] == '1') {
    const size_t end = answer.find(kEnd);
    if (end == string_view::npos) return {};
    answer.remove_prefix(end + kEnd.size());
  }
  return answer;
}

absl::Status ReadPostAnswer(string_view answer) {
  answer = WithoutInterim(answer);
  int code = 0;
  const size_t space = answer.find(' ');
  if (!absl::StartsWith(answer, "HTTP/1.") || space == string_view::npos ||
      !absl::SimpleAtoi(answer.substr(space + 1, 3), &code) || code < 200 || code > 599) {
    return absl::UnavailableError(answer.empty() ? "it closed the connection without an answer"
                                                 : "its answer is no HTTP");
  }
  if (code < 300) return absl::OkStatus();
  if (code < 400) {
    return absl::FailedPreconditionError(
        absl::StrCat("it answered ", code, ", somewhere else, which is not followed"));
  }
  const std::string said = absl::StrCat("it answered ", code);
  const bool later = code >= 500 || code == 408 || code == 429;
  return later ? absl::UnavailableError(said) : absl::FailedPreconditionError(said);
}

}  // namespace hlaunch
