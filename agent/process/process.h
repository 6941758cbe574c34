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

// What to run. A value; the descriptors stay the caller's.
struct Command {
  std::vector<std::string> argv = {};  // argv[0] with a '/' is a path, else sought in env's PATH.
  std::vector<std::string> env = {};   // `NAME=value` each; nothing else is inherited.
  bool as_a_shell = false;             // Adds `_` to it, the path of the program.
  std::string working_directory = {};  // Empty: ours. A relative argv[0] is relative to it.
  int stdin_fd = -1;                   // -1: /dev/null
  int stdout_fd = 1;
  int stderr_fd = 2;
  int further_fd = -1;  // It is descriptor 3 there; -1: there is none.
  // The soft limit on its descriptors, no higher than our hard one. Unset: ours.
  std::optional<uint64_t> descriptor_limit = {};
  std::vector<int> cpus = {};  // Where it may run; empty: where we may.
  // The NUMA node it takes memory from as long as there is some; -1, or where somebody has given
  // us a policy: as we do.
  int memory_node = -1;
};

// How a process ended. A value.
struct ExitStatus {
  int exit_code = 0;  // Meaningful if signal is 0.
  int signal = 0;     // The signal that ended it, else 0.
  bool core = false;  // A core was dumped.

  // What waitid said.
  static ExitStatus Of(const siginfo_t& info);
  // The shell's number: the exit code, or 128 + signal.
  int ShellCode() const { return signal == 0 ? exit_code : 128 + signal; }
  // "exit code 1", "killed by SIGSEGV (core dumped)".
  std::string ToString() const;
};

// "SIGTERM"; "signal 42" where the number has no name.
std::string SignalName(int signal);

class Process;

// A child that is on its way to its program. Several may be at once, which is faster than one after
// the other. Belongs to one thread, as Process. Movable.
class StartingProcess {
 public:
  StartingProcess(StartingProcess&&) noexcept;
  ~StartingProcess();  // Waits for it, and kills it, unless Await did.

  // Waits until the program is executed or the child has failed; no child is left then. Call once.
  //
  // Errors: as Process::Spawn.
  absl::StatusOr<Process> Await();

 private:
  friend class Process;
  struct State;
  explicit StartingProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One child process, leader of its own session, and the one place that makes processes.
//
// Promises: a Process exists only if the program was really executed; it has its own session
// and process group before Spawn returns, so no signal can miss it; it dies with the thread
// that spawned it; it starts with an empty signal mask, default dispositions and the
// descriptors 0, 1 and 2 only, and Command's further one. Resource limits but Command's are left
// alone.
//
// Belongs to one thread, which must live as long as the process shall: spawn, signal and reap
// there, so that a signal never reaches a recycled pid. Movable. Destroying one that was not
// reaped kills its group and leaves the reaping to KillAndReapDescendants.
class Process {
 public:
  // Starts `command`. On error no child is left behind.
  //
  // Requires: SIGCHLD is not ignored.
  // Errors:
  //   NotFound - no such program, script interpreter or working directory; the message names it.
  //   PermissionDenied - it is there and cannot be executed.
  //   InvalidArgument - argv is empty, or argv and env are more than the kernel takes.
  //   ResourceExhausted - out of processes, descriptors or memory.
  static absl::StatusOr<Process> Spawn(Command command);

  // The same, but does not wait for the program: what the child itself fails with comes from Await.
  // `command`'s descriptors must stay open until then.
  static absl::StatusOr<StartingProcess> Start(Command command);

  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        pidfd_(std::move(other.pidfd_)),
        warning_(std::move(other.warning_)) {}
  Process& operator=(Process&& other) noexcept;
  ~Process() { Abandon(); }

  pid_t pid() const { return pid_; }
  // Readable once the child has exited; of an old kernel not a pidfd.
  int pidfd() const { return pidfd_.get(); }
  // What of Command's CPUs and memory node could not be had; the program runs without. Empty: all
  // is as asked.
  const std::string& warning() const { return warning_; }

  // Signal the child's process group, or the child alone. No effect once all have exited.
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
