// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "rendezvous/round/drained_node.h"
#include "rendezvous/round/restart_log.h"
#include "rendezvous/round/round.h"

// What must survive the rendezvous for its job to go on: all that was decided and cannot be
// asked of the agents, who tell their own whole state when they come back. Plain values.

namespace hlaunch {

// A node that was told a round.
struct MemberRecord {
  NodeInfo info;
  Round told = 0;  // The last round it was a member of; below, its part in it.
  int node_rank = 0;
  Rank first_rank = 0;
  bool succeeded = false;
  bool stopped = false;
};

// An incarnation that lost its seat and whose workers may still live.
struct Ghost {
  std::string node_id;
  Incarnation incarnation = 0;
  std::string host;
  int pid = 0;
  Instant heard;  // Not kept: who restores it counts from then.
};

// How far the job came, by the steps that its workers told.
struct Progress {
  std::optional<int64_t> best_step = {};    // The highest of all; unset: none told one.
  std::optional<int64_t> judged_step = {};  // The same when CountStuck last looked at it,
  int judged_restarts = 0;                  // and the restarts that were used by then.
  int stuck_restarts = 0;                   // The last so many brought the job no further.
};

struct JobRecord {
  std::string job_id;
  JobPolicy policy;
  JobState state = JobState::kForming;
  Round round = 0;
  int restarts = 0;  // All that workers see, whether they are charged or not.
  RestartLog restart_log;
  std::vector<MemberRecord> members;
  std::vector<Ghost> ghosts;
  std::deque<Incarnation> given_up;  // They are refused, also those that do not know their round.
  std::map<std::string, int, std::less<>> held_ranks;  // Node id and rank in the last round.
  // The last round.
  int round_nodes = 0;
  int succeeded = 0;
  int stopped = 0;
  int world_size = 0;
  std::string master_addr;
  uint16_t master_port = 0;
  uint16_t coordinator_port = 0;
  bool worker_store = false;
  // What the round's workers know each other by. Kept, since after a restart a member may still
  // have to be told the round. Empty: they have none.
  std::string comm_secret = {};
  std::string cause;
  std::vector<WorkerFailure> failures;
  int total_failures = 0;
  std::vector<std::string> excluded;  // By the preflight, and why.
  int total_excluded = 0;             // Because they were bad.
  std::vector<PastRound> history;
  std::vector<DrainedNode> drained = {};  // At most kMaxNodes.
  Progress progress;
  Outcome outcome;  // kOver.
};

// What one job's rendezvous is told when it is made.
struct JobRules {
  std::string job_id;
  JobPolicy policy;
  std::string set_by;  // Whose policy it is, for people: "node0 (pid 77)"; may be empty.
  // A new secret for a round, 64 hexadecimal digits. Empty: rounds have none, as in a simulation.
  // JobRendezvous takes the kernel's random source then.
  std::function<std::string()> make_secret = {};
  // Called with no lock held, before any node is told to prepare or run a round, once all nodes
  // are ready, with what node rank 0 will be told. The one user is the shared listener, which
  // empties its store here. May be empty.
  std::function<void(const Assignment& first)> before_round;
  // Keeps what must survive this process. Called with no lock held and by one thread at a time,
  // before any node is told what follows from it. May be empty.
  //
  // Errors:
  //   Aborted - another rendezvous decides for this job now: nobody is told anything any more.
  //   others - not kept yet: nobody is told what follows until a later call, within seconds, has
  //       kept it.
  std::function<absl::Status(const JobRecord& record)> commit;
  // Whether this rendezvous decides for its job; once it does not, nobody is told anything any
  // more. Called with the lock held, often. Empty: it does.
  std::function<bool()> leads = {};
};

}  // namespace hlaunch
