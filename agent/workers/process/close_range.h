// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace hlaunch {

// Closes the descriptors from `first` to `last`; none if `last` is smaller. Async-signal-safe.
inline void CloseRange(unsigned first, unsigned last = ~0U) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  // Linux before 5.9 needs a call for each, and so do container runtimes that refuse close_range.
  constexpr unsigned kMost = 65536;
  for (unsigned fd = first; fd <= std::min(last, kMost); ++fd) ::close(static_cast<int>(fd));
}

}  // namespace hlaunch
