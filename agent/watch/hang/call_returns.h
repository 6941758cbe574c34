// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// Counts how often the main thread of another process comes to one place in its code. The processor
// does it, so the process is neither stopped nor slowed.
//
// Belongs to one thread.
class CallReturns {
 public:
  // Unset if the kernel does not allow it (/proc/sys/kernel/perf_event_paranoid over 2), or if the
  // processor cannot do it.
  static std::optional<CallReturns> Open(pid_t pid, uint64_t address);

  // So far; unset if that is not known.
  std::optional<uint64_t> count() const;

 private:
  explicit CallReturns(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace hlaunch
