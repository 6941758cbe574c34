// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/limits.h"

// The values that agents and the rendezvous exchange. All are plain values: copy them.
// The exchange is of states, not of events: an agent always sends its whole NodeUpdate, the
// rendezvous always sends the node's whole Directive. A message that is lost, doubled or late
// therefore harms nothing, and a reconnect is "send the latest again".

namespace hlaunch {

// Time-outs of the two times rule. The rendezvous' values win and reach agents on joining.
struct Lease {
  Duration lease = std::chrono::seconds(5);  // Silence after which a node is suspect.
  Duration loss_limit =
      std::chrono::seconds(30);                // Silence after which an agent stops its workers.
  Duration margin = std::chrono::seconds(10);  // Further silence until its place is given away.
};

// What nodes check before the workers of a round start.
enum class Preflight {
  kOff,
  kQuick,  // That all reach the master store, and what each can tell of itself at once.
  kFull,   // The same, measured for some seconds.
};

// What becomes of a node that is found to be bad. One that cannot reach the master store is
// always excluded: it cannot run.
enum class PreflightAction {
  kWarn,     // It is named.
  kExclude,  // It is excluded, as long as the job can do without it.
  kFail,     // The job ends.
};

// What becomes of a job of which the node has died that hosts its rendezvous.
enum class HostLoss {
  kEnd,       // It ends: no other node has the record.
  kWait,      // The others have it, and one of them goes on; of two nodes, by proof of that death.
  kContinue,  // The same, and of two also by silence: if only the way between is cut, both go on.
};

// What becomes of a node that joins while a round runs that is smaller than it may be.
enum class OnJoin {
  kRestart,    // The round ends at a good moment, and the next one is with it.
  kNextRound,  // It stands by until the round ends for another reason.
  kIgnore,     // The same, and it replaces a lost node only: no round is larger than the first.
};

// What becomes of a job that lost a node and has enough without it.
enum class OnLoss {
  kShrink,  // The next round begins without it.
  kWait,    // The next round waits for another node, until the join time-out.
  kFail,    // The job ends.
};

// What holds for a whole job. Every node brings it along from its command line. The nodes must
// agree on min_nodes and max_nodes; where the rest differs, the rendezvous' own holds.
struct JobPolicy {
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;  // Nodes expected beyond max_nodes, to stand by.
  int max_restarts = 0;
  // From the first join, or the round's end, to the next round.
  Duration join_timeout = std::chrono::seconds(600);
  // For more nodes to come: from min_nodes present to the start, and from a join in a running
  // round to the next round.
  Duration last_call = std::chrono::seconds(30);
  Lease lease;
  Preflight preflight = Preflight::kQuick;
  PreflightAction preflight_action = PreflightAction::kExclude;
  // Percent of the round's nodes that may be excluded for being bad; at least one. If more are
  // bad, the fault is likely not theirs.
  int preflight_share = 25;
  int max_stuck_restarts = 0;  // In a row that bring the job no further; 0: all of them may.
  HostLoss on_host_loss = HostLoss::kEnd;
  // A restart counts against max_restarts for so long; zero: for ever.
  Duration restart_window = Duration::zero();
  // Before a restart; doubles with each one that follows soon. Zero: none.
  Duration restart_pause = Duration::zero();
  // Failures as ExitSet reads them. After those of `restart_on` alone a restart may follow, empty:
  // after all; after those of `end_on` none; one after those of `free_on` is not charged.
  std::string restart_on = {}, end_on = {}, free_on = {};
  OnJoin on_join = OnJoin::kRestart;
  OnLoss on_loss = OnLoss::kShrink;
  // Between two ends of rounds for nodes that have joined.
  Duration grow_interval = Duration::zero();
  // For workers to come to a good moment once a round is to grow.
  Duration boundary_limit = Duration::zero();
  int node_multiple = 1;  // A round has a multiple of so many nodes.
  // What becomes of nodes that reach the rendezvous and not the others while workers run.
  PreflightAction on_partition = PreflightAction::kExclude;
};

// What a node is, told once when it joins.
struct NodeInfo {
  std::string job_id;
  std::string node_id;
  Incarnation incarnation = 0;
  std::string host;  // Host name: for people, and for the natural order of ranks.
  int pid = 0;       // Of the agent.
  // When the agent started, in milliseconds since its host did: of two on one host, the later
  // one is the one that lives.
  int64_t started_ms = 0;
  int nproc = 1;                 // Workers on this node.
  std::optional<int> node_rank;  // Explicit, or the scheduler's index.
  JobPolicy policy;
  // This node's address on its route to the rendezvous, a literal without brackets. Loopback
  // where the two share a host.
  std::string address;
  // The other addresses of its interfaces, as SelectAnnounced has them: its workers may come to the
  // master store from any of these.
  std::vector<std::string> other_addresses = {};
  bool answers = true;  // Its agent answers questions about its ranks; older ones do not know them.
  uint16_t witness_port = 0;  // Where it listens as a witness; 0: it cannot be one.
  // Set by the rendezvous, not by the node: its own address on the route to this node.
  std::string route_address;
  std::string seen_address;  // The same: where this node's stream comes from; empty if unknown.
};

// Why a worker is no longer running though nobody stopped it.
struct WorkerFailure {
  Rank rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::string host;
  int pid = 0;
  int exit_code = 0;      // Exit code if signal is 0.
  int signal = 0;         // The signal that ended it, else 0.
  int64_t wall_ms = 0;    // When it was seen, for people.
  std::string message;    // From the error file of torch's @record, else empty.
  std::string traceback;  // The same, or the last in its stderr; at most kMaxTracebackBytes.
  std::string log_tail;   // The last lines of its stderr, at most kMaxTailBytes.
  bool out_of_memory =
      false;  // The kernel killed it for lack of memory; `evidence` says why we think so.
  std::string evidence;     // What its host knows of the death, in one line; mostly empty.
  std::string log_file;     // Where its stderr is kept on its host; empty: nowhere.
  bool no_restart = false;  // A new worker on that host would meet the same: the job ends.
  // It is no worker, but a process that this one had spawned by MPI: "rank 1 of spawn 1". Mostly
  // empty.
  std::string spawned;
  bool hung = false;  // It did not go on, and was ended for it.
};

// One worker's place in a round.
struct WorkerPlace {
  Rank rank = 0;
  int local_rank = 0;
  std::string host;
  // Why others waited for it in vain or lost it, where that is known: "exited with code 0",
  // "left the group before all_reduce #100". One line.
  std::string did = {};
};

// A round that ended with a restart.
struct PastRound {
  Round round = 0;
  std::string reason;                    // One line.
  std::optional<WorkerFailure> failure;  // The first cause, without its log; else it was no worker.
};

// Where a node stands in `NodeUpdate::round`.
//
//       told kPrepare          told kRun           all exited 0
//   kReady ------> kPrepared ----------> kRunning --------> kSucceeded --+
//      ^  \________________________________^ |                           |
//      |          told kRun                  | a worker failed           |
//      |                                     +---------> kFailed --------+
//      +--------------- told kStop, all reaped (next round) -------------+
//   any --signal, keeper gone--> kLeft        any --told kFinish--> kFinished
enum class NodePhase {
  kReady,      // No worker lives; `store_port` is bound and waits for a round.
  kPrepared,   // No worker lives; the round's checks are done, see `unfit`.
  kRunning,    // Workers run.
  kSucceeded,  // All workers of the round exited with 0.
  kFailed,     // A worker failed, see `failures`; others may still run.
  kLeft,       // The node leaves the job for `left_reason`; no worker lives.
  kFinished,   // The outcome was received; no worker lives. The last word of a node.
};

// What a node measures of itself before a round, so that they can be compared.
enum class Figure {
  kProcessor,    // ms of CPU time for fixed work.
  kMemorySpeed,  // GB/s.
  kDevices,      // Accelerators that work.
  kPcieLanes,    // Of accelerators and network cards.
  kFabric,       // Gbit/s of all active InfiniBand and RoCE ports.
  kNetwork,      // Gbit/s of all network cards with a link.
  kClock,        // Its wall clock in s, when it was told to prepare the round.
  kLatency,      // us there and back, with the nearest other node.
  kBandwidth,    // Gbit/s both ways together, with the fastest other node.
};
inline constexpr size_t kFigures = 9;

// By Figure; NaN: unknown. A value; no more than these cross the network.
struct NodeFigures {
  NodeFigures() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Figure figure) { return values[static_cast<size_t>(figure)]; }
  double operator[](Figure figure) const { return values[static_cast<size_t>(figure)]; }

