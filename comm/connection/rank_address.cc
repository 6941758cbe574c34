// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/rank_address.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kPrefix = "hlaunch-comm-2";
constexpr size_t kMostText = 100;

}  // namespace

std::string ToText(const RankAddress& address) {
  return absl::StrCat(kPrefix, " ", address.token, " ", address.local_name, " ", address.address,
                      " ", address.port, " ", address.host);
}

absl::StatusOr<RankAddress> ParseRankAddress(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  uint32_t port = 0;
  if (words.size() != 6 || words[0] != kPrefix || words[1].size() != kTokenSize ||
      words[2].size() > kMostText || words[3].size() > kMostText || words[5].size() > kMostText ||
      !absl::SimpleAtoi(words[4], &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address of a rank in the store makes no sense: '", text.substr(0, 100),
                     "'; do all ranks run the same version?"));
  }
  return RankAddress{words[1], words[2], words[3], static_cast<uint16_t>(port), words[5]};
}

}  // namespace hlaunch
