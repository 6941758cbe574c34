// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Messages of a stranger to the head of a cluster. A join token is whole, or is refused in a line
// that shows nothing of it. A request for a certificate gives a P-256 key and no name, or nothing.
// A question is answered or refused. A kept state is read or refused. Never a crash.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/cluster/membership/join_registrar.h"
#include "rendezvous/cluster/membership/join_token.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {
namespace {

constexpr std::time_t kNow = 1800000000;

const Authority& OurAuthority() {
  static const Authority authority = *MakeAuthority(kNow);
  return authority;
}

void CheckToken(absl::string_view text) {
  const absl::StatusOr<JoinToken> read = ReadJoinToken(text);
  if (read.ok()) {
    HLAUNCH_CHECK(TextOf(*read) == text);
    return;
  }
  static const std::string said(ReadJoinToken("").status().message());
  HLAUNCH_CHECK(read.status().message() == said);
}

void CheckRequest(const std::string& pem) {
  const absl::StatusOr<std::string> made =
      SignHostRequest(OurAuthority(), pem, "node1", kNow, kNow + 60);
  if (!made.ok()) {
    HLAUNCH_CHECK(absl::IsInvalidArgument(made.status()));
    return;
  }
  const absl::StatusOr<CertifiedHost> host = ReadHostCertificate(*made);
  HLAUNCH_CHECK(host.ok() && host->host == "node1" && host->issued == kNow);
}

void CheckCertificate(const std::string& pem) {
  const absl::StatusOr<CertifiedHost> host = ReadHostCertificate(pem);
  HLAUNCH_CHECK(host.ok() || absl::IsInvalidArgument(host.status()));
  HLAUNCH_CHECK(!CheckHostIdentity({OurAuthority().certificate, pem, ""}).ok());
}

// Reads the text as a question at a registrar and as a kept registrar.
void CheckJson(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> json = ParseObject(text);
  if (!json.ok()) return;
  if (const auto question = ReadJoinQuestion(*json); question.ok()) {
    JoinRegistrar registrar(OurAuthority());
    HLAUNCH_CHECK(!registrar.Join(*question, "192.0.2.1", false, kNow).ok());
  }
  auto registrar = JoinRegistrar::FromJson(OurAuthority(), *json);
  if (!registrar.ok()) return;
  registrar->MakeToken(kNow);
  const auto again = JoinRegistrar::FromJson(OurAuthority(), registrar->ToJson());
  HLAUNCH_CHECK(again.ok() && again->ToJson() == registrar->ToJson());
}

std::string Pem(absl::string_view kind, absl::string_view der) {
  std::string lines;
  for (size_t at = 0; at < der.size(); at += 48) {
    absl::StrAppend(&lines, absl::Base64Escape(der.substr(at, 48)), "\n");
  }
  return absl::StrCat("-----BEGIN ", kind, "-----\n", lines, "-----END ", kind, "-----\n");
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckToken(text);
  hlaunch::CheckRequest(std::string(text));
  hlaunch::CheckCertificate(std::string(text));
  hlaunch::CheckJson(text);
  // The bytes as the content get past the check of the text.
  hlaunch::CheckRequest(hlaunch::Pem("CERTIFICATE REQUEST", text));
  hlaunch::CheckCertificate(hlaunch::Pem("CERTIFICATE", text));
  return 0;
}
