// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rendezvous/round/values/round.h"

namespace hlaunch {

struct SummaryStyle {
  bool verbose = false;  // Report success, too.
  bool colour = false;
  int max_restarts = 0;     // The number that the job was allowed.
  uint16_t store_port = 0;  // The last round's MASTER_PORT if hlaunch served it, else 0.
  // Says which part of the time workers ran. Empty if there was no restart.
  std::string goodput = {};
  // Says how much time was lost, and by which causes. Empty if that is not known.
  std::string lost = {};
};

// Returns the job's final report, one string per line, without a newline: what failed first and
// why, in the words of its stderr; what failed after it; and what to do. Returns nothing on
// success, unless `verbose` is set, there was a restart,
// or the ranks lost time. Pure; text of workers and hosts is made
// safe for a terminal.
std::vector<std::string> SummaryLines(const Outcome& outcome, const SummaryStyle& style);

// The same in one line, for nodes that leave the whole report to another node. Empty on success.
std::string SummaryLine(const Outcome& outcome);

// Returns "rank 3 (node1, local rank 1, pid 4242) exited with code 7", or why the worker was not
// started.
std::string FailureLine(const WorkerFailure& failure);

}  // namespace hlaunch
