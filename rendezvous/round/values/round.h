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
#include "rendezvous/round/values/limits.h"

// The values that agents and the rendezvous exchange. All are plain values: copy them. They
// describe states, not events: an agent always sends its whole NodeUpdate, the rendezvous always
// sends the node's whole Directive. A message that is lost, doubled or late therefore does no harm,
// and after a reconnect each side sends its latest state again.

namespace hlaunch {

// The time-outs of the two times rule. The rendezvous' values hold; an agent gets them when it
// joins.
struct Lease {
  Duration lease = std::chrono::seconds(5);  // Silence after which a node is suspect.
  // Silence after which an agent stops its workers.
  Duration loss_limit = std::chrono::seconds(30);
  // Further silence until its place is given away.
  Duration margin = std::chrono::seconds(10);
};

// The checks that nodes make before the workers of a round start.
enum class Preflight {
  kOff,
  // All reach the master store, and each node says of itself what it can tell at once.
  kQuick,
  kFull,  // The same, and measurements for some seconds.
};

// What happens to a node that is found to be bad. A node that cannot reach the master store is
// always excluded, because it cannot run.
enum class PreflightAction {
  kWarn,     // It is only named.
  kExclude,  // It is excluded, as long as the job can do without it.
  kFail,     // The job ends.
};

// What happens to a job when the node dies that hosts its rendezvous.
enum class HostLoss {
  kEnd,  // It ends: no other node has the record.
  // The other nodes have the record, and one of them goes on. With two nodes it needs proof of the
  // death.
  kWait,
  // The same, but with two nodes silence is enough: if only the link between them is cut, both go
  // on.
  kContinue,
};

// What happens to a node that joins while the running round is smaller than it may be.
enum class OnJoin {
  kRestart,    // The round ends at a good moment, and the next one includes the node.
  kNextRound,  // The node stands by until the round ends for another reason.
  kIgnore,     // The same, but it only replaces a lost node: no round is larger than the first.
};

// What happens to a job that lost a node and has enough nodes without it.
enum class OnLoss {
  kShrink,  // The next round begins without it.
  kWait,    // The next round waits for another node, until the join time-out.
  kFail,    // The job ends.
};

// The rules of a whole job. Every node brings its own from its command line. The nodes must agree
// on min_nodes and max_nodes; where the rest differs, the rendezvous' own policy holds.
struct JobPolicy {
  int min_nodes = 1;
  int max_nodes = 1;
  int spares = 0;  // Nodes expected beyond max_nodes, to stand by.
  int max_restarts = 0;
  // The longest time from the first join, or from the end of a round, to the next round.
  Duration join_timeout = std::chrono::seconds(600);
  // The time for more nodes to come: from min_nodes present to the start, and from a join in a
  // running round to the next round.
  Duration last_call = std::chrono::seconds(30);
  Lease lease;
  Preflight preflight = Preflight::kQuick;
  PreflightAction preflight_action = PreflightAction::kExclude;
  // Percent of the round's nodes that may be excluded for being bad, but at least one node. If more
  // are bad, the fault is likely not theirs.
  int preflight_share = 25;
  // Restarts in a row that may bring the job no further; 0: no limit.
  int max_stuck_restarts = 0;
  HostLoss on_host_loss = HostLoss::kEnd;
  // A restart counts against max_restarts for this long; zero: forever.
  Duration restart_window = Duration::zero();
  // The pause before a restart; doubles with each restart that follows soon. Zero: none.
  Duration restart_pause = Duration::zero();
  // Failures as ExitSet reads them. A restart follows only those in `restart_on` (empty: all), and
  // never those in `end_on`. A restart after those in `free_on` is not charged.
  std::string restart_on = {}, end_on = {}, free_on = {};
  OnJoin on_join = OnJoin::kRestart;
  OnLoss on_loss = OnLoss::kShrink;
  // The least time between two rounds that end because nodes have joined.
  Duration grow_interval = Duration::zero();
  // The time for workers to reach a good moment once a round is to grow.
  Duration boundary_limit = Duration::zero();
  int node_multiple = 1;  // The number of nodes in a round is a multiple of this.
  // What happens to nodes that reach the rendezvous, but not the other nodes, while workers run.
  PreflightAction on_partition = PreflightAction::kExclude;
  // So many nodes were started, each once, and nobody starts one of them again. 0: unknown.
  int started_nodes = 0;
};

// The description of a node, sent once when it joins.
struct NodeInfo {
  std::string job_id;
  std::string node_id;
  Incarnation incarnation = 0;
  std::string host;  // Host name: for people, and for the natural order of ranks.
  int pid = 0;       // Of the agent.
  // When the agent started, in milliseconds since its host started. Of two agents on one host, the
  // later one is the one that lives.
  int64_t started_ms = 0;
  int nproc = 1;                 // Workers on this node.
  std::optional<int> node_rank;  // Explicit, or the scheduler's index.
  JobPolicy policy;
  // This node's address on its route to the rendezvous, a literal without brackets. Loopback if the
  // two share a host.
  std::string address;
  // The other addresses of its interfaces, as SelectAnnounced returns them: its workers may come to
  // the master store from any of these.
  std::vector<std::string> other_addresses = {};
  bool answers = true;      // Its agent answers questions about its ranks; older agents cannot.
  uint16_t voter_port = 0;  // Its port as a voter; 0 if it cannot be one.
  // Set by the rendezvous, not by the node: the rendezvous' address on its route to this node.
  std::string route_address;
  // Set by the rendezvous, too: where this node's stream comes from; empty if unknown.
  std::string seen_address;
};

// What a worker's host, or the rendezvous, found out about its failure. Judgements and advice read
// this; `evidence` says the same to people.
enum class FailureKind {
  kOther,            // What it exited with and wrote is all there is.
  kStalled,          // Its heartbeats ceased.
  kStalledWaiting,   // Likewise, and by its stacks it waited for other workers.
  kHangs,            // It, or its device, holds up a collective.
  kSilent,           // It did not write a line that was awaited.
  kWroteLine,        // It wrote a line for which it is to be ended.
  kKernelAssertion,  // An assertion in a kernel of its device failed.
  kImportFailed,     // Its Python could not import something.
  kMpiPeerLost,      // Its MPI library had lost another rank.
  kWarnedBefore,     // The preflight of the round had warned, and it may be a consequence.
};

// The failure of a worker: why it no longer runs, although it was not told to stop.
struct WorkerFailure {
  Rank rank = 0;
  int local_rank = 0;
  int node_rank = 0;
  std::string host;
  int pid = 0;
  int exit_code = 0;      // Exit code if signal is 0.
  int signal = 0;         // The signal that ended it, else 0.
  int64_t wall_ms = 0;    // When the failure was seen, for people.
  std::string message;    // From the error file of torch's @record, else empty.
  std::string traceback;  // From that file, or the last in its stderr; at most kMaxTracebackBytes.
  // The last lines of its stderr, at most kMaxTailBytes; after SIGABRT without C++'s stacks.
  std::string log_tail;
  // The kernel killed it for lack of memory; `evidence` says why we think so.
  bool out_of_memory = false;
  FailureKind kind = FailureKind::kOther;
  std::string evidence;     // What its host knows of its death, in one line; mostly empty.
  std::string log_file;     // Where its stderr is kept on its host; empty if it is not.
  bool no_restart = false;  // A new worker on that host would fail as well: the job ends.
  // Set if the process that failed is not the worker but one that it spawned by MPI: "rank 1 of
  // spawn 1". Mostly empty.
  std::string spawned;
  bool hung = false;  // It made no progress and was ended for that.
};

// One worker's place in a round.
struct WorkerPlace {
  Rank rank = 0;
  int local_rank = 0;
  std::string host;
  // Why others waited for it in vain or lost it, if that is known: "exited with code 0", "left the
  // group before all_reduce #100". One line.
  std::string did = {};
  bool exited = false;  // It exited with code 0.
};

// A round that ended with a restart.
struct PastRound {
  Round round = 0;
  std::string reason;  // One line.
  // The first cause, without its log; unset if it was no worker.
  std::optional<WorkerFailure> failure;
};

// How far a node is in `NodeUpdate::round`.
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
  kFinished,   // The outcome was received; no worker lives. A node's last message.
};

