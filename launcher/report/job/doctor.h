// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/health/local/check_result.h"

// The command line and the output of `hlaunch doctor`, which runs the checks of a job without the
// job. Pure.

namespace hlaunch {

// The parsed command line of `hlaunch doctor`.
struct DoctorWords {
  bool help = false;
  bool json = false;
  // The command line of a job that only runs its checks: its workers do nothing.
  std::vector<std::string> job;
};

// Requires: the command line begins with `doctor`.
DoctorWords ReadDoctorWords(int argc, const char* const* argv);

// The program of such a job. If the parsed job has another program, the user has named one.
inline constexpr char kDoctorProgram[] = "/bin/true";

std::string DoctorHelp();

// Returns the results of this node for people: a table of its checks, and advice. On node rank 0,
// adds tables of the measured pairs and of the figures of all nodes.
std::string DoctorText(const std::vector<CheckResult>& results);

// The same for programs, as one JSON object.
std::string DoctorJson(const std::vector<CheckResult>& results);

}  // namespace hlaunch
