// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "launcher/detached/job_record.h"
#include "launcher/detached/log_line.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What is wanted of a job's log. A value.
struct FollowWish {
  std::optional<size_t> tail;  // Of the lines that are there the last ones; unset: all.
  bool follow = true;          // And those to come, until the job ends.
  std::function<void(const LogLine&)> show;
  std::function<void()> shown;   // All that is there was; null: nothing to do then.
  std::function<bool()> enough;  // No more is wanted; null: never.
  int signals = -1;              // Nor once this is readable; -1: never.
};

enum class FollowEnd {
  kRead,    // Nothing more is there, and it is not to follow.
  kEnded,   // The job has ended.
  kEnough,  // As wish.enough said,
  kAsked,   // or wish.signals.
};

FollowEnd FollowJob(const DetachedJob& job, const FollowWish& wish);

// Blocks the signals by which a person asks a command to end; readable once one has come, and not
// valid where there is no descriptor. A SIGHUP is none: what runs may go on without a terminal.
UniqueFd SignalsOfPerson();

// A descriptor that is readable once the process that holds `job` has ended; not valid where the
// kernel has none, or it is gone.
UniqueFd WatchHolder(const DetachedJob& job);

}  // namespace hlaunch
