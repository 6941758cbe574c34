// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agent/output/output_relay.h"
#include "agent/watch/stall/stall_watch.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/memory_kills.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Returns the command of the worker with `local_rank`, with `output` as its stdout and stderr and
// `further_fd`, unless it is -1, as its descriptor 3. Pure; the caller keeps the descriptors.
Command WorkerCommand(const WorkerSpec& spec, const Assignment& assignment, int local_rank,
                      const NodeFacts& facts, const WorkerOutput& output, int further_fd = -1);

// One worker of a round: its process, and what is reported about its end.
//
// Belongs to the loop thread. Movable until Watch was called.
class WorkerProcess {
 public:
  // `error_file` is where torch's @record writes. `log_file` keeps the worker's stderr; empty if
  // there is no such file.
  WorkerProcess(Process process, int local_rank, std::string error_file, std::string log_file);
  WorkerProcess(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  // Calls `on_exit` from the loop once the process has exited, unless it was reaped before.
  //
  // Errors: ResourceExhausted.
  absl::Status Watch(asio::io_context& loop, std::function<void()> on_exit);

  bool alive() const { return alive_; }  // Not reaped yet.
  int local_rank() const { return local_rank_; }
  pid_t pid() const { return process_.pid(); }  // 0 once reaped.

  // Signals its process group. Requires: alive().
  void SignalGroup(int signal) const { process_.SignalGroup(signal); }

  // Blocks until the process has exited; returns false at `deadline`. Requires: alive().
  bool AwaitExit(Instant deadline) const;

  // Requires: the process has exited; alive().
  ExitStatus Reap();

  // Notes why hlaunch ends this process although the round is not being stopped. `stalled` also
  // says where the process stood.
  void Blame(const std::string& reason, FailureKind kind);
  void Blame(const StalledWorker& stalled);

  // Returns true on the first call only, because a failure is reported once.
  bool TellsFailure() { return !std::exchange(told_, true); }

  // Describes the end of the process. `pid` is its former process id; `before` are the kernel's
  // kills before the round.
  WorkerFailure Failure(const Assignment& assignment, pid_t pid, const ExitStatus& exit,
                        const OutputRelay& relay, const MemoryKills& before) const;

 private:
  struct Exit;

  Process process_;
  int local_rank_;
  std::string error_file_;
  std::string log_file_;
  std::unique_ptr<Exit> exit_;  // Set while the process is watched and lives.
  bool alive_ = true;
  bool told_ = false;
  std::string kill_reason_;
  FailureKind kill_kind_ = FailureKind::kOther;
  StalledWorker stalled_;
};

// The pids of those that are alive, in their order.
std::vector<pid_t> AlivePids(const std::vector<WorkerProcess>& workers);

// Sends `signal` to the process group of each that is alive.
void SignalGroups(const std::vector<WorkerProcess>& workers, int signal);

// The local ranks of those that are alive and have given up, see HasGivenUp.
std::vector<int> GivenUp(const std::vector<WorkerProcess>& workers, const OutputRelay& relay);

}  // namespace hlaunch