// The figures that a node measures before a round, so that nodes can be compared.
enum class Figure {
  kProcessor,    // ms of CPU time for fixed work.
  kMemorySpeed,  // GB/s.
  kDevices,      // Accelerators that work.
  kPcieLanes,    // PCIe lanes of accelerators and network cards.
  kFabric,       // Gbit/s of all active InfiniBand and RoCE ports.
  kNetwork,      // Gbit/s of all network cards with a link.
  kClock,        // Its wall clock in s, when it was told to prepare the round.
  kLatency,      // Round trip to the nearest other node, in us.
  kBandwidth,    // Gbit/s in both directions together, with the fastest other node.
};
inline constexpr size_t kFigures = 9;

// The figures of a node, by Figure; NaN if unknown. A value; only these cross the network.
struct NodeFigures {
  NodeFigures() { values.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Figure figure) { return values[static_cast<size_t>(figure)]; }
  double operator[](Figure figure) const { return values[static_cast<size_t>(figure)]; }

  std::array<double, kFigures> values;
};

// What a node found out about another node in the joint check.
struct PeerFinding {
  enum class Kind {
    kMissing,  // It did not take part, or nothing came from it.
    kSlow,     // It is slow with all other nodes.
    kWrong,    // It computes or moves wrong data.
  };
  int node_rank = 0;
  Kind kind = Kind::kSlow;
  std::string why;  // One line.
};

