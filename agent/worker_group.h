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
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/watch/observe/node_event.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

class ForkServers;
class PmixServer;
class StdinCopies;

// All workers of one node in one round, from spawn until no worker and no process that they forked
// is left.
//
// Belongs to the loop thread, which also takes SIGCHLD: call ReapOrphans() then. At most one group
// lives at a time, so every child of this process belongs to this group, except one named by Spare.
//
//                 a worker failed            Stop
//   running ---------------------> failed -----------> stopping --none left--> on_stopped
//      | | all exited 0                                   ^ ^
//      | +--------------> succeeded ---------Stop---------+ |
//      +--------------------------Stop----------------------+
class WorkerGroup {
 public:
  // Callbacks, called from the loop, never from within Start or Stop. A callback must not destroy
  // the group, except on_stopped.
  struct Events {
    // A worker failed while the group was not being stopped.
    std::function<void(WorkerFailure)> on_failure;
    std::function<void()> on_success;  // All workers exited with 0.
    std::function<void()> on_stopped;  // Nothing of the group is left.
    // The workers that have given up, see HasGivenUp, and have not ended; may be empty.
    std::function<void(std::vector<int> local_ranks)> on_given_up;
    // What the other nodes of the round are to be told, see RoundWord; may be empty.
    std::function<void(std::string text)> on_word;
    std::function<void()> on_boundary;  // Rank 0, which runs here, is at a good moment to stop.
    // Gets each worker's start and end, stalls and log values; may be empty. Unlike the others it
    // is also called from within Start, Stop and the destructor.
    NodeEventFn on_event;
  };

  // Starts all workers of `assignment`, or none; their output goes where `logs` says. `pmix` is
  // ready to serve them; null if PMIx is not used. `stdin_copies` is the input that all of them
  // read; null if they do not. `fork_servers` make workers where they can; null if there are none.
  // `loop`, `relay` and the last two outlive the group.
  //
  // Errors:
  //   NotFound, PermissionDenied, InvalidArgument - the program cannot be run; the message
  //     names it.
  //   ResourceExhausted - out of processes or descriptors; what was started was killed.
  static absl::StatusOr<std::unique_ptr<WorkerGroup>> Start(
      asio::io_context& loop, const Assignment& assignment, const WorkerSpec& spec, NodeFacts facts,
      const JobLogs& logs, OutputRelay& relay, Events events,
      std::unique_ptr<PmixServer> pmix = nullptr, StdinCopies* stdin_copies = nullptr,
      ForkServers* fork_servers = nullptr);

  // Kills and reaps what is left.
  ~WorkerGroup();

  // Sends `signal` to every worker's process group and to processes that workers left behind, and
  // after `grace` SIGKILL to all that still live. on_stopped follows once nothing is left. A second
  // call can only shorten the time.
  void Stop(int signal, Duration grace);

  // Says that `pid`, a child of this process, does not belong to the group. 0 means that there is
  // no such process, or none any more.
  // Requires: 0 before Stop.
  void Spare(pid_t pid);

  // Sends `signal` to every worker's process group and changes nothing else.
  void Forward(int signal);

  // Reaps orphans of workers. Call on SIGCHLD. The end of workers themselves is seen through their
  // pidfds.
  void ReapOrphans();

  // Answers as RankAnswers does; from within this call if the workers are being stopped.
  void Ask(const NodeQuestion& question, std::function<void(NodeAnswer)> done);

  // Another node of a round has said `word`; it does not matter if it is another round.
  void Hear(const RoundWord& word);

  // How many workers have not ended.
  int alive() const;

  // The highest step that a worker told, by a heartbeat or by a line with a group named `step`;
  // unset if none did.
  std::optional<int64_t> step() const;

  // Reaps those that have ended, and says whether workers left others behind. Unlike the names
  // below, this is certain: a process that has just been started by one that ends may be in no list
  // of /proc.
  bool HasLeftovers() const;
  // Command names and pids of the processes that workers left behind; for people.
  std::vector<std::string> Leftovers() const;

 private:
  struct State;
  explicit WorkerGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
