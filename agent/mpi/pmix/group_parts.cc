// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/group_parts.h"

#include <cstddef>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kDigits = 16;  // For each of the two numbers before the data.

absl::StatusOr<uint64_t> TakeNumber(absl::string_view& text) {
  uint64_t number = 0;
  if (text.size() < kDigits || !absl::SimpleHexAtoi(text.substr(0, kDigits), &number)) {
    return absl::InvalidArgumentError("what the nodes say of a group is damaged");
  }
  text.remove_prefix(kDigits);
  return number;
}

}  // namespace

std::string GroupPart(uint32_t number, absl::string_view data) {
  return absl::StrCat(absl::Hex(number, absl::kZeroPad16), absl::Hex(data.size(), absl::kZeroPad16),
                      data);
}

absl::StatusOr<GroupAnswer> JoinGroupParts(absl::string_view parts) {
  GroupAnswer answer;
  while (!parts.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(const uint64_t number, TakeNumber(parts));
    HLAUNCH_ASSIGN_OR_RETURN(const uint64_t size, TakeNumber(parts));
    if (size > parts.size() || number > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError("what the nodes say of a group is damaged");
    }
    if (number != 0) answer.number = static_cast<uint32_t>(number);
    absl::StrAppend(&answer.data, parts.substr(0, size));
    parts.remove_prefix(size);
  }
  if (answer.number != 0) return answer;
  return absl::InvalidArgumentError("no node gives the group a number");
}

uint32_t GroupNumber(uint64_t count, int node, int num_nodes) {
  constexpr uint64_t kLargest = std::numeric_limits<uint32_t>::max();
  const auto nodes = static_cast<uint64_t>(num_nodes), own = static_cast<uint64_t>(node);
  if (count >= kLargest / 2 / nodes) return 0;
  return static_cast<uint32_t>(kLargest - count * nodes - own);
}

}  // namespace hlaunch