// What a node found out about the link between two nodes that are both good with other nodes.
struct LinkFinding {
  int a = 0, b = 0;  // Node ranks.
  std::string why;   // One line.
};

// What a node found out about itself and about the other nodes.
struct NodeHealth {
  // Why its workers would certainly be wrong, slow or dead; empty if they would not.
  std::string fault;
  std::string hardware;  // Only nodes with the same text are compared.
  NodeFigures figures;
  bool joined = false;             // It took part in the joint check, which found:
  std::vector<PeerFinding> peers;  // bad nodes,
  std::vector<LinkFinding> links;  // bad links,
  std::string note;  // and what is wrong with no node or link in particular, in one line.
};

// The whole state of a node.
struct NodeUpdate {
  Round round = 0;  // The last round this node was told to prepare, run or stop, 0 if none.
  NodePhase phase = NodePhase::kReady;
  // kReady: what this node offers in case it becomes node rank 0.
  uint16_t store_port = 0;        // MASTER_PORT: where its candidate for the master store listens.
  uint16_t coordinator_port = 0;  // Reserved for the coordinator of JAX; 0 if there is none.
  // The worker with rank 0 serves the store: `store_port` is only reserved.
  bool worker_store = false;
  std::string unfit;  // kPrepared: why this node cannot run the round; empty if it can.
  NodeHealth health;  // Set in kPrepared.
  // The failures of `round`, in the order seen; at most 16. All later states of the round repeat
  // them.
  std::vector<WorkerFailure> failures;
  // The local ranks of workers that exited with 0, in the order of their exits; at most 16.
  std::vector<int> exited = {};
  // kRunning, kFailed: the local ranks of workers that have not ended and have given up, see
  // HasGivenUp; at most 16.
  std::vector<int> given_up = {};
  std::string left_reason;  // kLeft: "SIGINT", "its keeper was killed" …
  // kLeft: the exit code of this node, and of the job if it ends for this; but after a signal the
  // other nodes exit with kExitNodeStopped.
  int left_exit_code = 0;
  // kReady: the highest step that a worker of `round` on this node reported; unset if none did.
  std::optional<int64_t> step = {};
  // kRunning: how often rank 0 of the round, if it runs on this node, said that it is at a good
  // moment to stop. The node sends the first time, and later times only while the directive asks
  // for them.
  int64_t boundaries = 0;
  // Why this node will soon be gone or must not be used any more; empty if neither.
  std::string drain_reason = {};
  Duration drain_within = Duration::zero();  // It is gone within this time; zero if unknown.
  // While its workers run: the node ranks of the nodes that it did not reach in two checks in a
  // row; at most kMaxUnreached.
  std::vector<int> unreached = {};
  // kRunning, kFailed: why no worker of the round lives on this node although none was told to have
  // ended: mostly, its agent ended them. One line; empty if that is not so.
  std::string workers_lost = {};
};

