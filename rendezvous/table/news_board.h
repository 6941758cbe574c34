// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/limits.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What all nodes of a job are to hear at once about one of them: the latest few lines. It is not
// kept over a restart of the rendezvous.
//
// A value that belongs to the thread of its RoundTable.
class NewsBoard {
 public:
  // Adds a line, cut to kMaxTextBytes.
  void Say(std::string text);

  // The oldest first; at most kMaxNews.
  const std::vector<News>& latest() const { return latest_; }

 private:
  std::vector<News> latest_;
  uint64_t last_ = 0;
};

}  // namespace hlaunch
