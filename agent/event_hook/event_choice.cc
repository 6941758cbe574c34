// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/event_hook/event_choice.h"

#include <variant>

namespace hlaunch {
namespace {

// There may be thousands of these, and what they mean for the job is told by others.
bool IsOfOneWorker(const NodeEvent& event) {
  return std::holds_alternative<WorkerStarted>(event) ||
         std::holds_alternative<WorkerEnded>(event) || std::holds_alternative<LogValue>(event);
}

}  // namespace

bool EventChoice::Tells(const NodeEvent& event) {
  if (const auto* const started = std::get_if<RoundStarted>(&event)) {
    node_rank_ = started->assignment.node_rank;
  }
  if (IsOfOneWorker(event)) return false;
  if (node_rank_) return *node_rank_ == 0;
  const auto* const finished = std::get_if<NodeFinished>(&event);
  return speaks_first_ || (finished != nullptr && finished->exit_code != 0);
}

}  // namespace hlaunch
