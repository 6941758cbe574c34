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

// Whether the process `pid` that was started at `start_time` (ProcessEntry) has ended. Where /proc
// cannot be read, one of that number that is there counts as it.
bool HasEnded(pid_t pid, uint64_t start_time);

// The process that holds a part of a job, a child of this process or of a former one. The kernel
// tells when it ends; where it gives no descriptor for that, as there are none left, Look finds
// out.
//
// Belongs to the loop's thread. Destruction leaves the process alone.
class PartHolder {
 public:
  // `ended` is called once, from the loop or from Look, and may destroy this.
  PartHolder(asio::io_context& loop, pid_t pid, uint64_t start_time, std::function<void()> ended);

  // Call it now and then.
  void Look();
  void Signal(int signal);
  // Collects it, if it is a child and has ended.
  void Reap();

 private:
  void Watch();

  asio::io_context& loop_;
  const pid_t pid_;
  const uint64_t start_time_;
  const std::function<void()> ended_;
  std::optional<asio::posix::stream_descriptor> pidfd_;  // Unset: none could be had.
};

}  // namespace hlaunch
