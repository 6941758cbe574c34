// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/end_of_job.h"

#include "absl/strings/match.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

// Whether the agent ended on its own: other agents may know better how the job ended.
bool IsOwnEnd(int exit_code) {
  return exit_code == kExitAgentLost || exit_code == kExitRendezvousLost ||
         exit_code == kExitNodeLost || exit_code == kExitNodeStopped;
}

}  // namespace

bool GoesOnWithout(int exit_code, int living, int min_hosts) {
  return (exit_code == kExitOk || IsOwnEnd(exit_code)) && living >= min_hosts;
}

int ExitCodeOfJob(const JobEnd& end) {
  std::optional<int> first, first_own;
  for (const std::optional<int>& exit_code : end.exit_codes) {
    if (!exit_code.has_value()) continue;
    std::optional<int>& place = IsOwnEnd(*exit_code) ? first_own : first;
    if (!place.has_value()) place = exit_code;
  }
  if (end.stop_signal != 0) {
    return first == kExitOk ? kExitOk : kExitSignalBase + end.stop_signal;
  }
  if (end.start_failed) return kExitNotStarted;
  if (first.has_value()) return *first;
  return end.decided.value_or(first_own.value_or(kExitNodeLost));
}

bool RepeatsTheEnd(absl::string_view starter, absl::string_view line) {
  return starter == "srun" && absl::StartsWith(line, "srun: error: ") &&
         absl::StrContains(line, ": Exited with exit code ");
}

}  // namespace hlaunch
