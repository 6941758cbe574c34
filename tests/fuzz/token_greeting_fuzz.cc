// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any bytes in place of a greeting's three messages, in any pieces. Nothing that was made without
// the token proves anything, and the errors are printable. Never a crash.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/net/trust/token_greeting.h"

namespace hlaunch {
namespace {

const Trust& Holder() {
  static const Trust holder = Trust::OfTokenInClear("0123456789abcdef0123456789abcdef").value();
  return holder;
}

const std::string& Nonce() {
  static const std::string nonce = NewNonce();  // No author of seeds knows it.
  return nonce;
}

// Bytes that follow must not change the decision.
void CheckHello(absl::string_view bytes) {
  const TokenHello hello = ReadHello(bytes);
  if (hello.kind == TokenHello::Kind::kMore) {
    HLAUNCH_CHECK(hello.size > bytes.size() && hello.size <= kMostHelloBytes);
    return;
  }
  if (hello.kind == TokenHello::Kind::kNone) {
    HLAUNCH_CHECK(ReadHello(absl::StrCat(bytes, "x")).kind == TokenHello::Kind::kNone);
    return;
  }
  HLAUNCH_CHECK(hello.size <= bytes.size() && hello.size <= kMostHelloBytes);
  const absl::string_view own = bytes.substr(0, hello.size);
  const TokenHello again = ReadHello(own);
  HLAUNCH_CHECK(again.kind == TokenHello::Kind::kWhole && again.size == hello.size);
  HLAUNCH_CHECK(again.server_name == hello.server_name && again.job_id == hello.job_id);
  const ServerGreeting server(Holder(), own, Nonce());
  HLAUNCH_CHECK(server.answer().size() == kAnswerBytes && server.job_id() == hello.job_id);
  HLAUNCH_CHECK(!server.IsProof(bytes.substr(hello.size)));
  HLAUNCH_CHECK(!server.IsProof(bytes.substr(hello.size, kProofBytes)));
}

void CheckAnswer(absl::string_view bytes) {
  const ClientGreeting client(Holder(), Nonce());
  const absl::StatusOr<std::string> proof = client.Prove(bytes);
  if (proof.ok()) {
    HLAUNCH_CHECK(proof->empty() && bytes.size() < kAnswerBytes);
    return;
  }
  const absl::string_view said = proof.status().message();
  HLAUNCH_CHECK(!said.empty() && std::all_of(said.begin(), said.end(), absl::ascii_isprint));
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckHello(bytes);
  hlaunch::CheckAnswer(bytes);
  // The bytes after a message's head get past the check of the head.
  for (const char* head : {"hlaunch\x01", "hlaunch\x02", "hlaunch\x04", "hlaunch\x05"}) {
    const std::string message = absl::StrCat(head, bytes);
    hlaunch::CheckHello(message);
    hlaunch::CheckAnswer(message);
  }
  return 0;
}
