// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/partition_watch.h"

namespace hlaunch {

void PartitionWatch::BeginRound() {
  changed_ = false;
  due_.reset();
  told_.clear();
}

std::optional<PartitionVerdict> PartitionWatch::Judge(const std::vector<WaysWord>& words,
                                                      PartitionRule rule, Instant t) {
  changed_ = false;
  rule.all_have_spoken = due_ && t >= *due_;
  PartitionVerdict verdict = DecidePartition(words, rule);
  if (verdict.kind == PartitionVerdict::Kind::kWait) {
    if (!due_) due_ = t + kBothSpeak;
    return std::nullopt;
  }
  due_.reset();
  if (verdict.reason == std::exchange(told_, verdict.reason)) return std::nullopt;
  return verdict;
}

}  // namespace hlaunch
