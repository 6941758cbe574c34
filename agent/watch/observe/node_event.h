// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

// What happens to one node of a job, for observers. All are plain values.

namespace hlaunch {

struct NodeJoined {};  // The rendezvous has accepted this node.

struct NodeWaiting {   // Before a round runs; sent as rarely as the user is told.
  std::string reason;  // What the node waits for, and how long so far.
};

struct JobRestarted {  // The next round is a restart that counts against --max-restarts.
  Round round = 0;     // The round that begins.
  int restart_count = 0;
};

struct RoundStarted {
  Assignment assignment;
  int nproc = 0;  // Workers on this node.
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
  int exit_code = 0;     // Valid if signal is 0.
  int signal = 0;        // The signal that ended the worker, else 0.
  bool stopped = false;  // It ended after hlaunch had begun to stop it.
};

struct WorkerStalled {
  Round round = 0;
  Rank rank = 0;
  int local_rank = 0;
  pid_t pid = 0;
  std::string reason;  // What its heartbeats, its torch, its output or the kernel report.
};

struct LogValue {  // A value in a worker's output, found by a rule of --watch-log.
  Round round = 0;
  Rank rank = 0;
  std::string name;
  double value = 0;
};

struct HealthChanged {  // While workers run. Node rank 0 also gets those of other nodes.
  Round round = 0;
  std::string check;  // The check; for another node "node3: network".
  bool worse = false;
  std::string reason;
};

struct SlowRanksFound {  // On node rank 0: ranks hold up the others in each step, or no longer do.
  Round round = 0;
  std::vector<Rank> ranks;
  double lost = 0;  // Which part of their time the others lose; zero: no longer.
  std::string reason;
};

struct TimeLost {  // On node rank 0: time that the ranks have lost since the round's first step.
  Round round = 0;
  Duration waiting{};  // For the slowest of them, in collectives.
  Duration saving{};   // In checkpoints, as far as torch writes them.
};

struct RoundStopped {
  Round round = 0;
  std::string reason;
};

struct ContactChanged {  // Contact with the rendezvous was lost or found again.
  bool connected = false;
  std::string detail;
};

struct NodeFinished {  // The node's last event.
  int exit_code = 0;
  std::string reason;  // Empty on success.
};

using NodeEvent = std::variant<NodeJoined, NodeWaiting, JobRestarted, RoundStarted, WorkerStarted,
                               WorkerEnded, WorkerStalled, LogValue, HealthChanged, SlowRanksFound,
                               TimeLost, RoundStopped, ContactChanged, NodeFinished>;

// Called from the agent's loop; must not block and must not call back into the agent.
using NodeEventFn = std::function<void(const NodeEvent&)>;

}  // namespace hlaunch
