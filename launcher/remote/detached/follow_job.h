// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "launcher/remote/detached/job_record.h"
#include "launcher/remote/detached/log_line.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What a caller wants of a job's log. A value.
struct FollowWish {
  std::optional<size_t> tail;  // How many of the last existing lines; unset: all.
  bool follow = true;          // Also the lines to come, until the job ends.
  std::function<void(const LogLine&)> show;
  std::function<void()> shown;   // Called when all existing lines were shown; may be null.
  std::function<bool()> enough;  // Returns true to stop; may be null.
  int signals = -1;              // Stop once this is readable; -1: never.
};

enum class FollowEnd {
  kRead,    // All lines were read, and `follow` is not set.
  kEnded,   // The job has ended.
  kEnough,  // wish.enough returned true.
  kAsked,   // wish.signals became readable.
};

FollowEnd FollowJob(const DetachedJob& job, const FollowWish& wish);

// Blocks the signals by which a person asks a command to end. Returns a descriptor that is readable
// once one has come; it is invalid if none could be made. SIGHUP is not among them: the command may
// go on without a terminal.
UniqueFd SignalsOfPerson();

// Returns a descriptor that is readable once the process that holds `job` has ended. It is invalid
// if the kernel cannot make one or that process is gone.
UniqueFd WatchHolder(const DetachedJob& job);

}  // namespace hlaunch
