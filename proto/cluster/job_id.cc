// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/job_id.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kBegin = "hlaunch-";

}  // namespace

std::string ClusterJobId(uint64_t number) { return absl::StrCat(kBegin, number); }

std::optional<uint64_t> ClusterJobNumber(absl::string_view id) {
  uint64_t number = 0;
  absl::string_view digits = id;
  const bool read = absl::ConsumePrefix(&digits, kBegin) && absl::SimpleAtoi(digits, &number);
  // Only what ClusterJobId makes is valid: no sign, no blank, no leading zero.
  if (!read || number == 0 || ClusterJobId(number) != id) return std::nullopt;
  return number;
}

}  // namespace hlaunch
