// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What a job on other hosts came to. A value.
struct JobEnd {
  bool start_failed = false;  // Too few hosts could be started.
  int stop_signal = 0;        // The person asked for the end; 0: not.
  // By node rank, the job's exit code as the host's agent said it; unset: its connection broke
  // first.
  std::vector<std::optional<int>> exit_codes;
  // The same as the rendezvous decided it; unset: it has not.
  std::optional<int> decided = {};
};

// What hlaunch exits with: the job's own code, which every agent has; that of the lowest node rank
// that said one, else the rendezvous' own. Pure.
int ExitCodeOfJob(const JobEnd& end);

// Whether `line`, of a `starter`, says no more than the exit code that its agent says, too. It may
// come before the agent's. Pure.
bool RepeatsTheEnd(absl::string_view starter, absl::string_view line);

}  // namespace hlaunch