// One node's place in one round: O(1) in the size of the job.
struct Assignment {
  Round round = 0;
  int restart_count = 0;
  int max_restarts = 0;
  int node_rank = 0;
  int num_nodes = 1;
  Rank first_rank = 0;  // The first of this node's workers; the others follow.
  int world_size = 1;
  std::string master_addr;  // A literal, IPv6 without brackets.
  uint16_t master_port = 0;
  uint16_t coordinator_port = 0;  // At master_addr, reserved for JAX; 0 if there is none.
  bool worker_store = false;      // Rank 0 serves the master store; there is none before it starts.
  Preflight preflight = Preflight::kQuick;  // How the nodes prepare the round.
  // Only for node rank 0, and so not O(1) for it: the addresses from which the members' workers may
  // come.
  std::vector<std::string> members;
  // Only for node rank 0: what the preflight found worth reporting, in one line.
  std::string notice;
  // The secret by which the round's workers recognize each other: only for their environment, never
  // for a log or a file. Hexadecimal; empty if there is none.
  std::string comm_secret = {};
};

// How the job ended.
struct Outcome {
  int exit_code = 0;
  std::string reason;          // One line; empty on success.
  bool warned = false;         // `reason` ends with what the preflight of the round had found.
  bool refused = false;        // Nodes did not come, and `reason` names one that was refused.
  bool worker_failed = false;  // `failures[0]` is why the job ended; else `reason` says it all.
  // Why `failures[0]` is taken for the first cause; empty if it is the only failure.
  std::string cause_reason = {};
  // If the first cause only waited for others, or missed one: the workers that it missed, as far as
  // they are known and few.
  std::vector<WorkerPlace> awaited = {};
  std::vector<std::string> excluded = {};  // Nodes that were excluded, and why; the last 16.
  std::vector<PastRound> history = {};     // Restarts, oldest first; at most the last 16.
  std::vector<WorkerFailure> failures;     // First cause first; at most 16.
  int total_failures = 0;
  int restart_count = 0;  // Restarts that workers saw.
  int uncounted = 0;      // Those of them that do not count against the budget.
  // This node prints the whole report. The other nodes are told only the first failure, without its
  // log.
  bool report = false;
};

// The state of a job, see RoundTable.
enum class JobState { kForming, kPreflight, kRunning, kStopping, kOver };

// An event at one node of the job, for the people at all nodes.
struct News {
  uint64_t number = 0;  // Counts up. A rendezvous that was restarted begins anew.
  std::string text;     // One line.
};

