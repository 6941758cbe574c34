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
  // broke before, or if the job went on without this host.
  std::vector<std::optional<int>> exit_codes;
  // The exit code that the rendezvous decided; unset if it has decided none.
  std::optional<int> decided = {};
};

// Whether the job may go on without a host whose agent ended with `exit_code`, as it does without a
// drained or a lost node. It needs `min_hosts`; the agents of `living` hosts have not ended. Where
// all agents succeed, this is true of the first ones too, until too few are left. Pure.
bool GoesOnWithout(int exit_code, int living, int min_hosts);

// The exit code of hlaunch. Every agent reports the job's own code: the one of the lowest node rank
// that reported any counts, else the rendezvous' own. Pure.
int ExitCodeOfJob(const JobEnd& end);

// Whether `line`, printed by `starter`, only repeats the exit code that the agent reports too. The
// line may come before the agent's. Pure.
bool RepeatsTheEnd(absl::string_view starter, absl::string_view line);

}  // namespace hlaunch
