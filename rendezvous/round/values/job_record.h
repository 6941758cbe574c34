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
#include "rendezvous/round/values/drained_node.h"
#include "rendezvous/round/values/restart_log.h"
#include "rendezvous/round/values/round.h"

// The state that must survive the rendezvous so that its job goes on: all that was decided and that
// the agents cannot tell again. An agent that comes back sends its own whole state. Plain values.

namespace hlaunch {

// A node that was told to take part in a round.
struct MemberRecord {
  NodeInfo info;
  Round told = 0;  // The last round it was a member of. Its part in that round:
  int node_rank = 0;
  Rank first_rank = 0;
  bool succeeded = false;
  bool stopped = false;
};

// An incarnation that lost its seat, but whose workers may still live.
struct Ghost {
  std::string node_id;
  Incarnation incarnation = 0;
  std::string host;
  int pid = 0;
  Instant heard;  // Not stored: after a restore it is the time of the restore.
};

// How far the job came, by the steps that its workers reported.
struct Progress {
  std::optional<int64_t> best_step = {};    // The highest step; unset if none was reported.
  std::optional<int64_t> judged_step = {};  // `best_step` when CountStuck last looked.
  int judged_restarts = 0;                  // `JobRecord::restarts` at that time.
  int stuck_restarts = 0;                   // This many last restarts brought the job no further.
};

struct JobRecord {
  std::string job_id;
  JobPolicy policy;
  JobState state = JobState::kForming;
  Round round = 0;
  int restarts = 0;  // All restarts that workers see, charged or not.
  RestartLog restart_log;
  std::vector<MemberRecord> members;
  std::vector<Ghost> ghosts;
  // These incarnations are refused, even if they come back without a round.
  std::deque<Incarnation> given_up;
  std::map<std::string, int, std::less<>> held_ranks;  // Node rank in the last round, by node id.
  // The last round:
  int round_nodes = 0;
  int succeeded = 0;
  int stopped = 0;
  int world_size = 0;
  std::string master_addr;
  uint16_t master_port = 0;
  uint16_t coordinator_port = 0;
  bool worker_store = false;
  // The secret by which the round's workers recognize each other. It is stored because a member may
  // still have to be told the round after a restart. Empty if there is none.
  std::string comm_secret = {};
  std::string cause;
  std::vector<WorkerFailure> failures;
  int total_failures = 0;
  std::vector<std::string> excluded;  // The nodes that were excluded, and why.
  int total_excluded = 0;             // Nodes that were excluded because they were bad.
  std::vector<PastRound> history;
  std::vector<DrainedNode> drained = {};  // At most kMaxNodes.
  Progress progress;
  Outcome outcome;  // kOver.
};

// What the rendezvous of one job is given when it is created.
struct JobRules {
  std::string job_id;
  JobPolicy policy;
  std::string set_by;  // The node whose policy it is, for people: "node0 (pid 77)"; may be empty.
  // Returns a new secret for a round, 64 hexadecimal digits. If empty, rounds have no secret, as in
  // a simulation; JobRendezvous uses the kernel's random source instead.
  std::function<std::string()> make_secret = {};
  // Called with no lock held, once all nodes are ready and before any node is told to prepare or
  // run a round. `first` is what node rank 0 will be told. The only user is the shared listener,
  // which empties its store here. May be empty.
  std::function<void(const Assignment& first)> before_round;
  // Keeps what must survive this process. Called with no lock held, by one thread at a time, before
  // any node is told what follows from the record. May be empty.
  //
  // Errors:
  //   Aborted - another rendezvous decides for this job now: no node is told anything any more.
  //   others - the record is not kept yet: no node is told what follows until a later call, within
  //     seconds, has kept it.
  std::function<absl::Status(const JobRecord& record)> commit;
  // Returns whether this rendezvous decides for its job. Once it does not, no node is told anything
  // any more. Called often, with the lock held. If empty, the rendezvous always decides.
  std::function<bool()> leads = {};
};

}  // namespace hlaunch
