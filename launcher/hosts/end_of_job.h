// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hlaunch {

// What one host's part of a job came to. A value.
struct HostEnd {
  std::string host;
  bool here = false;             // It had reached the rendezvous.
  std::optional<int> exit_code;  // The job's, as its agent said; unset: the connection broke first.
};

// How many workers' hosts a start needs, and what happened. A value.
struct JobEnd {
  bool start_failed = false;   // Too few hosts could be started.
  int stop_signal = 0;         // The person asked for the end; 0: not.
  std::vector<HostEnd> hosts;  // By node rank.
};

// What hlaunch exits with: the job's own code, which every agent has; that of the lowest node rank
// that said one. Pure.
int ExitCodeOfJob(const JobEnd& end);

}  // namespace hlaunch
