// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "proto/base/clock.h"

namespace hlaunch {

// What the kernel says of a process. A value.
struct RankActivity {
  char state = '?';          // R, S, D, T … as in proc(5).
  std::string kernel;        // The kernel's function in which it waits, if it may be known.
  bool traced = false;       // By a debugger.
  Duration computed{};       // CPU time so far, of all its threads and of children that have ended.
  uint64_t moved = 0;        // Bytes read and written so far.
  uint64_t transferred = 0;  // By TCP, however they were received and sent.
};

// Of a process that is there; else all is empty.
RankActivity ReadActivity(pid_t pid);

// What a process has read and written so far, but for what it received and sent by other calls.
uint64_t BytesMoved(pid_t pid);

// Whether a process was at work between two looks that are `apart`. Waiting costs little: one that
// only waits is not. Pure.
bool WasBusy(const RankActivity& before, const RankActivity& now, Duration apart);

}  // namespace hlaunch
