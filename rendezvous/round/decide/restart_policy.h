// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/restart_log.h"
#include "rendezvous/round/values/round.h"

// Decides what follows a failure, once for the whole job. Pure.

namespace hlaunch {

// After a round whose workers ran for this long, the pause before a restart is the first one again.
inline constexpr Duration kLongRun = std::chrono::minutes(10);
// A pause doubles up to this length.
inline constexpr Duration kLongestPause = std::chrono::minutes(5);

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
  Rank first_rank = 0;  // The first of its workers; nproc is 0 if it ran none.
  int nproc = 0;
  std::optional<WorkerFailure> explains;  // The first failure elsewhere that followed from it.
  int left_exit_code = 0;
};

// Returns a kNodeLost or kNodeLeft event for the node of `info`.
FailureEvent NodeEvent(FailureEvent::Kind kind, const NodeInfo& info, absl::string_view detail,
                       int left_exit_code = 0);

struct JobVerdict {
  bool restart = false;  // A new round; else the job is over.
  int exit_code = 0;     // Of the job if it is over; never 0.
  std::string reason;    // Always set; one line.
  // If a restart follows:
  bool free = false;                  // The restart is not charged to the budget.
  Duration pause = Duration::zero();  // The pause before it, from the end of the round on.
  int in_a_row = 0;                   // See RestartLog; includes this restart.
};

// Describes what happened: "node3 (10.0.0.3) was lost: it was not heard of for 40 s".
std::string DescribeEvent(const FailureEvent& event);

// Decides what follows `event`. No restart follows if a new worker would fail in the same way,
// after a failure that --end-on names, or after the loss of a node with --on-loss fail. After a
// failure that --free-on names, a restart follows that is not charged. After any other failure a
// restart follows if --restart-on names that failure or is empty, and the budget has one left.
//
// No job spins: restarts that are not charged pause, too, from the second in a row on, and longer
// each time.
JobVerdict AfterFailure(const JobPolicy& policy, const RestartLog& log, const FailureEvent& event,
                        Instant now);

// The restart of `verdict` is decided. Forgets restarts that do not count any more.
void TakeRestart(const JobPolicy& policy, const JobVerdict& verdict, Instant now, RestartLog& log);
// The last restart does not begin.
void TakeBack(RestartLog& log);
// Returns how many restarts count against the budget.
int CountedRestarts(const JobPolicy& policy, const RestartLog& log, Instant now);

// Describes the pause before the restart that is decided; `left` is the rest of it: "restart 2 of 3
// within 24 h begins in 8 s (--restart-pause)". Requires: there is such a restart.
std::string DescribePause(const JobPolicy& policy, const RestartLog& log, Duration left);
// Describes the whole pause for a node that waits for it: "waiting for the pause of 8 s before
// restart 2 of 3 …".
std::string WaitForPause(const JobPolicy& policy, const RestartLog& log);

// Checks that the options of `policy` on restarts can be read, and fit together.
//
// Errors:
//   InvalidArgument - they do not; the message names the option, the word and what is allowed.
absl::Status CheckRestartPolicy(const JobPolicy& policy);

// Describes a failure: "worker rank 3 on node1 (pid 77) was killed by signal 9 (SIGKILL)", with its
// exception if it named one.
std::string DescribeFailure(const WorkerFailure& failure);

}  // namespace hlaunch