  std::array<double, kFigures> values;
};

// What a node found out about another one when all checked themselves together.
struct PeerFinding {
  enum class Kind {
    kMissing,  // It did not come, or nothing came from it.
    kSlow,     // With everybody.
    kWrong,    // It computes or moves wrong data.
  };
  int node_rank = 0;
  Kind kind = Kind::kSlow;
  std::string why;  // One line.
};

// The same about the way between two nodes that are good with others.
struct LinkFinding {
  int a = 0, b = 0;  // Node ranks.
  std::string why;   // One line.
};

// What a node found out about itself, and about the others.
struct NodeHealth {
  std::string fault;     // Why its workers would be wrong, slow or dead for certain; or empty.
  std::string hardware;  // Only nodes that say the same are compared.
  NodeFigures figures;
  bool joined = false;             // It took part in the joint check, which says:
  std::vector<PeerFinding> peers;  // who is bad,
  std::vector<LinkFinding> links;  // which way is,
  std::string note;                // and what is wrong without a name, in one line.
};

// The whole state of a node.
struct NodeUpdate {
  Round round = 0;  // The last round this node was told to prepare, run or stop, 0 if none.
  NodePhase phase = NodePhase::kReady;
  // kReady: what it offers as node rank 0.
  uint16_t store_port = 0;        // MASTER_PORT: where its candidate for the master store listens.
  uint16_t coordinator_port = 0;  // Reserved for the coordinator of JAX; 0: there is none.
  bool worker_store = false;      // Rank 0 is to serve the store: `store_port` is only reserved.
  std::string unfit;              // kPrepared: why this node cannot run the round; empty: it can.
  NodeHealth health;              // kPrepared.
  // Of `round`, in the order seen; at most 16. Told in all later states of the round.
  std::vector<WorkerFailure> failures;
  // The local ranks of workers that exited with 0, in that order; at most 16.
  std::vector<int> exited = {};
  // kRunning, kFailed: the local ranks of workers that have not ended and have given up, see
  // HasGivenUp; at most 16.
  std::vector<int> given_up = {};
  std::string left_reason;  // kLeft: "SIGINT", "its keeper was killed" …
  // kLeft: what this node exits with, and so does the job if it ends for this; but after a signal
  // the others exit with kExitNodeStopped.
  int left_exit_code = 0;
  // kReady: the highest step that a worker of `round` told here; unset: none told one.
  std::optional<int64_t> step = {};
  // kRunning: how often rank 0 of the round, which is here, said that it is at a good moment to
  // stop. The first time is told, and those later for which the directive asks.
  int64_t boundaries = 0;
  // Why this node will soon be gone or is not to be used any more; empty: it is.
  std::string drain_reason = {};
  Duration drain_within = Duration::zero();  // Until then it is gone; zero: that is not known.
  // While its workers run: the node ranks of those that it did not reach in two looks in a row; at
  // most kMaxUnreached.
  std::vector<int> unreached = {};
};