// What the rendezvous orders a node to do now.
struct Directive {
  enum class Kind {
    kWait,     // Stay ready; `reason` says what is awaited.
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
  // The latest news, oldest first; at most kMaxNews. Each arrives many times and is shown once.
  std::vector<News> news = {};
  bool wants_boundary = false;  // kRun: the round must end at the next good moment.
};

// Where a node stands, as the rendezvous sees it.
enum class NodeStanding {
  kUnknown,       // The rendezvous is of a release that does not tell it.
  kRunning,       // Its workers run.
  kSucceeded,     // All its workers exited with 0.
  kFinished,      // It has been told how the job ended.
  kChecking,      // It prepares the round.
  kFit,           // It is prepared.
  kUnfit,         // The preflight found that it cannot take part.
  kReady,         // It runs no worker, and waits for a round.
  kSpare,         // Likewise, and the round is full.
  kDrained,       // It is not in the round, and must not be used.
  kStopping,      // Its workers are being stopped.
  kSilent,        // Nothing is heard from it on its connection.
  kNotConnected,  // Its connection broke.
  kLeft,          // It is gone.
};
// The words for them, by their numbers; programs read these, so they stay.
inline constexpr const char* kStandingWords[] = {
    "unknown", "running", "succeeded", "finished", "checking", "fit",           "unfit",
    "ready",   "spare",   "drained",   "stopping", "silent",   "not connected", "left"};

// One node as the rendezvous sees it, for people.
struct NodeStatus {
  std::string host;
  std::string address;
  int pid = 0;
  int node_rank = -1;  // In the latest round; -1: not in it.
  int nproc = 1;
  std::string state = {};                  // "running", "ready", "spare", "silent for 7 s" …
  Rank first_rank = 0;                     // The first of its workers in the latest round.
  Duration silent_for = Duration::zero();  // Since its last message.
  // Why it must not be used any more, in one line; empty if it may.
  std::string drain_reason = {};
  NodeFigures figures = {};  // As it measured them before the latest round that was checked.
  NodeStanding standing = NodeStanding::kUnknown;  // What `state` says to people.
};

// One round of a job, for people. Times are in milliseconds since 1970 by the rendezvous' clock; 0
// if that has not happened yet, or happened before the rendezvous was restarted.
struct RoundStatus {
  Round round = 0;
  int64_t began_ms = 0;     // Its members were chosen.
  int64_t ran_ms = 0;       // Its workers were told to start.
  int64_t stopping_ms = 0;  // Its workers were told to stop.
  int64_t stopped_ms = 0;   // No worker was left.
  int nodes = 0;
  int world_size = 0;
  int restarts = 0;    // Restarts that workers had seen when it began.
  std::string reason;  // Why it ended, in one line.
};

// One job as the rendezvous sees it, for people.
struct JobStatus {
  std::string job_id;
  JobState state = JobState::kForming;
  std::string explanation;  // Why the job is in its state, in one line.
  Round round = 0;
  int min_nodes = 1;
  int max_nodes = 1;
  int restarts = 0;   // Restarts that workers saw.
  int uncounted = 0;  // Those of `restarts` that do not count against the budget.
  int max_restarts = 0;
  int exit_code = 0;              // kOver: the exit code of the job.
  int total_nodes = 0;            // Nodes that are here.
  std::vector<NodeStatus> nodes;  // At most kMaxNodesShown: suspect ones first, then by rank.
  // The latest rounds, oldest first; at most kMaxRoundsShown.
  std::vector<RoundStatus> rounds = {};
  int64_t began_ms = 0;  // When the first node came, as in RoundStatus; 0 if none came.
  int64_t told_ms = 0;   // When this status was made, by the same clock.
  Duration ran_for = Duration::zero();  // How long workers ran, over all rounds.
  int world_size = 0;                   // Workers in the latest round.
  // The first cause of the latest round that ended because a worker failed; unset if there was
  // none, or if that was before the rendezvous was restarted.
  std::optional<WorkerFailure> failure = {};
  Round failed_round = 0;                  // Which round that was.
  std::string notice = {};                 // What the checks of the latest round found; one line.
  std::vector<std::string> excluded = {};  // Nodes that checks excluded, and why; the last 16.
};

// What a rendezvous tells of its jobs.
struct JobList {
  std::vector<JobStatus> jobs;
  int total = 0;       // The number of all jobs; `jobs` may be only the first ones.
  std::string leader;  // The service that answered, if it is one of several; else empty.
};

}  // namespace hlaunch
