// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Both ends of a greeting take any bytes in any pieces. Neither believes them, reads beyond the
// greeting or gives more than one answer. A text in the store is a rank's address or an error of
// one line.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "comm/connection/greeting.h"
#include "comm/connection/rank_address.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Feeds `bytes` in pieces; returns the final state.
template <typename End>
GreetingState Feed(End& end, absl::string_view bytes, size_t piece, size_t most) {
  GreetingState state = GreetingState::kOpen;
  size_t said = 0;
  while (state == GreetingState::kOpen && !bytes.empty()) {
    HLAUNCH_CHECK(end.wanted() > 0);
    const absl::string_view part = bytes.substr(0, std::min(piece, end.wanted()));
    bytes.remove_prefix(part.size());
    std::string reply;
    state = end.Receive(part, &reply);
    said += reply.size();
  }
  HLAUNCH_CHECK(said <= most);
  HLAUNCH_CHECK(state != GreetingState::kProven);
  if (state == GreetingState::kRefused) HLAUNCH_CHECK(!Describe(end.reason()).empty());
  return state;
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlaunch;
  if (size < 2) return 0;
  absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t piece = data[0] % 64 + 1;
  const GreetingKey key = DeriveGreetingKey("secret", "group");
  if (data[0] >= 128) {
    DialingGreeting dialer(key, MakeHello(1, 0, 2, 3, true, "host"));
    Feed(dialer, bytes, piece, AcceptingGreeting::kProofSize);
  } else {
    AcceptingGreeting acceptor(key, MakeHello(0, 0, 2, 3, true, "host"));
    Feed(acceptor, bytes, piece, DialingGreeting::kAnswerSize + 1);
    if (acceptor.has_hello()) HLAUNCH_CHECK(HostOf(acceptor.hello()).size() <= 64);
  }
  if (const auto address = ParseRankAddress(bytes); address.ok()) {
    HLAUNCH_CHECK(ParseRankAddress(ToText(*address)).ok());
  }
  if (const auto secret = ParseSecret(bytes); secret.ok()) {
    HLAUNCH_CHECK(secret->empty() || secret->size() == kSecretSize);
  }
  return 0;
}
