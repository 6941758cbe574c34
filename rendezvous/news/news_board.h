// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/rare_log.h"
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

  // The same of a node that was refused with `why`, which may be a stranger and come again and
  // again: the same line at most once in ten seconds, and so for all beyond the first few.
  // Returns whether there is a new line.
  bool SayRefused(const NodeInfo& info, const absl::Status& why, Instant t);

  // The oldest first; at most kMaxNews.
  const std::vector<News>& latest() const { return latest_; }

 private:
  std::vector<News> latest_;
  uint64_t last_ = 0;
  std::map<std::string, RareLog> refusals_;  // By line; "" for all beyond the first few.
};

}  // namespace hlaunch
