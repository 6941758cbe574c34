// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/health/local/check_result.h"

// `hlaunch doctor`: what a job checks before it starts, without the job. Its command line, and what
// it prints. Pure.

namespace hlaunch {

// What the doctor wants of a job.
struct DoctorWords {
  bool help = false;
  bool json = false;
  // The words of a job whose workers do nothing: its checks are what is wanted.
  std::vector<std::string> job;
};

// Requires: the command line begins with `doctor`.
DoctorWords ReadDoctorWords(int argc, const char* const* argv);

// What such a job starts. If it starts another program, the user has named one.
inline constexpr char kDoctorProgram[] = "/bin/true";

std::string DoctorHelp();

// What this node found out, for people: a table of its checks and advice, and on the node with
// node rank 0 tables of the pairs that were measured and of all nodes' figures.
std::string DoctorText(const std::vector<CheckResult>& results);

// The same for programs: one object.
std::string DoctorJson(const std::vector<CheckResult>& results);

}  // namespace hlaunch
