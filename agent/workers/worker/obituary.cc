// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/obituary.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {

std::string EncodeObituary(const Obituary& obituary) {
  std::vector<std::string> parts = {absl::StrCat(obituary.argv.size())};
  parts.insert(parts.end(), obituary.argv.begin(), obituary.argv.end());
  parts.insert(parts.end(), obituary.env.begin(), obituary.env.end());
  return absl::StrJoin(parts, absl::string_view("\0", 1));
}

std::optional<Obituary> DecodeObituary(absl::string_view message) {
  const std::vector<std::string> parts = absl::StrSplit(message, '\0');
  size_t argc = 0;
  if (!absl::SimpleAtoi(parts[0], &argc) || argc == 0 || argc >= parts.size()) return std::nullopt;
  const auto argv_end = parts.begin() + 1 + static_cast<std::ptrdiff_t>(argc);
  return Obituary{{parts.begin() + 1, argv_end}, {argv_end, parts.end()}};
}

}  // namespace hlaunch
