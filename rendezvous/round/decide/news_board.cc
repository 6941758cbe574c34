// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/news_board.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr size_t kRemembered = 16;

}  // namespace

void NewsBoard::Say(std::string text) {
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  latest_.push_back({++last_, std::move(text)});
  if (latest_.size() > kMaxNews) latest_.erase(latest_.begin());
}

bool NewsBoard::SayRefused(const NodeInfo& info, const absl::Status& why, Instant t) {
  const std::string host = info.host.substr(0, kMaxNameBytes);
  const std::string address =
      info.seen_address.empty() ? "" : absl::StrCat(" (", info.seen_address, ")");
  const std::string whole = absl::StrCat(host, address, " was refused: ", why.message());
  last_refusal_ = whole.substr(0, kMaxTextBytes);
  const bool known = refusals_.contains(whole) || refusals_.size() < kRemembered;
  const std::string line = refusals_[known ? whole : ""].Admit(whole, t);
  if (line.empty()) return false;
  Say(line);
  return true;
}

}  // namespace hlaunch
