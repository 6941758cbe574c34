// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// The decision what follows a failure, made once for the whole job. Pure.

namespace hlaunch {

struct RestartBudget {
  int max_restarts = 0;  // Of the job, however often nodes come and go.
  int used = 0;
};

// The first thing that went wrong in a round; what follows from it is no event of its own.
struct FailureEvent {
  enum class Kind {
    kWorkerFailed,  // `worker` says how.
    kNodeLost,      // Silent for too long, or proven dead: `detail`.
    kNodeLeft,      // By its own word: `detail` and `left_exit_code`.
  };
  Kind kind = Kind::kWorkerFailed;
  WorkerFailure worker;
  std::vector<WorkerPlace> awaited;  // See Outcome.
  std::string host, address;         // Of the node that was lost or left.
  std::string detail;
  Rank first_rank = 0;  // Of its workers; nproc is 0 where it ran none.
  int nproc = 0;
  std::optional<WorkerFailure> explains;  // The first failure elsewhere that followed from it.
  int left_exit_code = 0;
};

// kNodeLost or kNodeLeft, of the node of `info`.
FailureEvent NodeEvent(FailureEvent::Kind kind, const NodeInfo& info, absl::string_view detail,
                       int left_exit_code = 0);

struct JobVerdict {
  bool restart = false;  // A new round, charged to the budget; else the job is over.
  int exit_code = 0;     // Of the job if it is over; never 0.
  std::string reason;    // Always set; one line.
};

// What happened, in words: "node3 (10.0.0.3) was lost: it was not heard of for 40 s".
std::string DescribeEvent(const FailureEvent& event);

JobVerdict AfterFailure(const RestartBudget& budget, const FailureEvent& event);

// "worker rank 3 on node1 (pid 77) was killed by signal 9 (SIGKILL)", with its exception if it
// named one.
std::string DescribeFailure(const WorkerFailure& failure);

}  // namespace hlaunch