// One node's place in one round: O(1) in the size of the job.
struct Assignment {
  Round round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  int node_rank = 0;
  int num_nodes = 1;
  Rank first_rank = 0;  // Of this node's workers; the others follow.
  int world_size = 1;
  std::string master_addr;  // A literal, IPv6 without brackets.
  uint16_t master_port = 0;
  uint16_t coordinator_port = 0;  // At master_addr, reserved for JAX; 0: there is none.
  bool worker_store = false;      // Rank 0 serves the master store; nobody does before it.
  Preflight preflight = Preflight::kQuick;  // How the nodes are to prepare it.
  // For node rank 0 alone, and so not O(1) for it: where the members' workers may come from.
  std::vector<std::string> members;
  std::string notice;  // The same: what the preflight found worth a word, in one line.
  // What the round's workers know each other by: for their environment alone, never for a log or a
  // file. Hexadecimal; empty: there is none.
  std::string comm_secret = {};
};

// How the job ended.
struct Outcome {
  int exit_code = 0;
  std::string reason;          // One line; empty on success.
  bool worker_failed = false;  // `failures[0]` is why it ended; else `reason` says it all.
  std::string cause_reason =
      {};  // Why that one is held for the first cause; empty: it is the only.
  // Where the first cause only waited for others, or missed one: those of the round that did not
  // fail, if they are few.
  std::vector<WorkerPlace> awaited = {};
  std::vector<std::string> excluded = {};  // Who was, and why; the last 16 of them.
  std::vector<PastRound> history = {};     // Restarts in their order, at most the last 16.
  std::vector<WorkerFailure> failures;     // First cause first; at most 16.
  int total_failures = 0;
  int restart_count = 0;  // Restarts that workers saw.
  int uncounted = 0;      // Of these, how many do not count against the budget.
  // This node prints the whole report. The others are told the first failure only, and of that
  // no log.
  bool report = false;
};

