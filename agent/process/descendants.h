// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/base/clock.h"

// Who descends from this process, and ending them. A process that called BecomeSubreaper
// inherits every orphan below it, so "all descendants" means all that ever came from it,
// whatever sessions they made. Belongs to the thread that reaps children.

namespace hlaunch {

// One process as /proc shows it. A value.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';         // R, S, D, Z … as in proc(5).
  bool exiting = false;     // It is on its way out, and closes its files if it has not.
  uint64_t start_time = 0;  // With pid: names one process for ever.
  std::string command;      // At most 15 bytes.

  // "worker.py[4711], state D in nfs_wait": for the person.
  std::string ToString() const;
};

// The descendants of `root`, parents before children; without `spared` children of `root` and
// what they started. Empty if /proc is missing or shows another pid namespace.
std::vector<ProcessEntry> Descendants(pid_t root, absl::Span<const pid_t> spared = {});

// What one read of a file of /proc gives: at most its first 8 KiB; empty where it cannot be read.
std::string ReadSmallFile(const std::string& path);

// Process `pid` as it is now; unset where there is none or /proc does not show it.
std::optional<ProcessEntry> ReadProcess(pid_t pid);

// Whether this process has a child that is not `spared`, running or not. A subreaper without one
// has no descendants; unlike Descendants, this does not look at every process of the machine.
bool HasChildren(absl::Span<const pid_t> spared = {});

// Orphans of this process's descendants reparent to it from now on. Survives exec, not fork.
void BecomeSubreaper();

// Sends `signal` to the process that `entry` was read of, never to one that has its pid now.
// False: it is gone, or not ours to signal.
bool SignalProcess(const ProcessEntry& entry, int signal);

// Sends `signal` to every descendant of `root` but not to `root`. Returns how many were sent.
// Never reaches a stranger, even where pids are reused meanwhile.
int SignalDescendants(pid_t root, int signal, absl::Span<const pid_t> spared = {});

// Reaps children of this process that have exited, without waiting, except those in `owned`
// (whose Process reaps them): it stops at one of those. Returns how many. Call on SIGCHLD and
// whenever one of `owned` was reaped. Costs nothing but the reaping: /proc is not read.
int ReapOrphans(absl::Span<const pid_t> owned);

struct KillReport {
  int ended = 0;                    // Processes that were reaped.
  std::vector<ProcessEntry> stuck;  // Alive at the deadline: in state D, or not ours to kill.
};

// Kills and reaps all descendants of this process until none is left or `deadline` has passed.
//
// Requires: this process is a subreaper, and no Process waits to be reaped.
KillReport KillAndReapDescendants(const Clock& clock, Instant deadline,
                                  absl::Span<const pid_t> spared = {});

}  // namespace hlaunch
