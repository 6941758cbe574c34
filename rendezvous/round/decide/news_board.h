// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/base/rare_log.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The latest few lines that all nodes of a job must hear at once about one of them. They are lost
// at a restart of the rendezvous.
//
// A value that belongs to the thread of its RoundTable.
class NewsBoard {
 public:
  // Adds a line, cut to kMaxTextBytes.
  void Say(std::string text);

  // Adds a line about a node that was refused with `why`. It may be a stranger that comes again and
  // again, so the same line is added at most once in ten seconds; beyond the first few different
  // lines, all others share one such limit. Returns true if a line was added.
  bool SayRefused(const NodeInfo& info, const absl::Status& why, Instant t);

  // The latest line about a refused node; empty if none was refused.
  const std::string& last_refusal() const { return last_refusal_; }

  // The oldest first; at most kMaxNews.
  const std::vector<News>& latest() const { return latest_; }

 private:
  std::vector<News> latest_;
  uint64_t last_ = 0;
  std::string last_refusal_;
  std::map<std::string, RareLog> refusals_;  // By line; "" for all beyond the first few.
};

}  // namespace hlaunch
