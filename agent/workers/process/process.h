// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What to run. A value; the caller keeps owning the descriptors.
struct Command {
  std::vector<std::string> argv = {};  // A path if it has a '/', else looked up in env's PATH.
  std::string program = {};            // Run instead of argv[0], which is only a name then.
  std::vector<std::string> env = {};   // `NAME=value` each; nothing else is inherited.
  bool as_a_shell = false;             // Adds `_`, the path of the program, to env.
  std::string working_directory = {};  // Empty: ours. A relative argv[0] is relative to it.
  int stdin_fd = -1;                   // -1: /dev/null
  int stdout_fd = 1;
  int stderr_fd = 2;
  int further_fd = -1;  // Becomes descriptor 3 of the child; -1: there is none.
  // The soft limit on descriptors, at most our hard limit. Unset: ours.
  std::optional<uint64_t> descriptor_limit = {};
  std::vector<int> cpus = {};  // The CPUs it may run on; empty: ours.
  // The NUMA node that its memory comes from as long as that has some. -1: as ours. It has no
  // effect if we already run under a memory policy.
  int memory_node = -1;
};

// How a process ended. A value.
struct ExitStatus {
  int exit_code = 0;  // Meaningful if signal is 0.
  int signal = 0;     // The signal that ended it, else 0.
  bool core = false;  // A core was dumped.

  // Converts the result of waitid.
  static ExitStatus Of(const siginfo_t& info);
  // The shell's number: the exit code, or 128 + signal.
  int ShellCode() const { return signal == 0 ? exit_code : 128 + signal; }
  // "exit code 1", "killed by SIGSEGV (core dumped)".
  std::string ToString() const;
};

// "SIGTERM", or "signal 42" if the number has no name.
std::string SignalName(int signal);

class Process;

// A child that is on its way to executing its program. Several children may start at the same time,
// which is faster than one after the other. Belongs to one thread, as Process. Movable.
class StartingProcess {
 public:
  StartingProcess(StartingProcess&&) noexcept;
  ~StartingProcess();  // Waits for it, and kills it, unless Await was called.

  // Waits until the program is executed or the child has failed; then no child is left. Call once.
  //
  // Errors: as Process::Spawn.
  absl::StatusOr<Process> Await();

 private:
  friend class Process;
  struct State;
  explicit StartingProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One child process, leader of its own session. All processes are made here.
//
// Promises: a Process exists only if the program was really executed. It has its own session and
// process group before Spawn returns, so no signal can miss it. It dies with the thread that
// spawned it. It starts with an empty signal mask, default dispositions and only the descriptors 0,
// 1 and 2, plus Command's further one. Resource limits other than Command's are left alone.
//
// Belongs to one thread, which must live as long as the process is needed: spawn, signal and reap
// there, so that a signal never reaches a recycled pid. Movable. The destructor kills the group of
// a process that was not reaped, and leaves the reaping to KillAndReapDescendants.
class Process {
 public:
  // Starts `command`. On error no child is left behind.
  //
  // Requires: SIGCHLD is not ignored.
  // Errors:
  //   NotFound - no such program, script interpreter or working directory; the message names it.
  //   PermissionDenied - the program exists but cannot be executed.
  //   InvalidArgument - argv is empty, or argv and env are larger than the kernel accepts.
  //   ResourceExhausted - out of processes, descriptors or memory.
  static absl::StatusOr<Process> Spawn(Command command);

  // Like Spawn, but does not wait for the program: Await returns the errors of the child itself.
  // `command`'s descriptors must stay open until then.
  static absl::StatusOr<StartingProcess> Start(Command command);

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        pidfd_(std::move(other.pidfd_)),
        warning_(std::move(other.warning_)) {}
  Process& operator=(Process&& other) noexcept;
  ~Process() { Abandon(); }

  // Takes `pid`, a child of ours that another process has made, which leads its own session.
  //
  // Errors:
  //   FailedPrecondition - it is no child of ours: this process is no subreaper.
  //   NotFound - it has ended and was reaped.
  //   ResourceExhausted - nothing tells of its exit.
  static absl::StatusOr<Process> Adopt(pid_t pid);

  pid_t pid() const { return pid_; }
  // Readable once the child has exited; on an old kernel it is not a pidfd.
  int pidfd() const { return pidfd_.get(); }
  // Says which of Command's CPUs and memory node could not be set; the program runs without them.
  // Empty if all were set.
  const std::string& warning() const { return warning_; }

  // Signals the child's process group, or the child alone. No effect once all have exited.
  // Requires: not reaped.
  void SignalGroup(int signal) const;
  void Signal(int signal) const;

  // Collects the exit status. Requires: pidfd() is readable; called once.
  ExitStatus Reap();

 private:
  friend class StartingProcess;
  Process(pid_t pid, UniqueFd pidfd, std::string warning)
      : pid_(pid), pidfd_(std::move(pidfd)), warning_(std::move(warning)) {}
  void Abandon();

  pid_t pid_ = 0;  // 0: reaped, or moved from.
  UniqueFd pidfd_;
  std::string warning_;
};

}  // namespace hlaunch
