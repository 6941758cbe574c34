// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// How a job on other hosts ended. A value.
struct JobEnd {
  bool start_failed = false;  // Too few hosts could be started.
  int stop_signal = 0;        // The signal by which the person asked for the end; 0: none.
  // By node rank: the job's exit code as the host's agent reported it; unset if the connection
  // broke before.
  std::vector<std::optional<int>> exit_codes;
  // The exit code that the rendezvous decided; unset if it has decided none.
  std::optional<int> decided = {};
};

// The exit code of hlaunch. Every agent reports the job's own code: the one of the lowest node rank
// that reported any counts, else the rendezvous' own. Pure.
int ExitCodeOfJob(const JobEnd& end);

// Whether `line`, printed by `starter`, only repeats the exit code that the agent reports too. The
// line may come before the agent's. Pure.
bool RepeatsTheEnd(absl::string_view starter, absl::string_view line);

}  // namespace hlaunch
