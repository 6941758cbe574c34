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

// The descendants of this process, and how to end them. A process that called BecomeSubreaper
// inherits every orphan below it. So "all descendants" means every process that it ever started,
// directly or not, whatever sessions they made. Belongs to the thread that reaps children.

namespace hlaunch {

// One process as /proc shows it. A value.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';         // R, S, D, Z … as in proc(5).
  bool exiting = false;     // It is ending; it closes its files if it has not yet.
  uint64_t start_time = 0;  // Together with pid it identifies one process for ever.
  std::string command;      // At most 15 bytes.
  pid_t shown = 0;          // Its number in /proc, if that shows an outer pid namespace; 0: `pid`.

  // "worker.py[4711], state D in nfs_wait", for messages.
  std::string ToString() const;
};

// Returns the descendants of `root`, parents before children, without those children of `root` that
// are in `spared` and without their descendants. Where /proc shows an outer pid namespace (unshare
// --pid without --mount-proc), `root` must be this process or below it. Empty if /proc is missing.
std::vector<ProcessEntry> Descendants(pid_t root, absl::Span<const pid_t> spared = {});

// Reads a file of /proc once: at most its first 8 KiB; empty if it cannot be read.
std::string ReadSmallFile(const std::string& path);

// Returns process `pid` as it is now; unset if it does not exist or /proc does not show it.
std::optional<ProcessEntry> ReadProcess(pid_t pid);

// True if the process that `entry` describes exists and ignores `signal`.
bool IgnoresSignal(const ProcessEntry& entry, int signal);

// True if this process has a child that is not `spared`, running or not. A subreaper without
// children has no descendants. Unlike Descendants, this does not look at every process of the
// machine.
bool HasChildren(absl::Span<const pid_t> spared = {});

// Orphans of this process's descendants reparent to it from now on. Survives exec, not fork.
// Returns false, with errno, if the kernel or a filter around this process refuses.
bool BecomeSubreaper();

// Sends `signal` to the process that `entry` describes, never to another one that has reused its
// pid. Returns false if the process is gone or we may not signal it.
bool SignalProcess(const ProcessEntry& entry, int signal);

// Sends `signal` to every descendant of `root` but not to `root`. Returns the number of processes
// that were signalled. Never reaches another process, even if pids are reused meanwhile.
int SignalDescendants(pid_t root, int signal, absl::Span<const pid_t> spared = {});

// Reaps children of this process that have exited, without waiting. It stops at a child in `owned`,
// which its Process reaps. Returns how many it reaped. Call it on SIGCHLD and whenever one of
// `owned` was reaped. It is cheap: it does not read /proc.
int ReapOrphans(absl::Span<const pid_t> owned);

struct KillReport {
  int ended = 0;                    // Processes that were reaped.
  std::vector<ProcessEntry> stuck;  // Alive at the deadline: in state D, or not ours to kill.
};

// Kills and reaps all descendants of this process until none is left or `deadline` has passed. If
// /proc is missing, `spared` has no effect.
//
// Requires: this process is a subreaper, and no Process waits to be reaped.
KillReport KillAndReapDescendants(const Clock& clock, Instant deadline,
                                  absl::Span<const pid_t> spared = {});

}  // namespace hlaunch
