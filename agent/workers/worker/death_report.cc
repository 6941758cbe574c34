// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/death_report.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {

std::string EncodeDeathReport(const DeathReport& death_report) {
  std::vector<std::string> parts = {absl::StrCat(death_report.argv.size())};
  parts.insert(parts.end(), death_report.argv.begin(), death_report.argv.end());
  parts.insert(parts.end(), death_report.env.begin(), death_report.env.end());
  return absl::StrJoin(parts, absl::string_view("\0", 1));
}

std::optional<DeathReport> DecodeDeathReport(absl::string_view message) {
  const std::vector<std::string> parts = absl::StrSplit(message, '\0');
  size_t argc = 0;
  if (!absl::SimpleAtoi(parts[0], &argc) || argc == 0 || argc >= parts.size()) return std::nullopt;
  const auto argv_end = parts.begin() + 1 + static_cast<std::ptrdiff_t>(argc);
  return DeathReport{{parts.begin() + 1, argv_end}, {argv_end, parts.end()}};
}

}  // namespace hlaunch
