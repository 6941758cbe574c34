// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// How other ranks reach a rank. A value; the store has it as one line of text.
struct RankAddress {
  std::string token;       // The key of greetings is made from it if the round has no secret.
  std::string local_name;  // The abstract unix socket, which other hosts cannot reach.
  std::string address;     // An IP literal.
  uint16_t port = 0;
  std::string host;  // The host's name, for messages.
};
inline constexpr size_t kTokenSize = 32;

std::string ToText(const RankAddress& address);
// Errors: InvalidArgument - `text` is not the address of a rank.
absl::StatusOr<RankAddress> ParseRankAddress(absl::string_view text);

}  // namespace hlaunch
