// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// Whether the kernel makes pidfds: from Linux 5.3 on, unless a container runtime is older than that
// and refuses. Thread-safe.
bool KernelHasPidfds();

// In place of a pidfd: a descriptor that is readable once the child `pid` of this process has
// exited. A thread waits for that, which takes up to 64 KiB as long as the child lives; it leaves
// the reaping to others. Not valid where there is no descriptor or no thread left. Thread-safe.
UniqueFd NoticeExit(pid_t pid);

}  // namespace hlaunch
