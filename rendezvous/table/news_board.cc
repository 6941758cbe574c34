// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/table/news_board.h"

#include <utility>

namespace hlaunch {
void NewsBoard::Say(std::string text) {
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  latest_.push_back({++last_, std::move(text)});
  if (latest_.size() > kMaxNews) latest_.erase(latest_.begin());
}

}  // namespace hlaunch