// Where a job stands, see RoundTable.
enum class JobState { kForming, kPreflight, kRunning, kStopping, kOver };

// What has happened to a node of the job, for the people at all of them.
struct News {
  uint64_t number = 0;  // They count up. A rendezvous that was restarted begins anew.
  std::string text;     // One line.
};

// What the rendezvous wants of a node now.
struct Directive {
  enum class Kind {
    kWait,     // Stay ready; `reason` says who is awaited.
    kPrepare,  // Check that `assignment` can be run; start no worker.
    kRun,      // Run `assignment`.
    kStop,     // Stop the workers of `round`, then be ready; `reason` says why.
    kFinish,   // The job is over: stop everything, say kFinished, exit with `outcome`.
  };
  Kind kind = Kind::kWait;
  Round round = 0;        // kPrepare, kRun, kStop.
  std::string reason;     // kWait, kStop: one line for the person.
  Assignment assignment;  // kPrepare, kRun.
  Outcome outcome;        // kFinish.
  // The latest, oldest first; at most kMaxNews. Each comes again and again and is told once.
  std::vector<News> news = {};
  bool wants_boundary = false;  // kRun: the round is to end at the next good moment.
};

// One node as the rendezvous sees it, for people.
struct NodeStatus {
  std::string host;
  std::string address;
  int pid = 0;
  int node_rank = -1;  // In the latest round; -1: not in it.
  int nproc = 1;
  std::string state;                       // "running", "ready", "spare", "silent for 7 s" …
  Rank first_rank = 0;                     // Of its workers in the latest round.
  Duration silent_for = Duration::zero();  // Since the last word from it.
  std::string drain_reason = {};  // Why it is not to be used any more; empty: it is. One line.
  NodeFigures figures = {};       // As it measured them before the latest round that was checked.
};

// One round of a job, for people. Times are in milliseconds since 1970 by the rendezvous' clock; 0:
// it has not come to that, or that was before the rendezvous was restarted.
struct RoundStatus {
  Round round = 0;
  int64_t began_ms = 0;     // Its members were chosen.
  int64_t ran_ms = 0;       // Its workers were to start,
  int64_t stopping_ms = 0;  // and to stop.
  int64_t stopped_ms = 0;   // None was left.
  int nodes = 0;
  int world_size = 0;
  int restarts = 0;    // That workers had seen when it began.
  std::string reason;  // Why it ended, in one line.
};

// One job as the rendezvous sees it, for people.
struct JobStatus {
  std::string job_id;
  JobState state = JobState::kForming;
  std::string explanation;  // Why the job stands where it stands: one line.
  Round round = 0;
  int min_nodes = 1;
  int max_nodes = 1;
  int restarts = 0;   // That workers saw,
  int uncounted = 0;  // of which so many do not count against the budget.
  int max_restarts = 0;
  int exit_code = 0;                     // kOver: of the job.
  int total_nodes = 0;                   // That are here,
  std::vector<NodeStatus> nodes;         // of which these: who is awaited first, then by rank.
  std::vector<RoundStatus> rounds = {};  // The latest in their order, at most kMaxRoundsShown.
  int64_t began_ms = 0;                  // When the first node came, as in RoundStatus; 0: none.
  int64_t told_ms = 0;                   // When this was said, by the same clock.
  Duration ran_for = Duration::zero();   // Workers ran for so long, over all rounds.
  int world_size = 0;                    // Workers in the latest round.
  // The first cause of the latest round that a worker ended; unset: none did, or that was before
  // the rendezvous was restarted.
  std::optional<WorkerFailure> failure = {};
  Round failed_round = 0;                  // Which round that was.
  std::string notice = {};                 // What the checks of the latest round found; one line.
  std::vector<std::string> excluded = {};  // Nodes that checks excluded, and why; the last 16.
};

}  // namespace hlaunch
