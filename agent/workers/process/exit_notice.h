// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// True if the kernel has pidfds: Linux 5.3 or later, unless an older container runtime refuses
// them. Thread-safe.
bool KernelHasPidfds();

// A pidfd of `pid`, which need not be a child; not valid if there is none to be had. Thread-safe.
UniqueFd OpenPidfd(pid_t pid);

// Blocks until `fd`, a pidfd or what NoticeExit returns, tells of the exit; returns false at
// `deadline`. Thread-safe.
bool AwaitExitNotice(int fd, Instant deadline);

// Replaces a pidfd: a descriptor that becomes readable once the child `pid` of this process has
// exited. A thread waits for the exit, which takes up to 64 KiB while the child lives; it does not
// reap the child. Not valid if no descriptor or no thread could be had. Thread-safe.
UniqueFd NoticeExit(pid_t pid);

}  // namespace hlaunch
