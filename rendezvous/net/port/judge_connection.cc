// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/judge_connection.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rendezvous/net/trust/token_greeting.h"

namespace hlaunch {
namespace {

using Kind = FirstWords::Kind;
using To = ConnectionVerdict::To;

constexpr char kAccessDeniedAlert = 49;
constexpr char kUnrecognizedNameAlert = 112;
constexpr char kCertificateRequiredAlert = 116;

// The answer to a client of HTTP/2 in clear. It is HTTP/1.1 (RFC 9110, 15.5.2), because gRPC takes
// a GOAWAY, which is how HTTP/2 refuses, as a reason to connect again at once.
constexpr char kTokenDemanded[] =
    "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
    "hlaunch's rendezvous demands a token or a certificate here\n";

// Returns the record of a fatal alert (RFC 8446, 5.1 and 6.2).
std::string TlsRefusal(char alert) {
  constexpr char kFatalAlert[] = "\x15\x03\x03\0\x02\x02";
  return std::string(kFatalAlert, sizeof kFatalAlert - 1) + alert;
}

ConnectionVerdict JudgeTls(const std::string& asked, const PortRule& rule) {
  const bool has_token = absl::EndsWith(asked, ".hlaunch");
  if (rule.server_name.empty()) {
    return {To::kNobody, TlsRefusal(kAccessDeniedAlert),
            has_token ? "it has a token and there is none here"
                      : "it has certificates and there are none here"};
  }
  if (rule.server_name == kAnyServerName && has_token) {
    return {To::kNobody, TlsRefusal(kCertificateRequiredAlert),
            "it has a token and certificates are demanded here"};
  }
  if (rule.server_name == kAnyServerName) return {To::kGrpc, "", ""};
  return {To::kNobody, TlsRefusal(kUnrecognizedNameAlert),
          has_token       ? "it did not prove that it holds the token, or it is another version of "
                            "hlaunch"
          : asked.empty() ? "it is not hlaunch"
                          : "it has no token, but certificates, or it is not hlaunch"};
}

ConnectionVerdict Refuse(GreetingRefusal why, const char* reason) {
  return {To::kNobody, RefusalOfHello(why), reason};
}

ConnectionVerdict JudgeGreeting(const FirstWords& words, const PortRule& rule) {
  if (rule.server_name.empty()) {
    return Refuse(GreetingRefusal::kNoToken, "it has a token and there is none here");
  }
  if (rule.server_name == kAnyServerName) {
    return Refuse(GreetingRefusal::kCertificates,
                  "it has a token and certificates are demanded here");
  }
  if (words.server_name != rule.server_name) {
    return Refuse(GreetingRefusal::kOtherToken, "it has another token");
  }
  if (words.encrypts == !rule.in_clear) return {To::kGreeted, "", ""};
  if (words.encrypts) {
    return Refuse(GreetingRefusal::kInClear,
                  "it encrypts (--tls on) and here is --tls off; give all nodes the same --tls");
  }
  return Refuse(GreetingRefusal::kEncrypts,
                "it has --tls off and this rendezvous encrypts (--tls on); give all nodes the same "
                "--tls");
}

}  // namespace

ConnectionVerdict JudgeConnection(const FirstWords& words, const PortRule& rule) {
  switch (words.kind) {
    case Kind::kTls:
      return JudgeTls(words.server_name, rule);
    case Kind::kGreeting:
      return JudgeGreeting(words, rule);
    case Kind::kHttp2:
      if (rule.server_name.empty()) return {To::kGrpc, "", ""};
      return {To::kNobody, kTokenDemanded,
              rule.server_name == kAnyServerName ? "it has no certificate" : "it has no token"};
    case Kind::kMore:
      return {To::kNobody, "", "its first message was incomplete"};
    case Kind::kNone:
    case Kind::kOther:
      break;
  }
  if (rule.takes_c10d) return {To::kC10d, "", ""};
  return {To::kNobody, "",
          words.kind == Kind::kNone ? "it said nothing" : "it does not speak gRPC"};
}

}  // namespace hlaunch
