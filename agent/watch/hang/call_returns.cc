// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/call_returns.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hlaunch {

std::optional<CallReturns> CallReturns::Open(pid_t pid, uint64_t address) {
  if (address == 0) return std::nullopt;
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_X;
  attributes.bp_addr = address;
  attributes.bp_len = sizeof(long);  // NOLINT(google-runtime-int): the kernel wants that size.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const long fd =  // NOLINT(google-runtime-int)
      ::syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return CallReturns(UniqueFd(static_cast<int>(fd)));
}

std::optional<uint64_t> CallReturns::count() const {
  uint64_t count = 0;
  if (::read(fd_.get(), &count, sizeof count) != sizeof count) return std::nullopt;
  return count;
}

}  // namespace hlaunch
