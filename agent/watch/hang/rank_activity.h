// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/watch/hang/socket_bytes.h"
#include "proto/base/clock.h"

namespace hlaunch {

// What the kernel tells about a process. A value.
struct RankActivity {
  char state = '?';                 // R, S, D, T … as in proc(5).
  std::string kernel;               // The kernel's function in which it waits, if we may know it.
  bool traced = false;              // By a debugger.
  Duration computed{};              // CPU time so far of all its threads and of its ended children.
  uint64_t moved = 0;               // Bytes read and written so far.
  uint64_t transferred = 0;         // Bytes by TCP so far, whatever calls were used.
  std::set<std::string> addresses;  // As SocketUse has them.
  std::set<std::string> unheard;
};

// Empty if there is no such process. `connections` are those of the host at this moment.
RankActivity ReadActivity(pid_t pid, const HostConnections& connections);

// The processes that `pid` has started and those below them, at most 256; what it has left behind
// is not among them. Empty if the kernel does not tell.
std::vector<pid_t> ProcessesBelow(pid_t pid);

// What these have used together; without states.
RankActivity ReadActivityOf(const std::vector<pid_t>& pids, const HostConnections& connections);

// How many bytes a process has read and written so far; bytes received and sent by socket calls do
// not count.
uint64_t BytesMoved(pid_t pid);

// True if a process was at work between two looks that are `apart`. A process that only waits is
// not at work, because waiting costs little. Pure.
bool WasBusy(const RankActivity& before, const RankActivity& now, Duration apart);

// As WasBusy, but only for what it read, wrote, sent and received. Pure.
bool MovedMuch(const RankActivity& before, const RankActivity& now, Duration apart);

// True if it used so much of a CPU as a thread that asks something again and again, and more than
// threads that wake up from time to time; or if its main thread would have run both times. Pure.
bool Spun(const RankActivity& before, const RankActivity& now, Duration apart);

// True if more bytes passed through its connections than those by which one that waits shows that
// it is alive. Pure.
bool BytesFlowed(const RankActivity& before, const RankActivity& now, Duration apart);

}  // namespace hlaunch
