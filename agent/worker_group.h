// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/observe/node_event.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/process/process.h"
#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "rendezvous/job/question.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

class PmixServer;
class StdinCopies;

// All workers of one node in one round, from spawn until none of them and of what they forked
// is left.
//
// Belongs to the loop thread, which also takes SIGCHLD: call ReapOrphans() then. At most
// one group lives at a time, so every child of this process is of this group, but one that was
// named by Spare.
//
//                 a worker failed            Stop
//   running ---------------------> failed -----------> stopping --none left--> on_stopped
//      | | all exited 0                                   ^ ^
//      | +--------------> succeeded ---------Stop---------+ |
//      +--------------------------Stop----------------------+
class WorkerGroup {
 public:
  // What happened; called from the loop, never from within Start or Stop.
  // A callback must not destroy the group, except on_stopped.
  struct Events {
    std::function<void(WorkerFailure)> on_failure;  // A worker ended that nobody had stopped.
    std::function<void()> on_success;               // All workers exited with 0.
    std::function<void()> on_stopped;               // Nothing of the group is left.
    // Those of the workers that have given up, see HasGivenUp, and have not ended; may be empty.
    std::function<void(std::vector<int> local_ranks)> on_given_up;
    std::function<void()> on_boundary;  // Rank 0, which is here, is at a good moment to stop.
    // Each worker's start and end; may be empty. Unlike the others also called from within Start,
    // Stop and the destructor.
    NodeEventFn on_event;
  };

  // Starts all workers of `assignment`, or none; their output goes where `logs` says. `pmix` is
  // ready to serve them, null: nobody does; `stdin_copies` is what all read, null: they do not.
  // `loop`, `relay` and `stdin_copies` outlive the group.
  //
  // Errors:
  //   NotFound, PermissionDenied, InvalidArgument - the program cannot be run; the message
  //     names it.
  //   ResourceExhausted - out of processes or descriptors; what was started was killed.
  static absl::StatusOr<std::unique_ptr<WorkerGroup>> Start(
      asio::io_context& loop, const Assignment& assignment, const WorkerSpec& spec, NodeFacts facts,
      const JobLogs& logs, OutputRelay& relay, Events events,
      std::unique_ptr<PmixServer> pmix = nullptr, StdinCopies* stdin_copies = nullptr);

  // Kills and reaps what is left.
  ~WorkerGroup();

  // Sends `signal` to every worker's process group and to what workers left behind, SIGKILL to
  // all that lives after `grace`; on_stopped follows once nothing is left. A second call may only
  // shorten the time.
  void Stop(int signal, Duration grace);

  // `pid`, a child of this process, is none of the group's; 0: there is none such (any more).
  // Requires: 0 before Stop.
  void Spare(pid_t pid);

  // Sends `signal` to every worker's process group and leaves everything else as it is.
  void Forward(int signal);

  // Reaps what workers left to this process. Call on SIGCHLD; workers themselves are seen by
  // their pidfds.
  void ReapOrphans();

  // Answers as RankAnswers does, from within this where the workers are being stopped.
  void Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // How many workers have not ended.
  int alive() const;

  // The highest step that one of them told, by a heartbeat or by a line with a group named `step`;
  // unset: none did.
  std::optional<int64_t> step() const;

  // Command names and pids of what the workers left behind; for the person.
  std::vector<std::string> Leftovers() const;

 private:
  struct State;
  explicit WorkerGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
