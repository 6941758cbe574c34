// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <variant>

#include "rendezvous/round/round.h"

// What happens to one node of a job, for those who only look on. All are plain values.

namespace hlaunch {

struct NodeJoined {};  // The rendezvous has taken this node in.

struct NodeWaiting {   // Before a round runs; told as rarely as a person is.
  std::string reason;  // For whom or what, and how long so far.
};

struct JobRestarted {  // The next round is one of those that --max-restarts allows.
  Round round = 0;     // The round that begins.
  int restart_count = 0;
};

struct RoundStarted {
  Assignment assignment;
  int nproc = 0;  // Workers here.
};

struct WorkerStarted {
  Round round = 0;
  Rank rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
};

struct WorkerEnded {
  Round round = 0;
  Rank rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  int exit_code = 0;     // If signal is 0.
  int signal = 0;        // That ended it, else 0.
  bool stopped = false;  // After hlaunch had begun to stop it.
};

struct WorkerStalled {
  Round round = 0;
  Rank rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  std::string reason;  // What its heartbeats, its torch, its output or the kernel say.
};

struct LogValue {  // In a worker's output, by a rule of --watch-log.
  Round round = 0;
  Rank rank = 0;
  std::string name;
  double value = 0;
};

struct HealthChanged {  // While workers run. Node rank 0 is told of all nodes.
  Round round = 0;
  std::string check;  // Of another node: "node3: network".
  bool worse = false;
  std::string reason;
};

struct RoundStopped {
  Round round = 0;
  std::string reason;
};

struct ContactChanged {  // With the rendezvous, while a round runs.
  bool connected = false;
  std::string detail;
};

struct NodeFinished {  // The node's last.
  int exit_code = 0;
  std::string reason;  // Empty on success.
};

using NodeEvent = std::variant<NodeJoined, NodeWaiting, JobRestarted, RoundStarted, WorkerStarted,
                               WorkerEnded, WorkerStalled, LogValue, HealthChanged, RoundStopped,
                               ContactChanged, NodeFinished>;

// Called from the agent's loop; must not block and must not call back.
using NodeEventFn = std::function<void(const NodeEvent&)>;

}  // namespace hlaunch
