// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "asio/posix/stream_descriptor.hpp"

namespace asio {
class io_context;
}

namespace hlaunch {

// Returns true if the process `pid` that was started at `start_time` (ProcessEntry) has ended. If
// /proc cannot be read, any process with that number counts as this one.
bool HasEnded(pid_t pid, uint64_t start_time);

// The process that holds a part of a job. It is a child of this process or of a former daemon. The
// kernel tells when it ends. If the kernel has no descriptor left for that, Look finds out.
//
// Belongs to the loop's thread. Destruction leaves the process alone.
class PartHolder {
 public:
  // Calls `ended` once, from the loop or from Look. `ended` may destroy this object.
  PartHolder(asio::io_context& loop, pid_t pid, uint64_t start_time, std::function<void()> ended);

  // To be called now and then.
  void Look();
  void Signal(int signal);
  // Reaps the process if it is a child and has ended.
  void Reap();

 private:
  void Watch();

  asio::io_context& loop_;
  const pid_t pid_;
  const uint64_t start_time_;
  const std::function<void()> ended_;
  std::optional<asio::posix::stream_descriptor> pidfd_;  // Unset: the kernel gave none.
};

}  // namespace hlaunch
