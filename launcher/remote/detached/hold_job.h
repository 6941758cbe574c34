// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/output/log_spec.h"
#include "launcher/remote/detached/job_record.h"

namespace hlaunch {

// A log is rotated at this size unless the user sets another.
inline constexpr size_t kHeldLogBytes = 64 << 20;

// A job that is to run without a terminal. A value.
struct HoldPlan {
  DetachedJob job;                // All but its holder.
  std::vector<std::string> argv;  // This program runs it with these words
  std::vector<std::string> env;   // and these variables.
  Rotation rotation;              // The rotation of its log.
};

// Becomes the process that holds a detached job: leaves the terminal, starts the command that runs
// the job, writes its output to the log, forwards signals, and records how it ended. Returns its
// exit code. If the holder is killed, so is what it started. Call in a child process of its own
// that has one thread.
int HoldJob(HoldPlan plan);

}  // namespace hlaunch
