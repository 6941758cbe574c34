// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/output/log_spec.h"
#include "launcher/detached/job_record.h"

namespace hlaunch {

// A log is put aside at this size where nobody asks for another.
inline constexpr size_t kHeldLogBytes = 64 << 20;

// A job that is to go on by itself. A value.
struct HoldPlan {
  DetachedJob job;                // But for its holder.
  std::vector<std::string> argv;  // What runs it,
  std::vector<std::string> env;   // with these variables.
  Rotation rotation;              // Of its log.
};

// Becomes the process that holds a detached job: leaves the terminal, starts what runs it, keeps
// what that says in the log, passes signals on, and keeps how it ended. Returns its exit code. If
// it is killed, so is what it started. Call in a child of its own that has one thread.
int HoldJob(HoldPlan plan);

}  // namespace hlaunch
