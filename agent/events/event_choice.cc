// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_choice.h"

#include <variant>

namespace hlaunch {
namespace {

// True for events of one worker: there may be thousands, and other events tell what they mean for
// the job.
bool IsOfOneWorker(const NodeEvent& event) {
  return std::holds_alternative<WorkerStarted>(event) ||
         std::holds_alternative<WorkerEnded>(event) || std::holds_alternative<LogValue>(event);
}

// True for what is told again and again, each time a little more.
bool IsRunningSum(const NodeEvent& event) { return std::holds_alternative<TimeLost>(event); }

}  // namespace

bool EventChoice::Tells(const NodeEvent& event) {
  if (const auto* const started = std::get_if<RoundStarted>(&event)) {
    node_rank_ = started->assignment.node_rank;
  }
  if (IsOfOneWorker(event) || IsRunningSum(event)) return false;
  if (node_rank_) return *node_rank_ == 0;
  const auto* const finished = std::get_if<NodeFinished>(&event);
  return speaks_first_ || (finished != nullptr && finished->exit_code != 0);
}

}  // namespace hlaunch
