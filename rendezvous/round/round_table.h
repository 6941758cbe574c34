// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/preflight.h"
#include "rendezvous/round/quorum.h"
#include "rendezvous/round/restart_policy.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// One job as a state machine: who is here, which round, what every node is to do. It takes
// whole states (NodeUpdate) and gives whole states (Directive), so a message that is lost,
// doubled or late changes nothing. No I/O, no lock, no clock: `now` is an argument and never
// goes back. A message costs O(log n); O(n) only when a round starts, stops or ends and, at
// most once a second, or 1 ms per node, in a large job, to say who is awaited or joins.
//
//             quorum              all are fit              all succeeded, or a failure
//   kForming ---------> kPreflight ------------> kRunning ----------------------------> kOver
//     ^   | (one node, or no preflight)             |         and no restart is left
//     |   +-----------------------------------------^     (also by join time-out, End, or if
//     |                   |                         |      too few nodes are fit)
//     |                   | a node is unfit or gone | a failure and restarts are left,
//     |                   v                         v or nodes have joined
//     +---------------- kStopping <-----------------+
//       all have stopped
//
// A failure that looks like the consequence of another one, see FirstCause, is judged after its
// CauseWindow or with the one that explains it, whichever comes first.
//
// A round is proposed with kPreflight: it has its number, members and ranks, and no workers. Only
// failures are charged to the restarts.
//
// A node is present, suspect (silent for the lease, or its stream is broken: a word, and it
// begins no round), lost (silent for loss limit + margin, or proven dead) or left (by its own
// word). Only the last two change a running round. A node beyond max_nodes is a spare: it stands
// by and is in the next round if somebody is missing.
//
// All that must survive this process is in Record(); durable_version() tells when it changed, and
// whoever keeps records does so before any node is told what follows from the change.
//
// Time in which Tick was due and did not come (this process was stopped or starved) counts for
// no deadline: the nodes could not be heard then.
//
// Belongs to one thread, or to the holder of its owner's lock.
class RoundTable {
 public:
  using State = JobState;

  // A conversation that is over without an outcome.
  struct Ended {
    std::string node_id;
    Incarnation incarnation = 0;
    absl::Status status;
  };

  explicit RoundTable(const JobRules& rules);
  // Goes on with what `record` kept of this job: its members are awaited, and none is lost before
  // loss limit and margin have passed anew.
  RoundTable(const JobRules& rules, const JobRecord& record, Instant now);
  RoundTable(const RoundTable&) = delete;  // Its places point to each other.
  RoundTable& operator=(const RoundTable&) = delete;

  // A node joins, or its known incarnation takes up the conversation again.
  //
  // Errors:
  //   InvalidArgument - nonsense in `info` or `update`.
  //   FailedPrecondition - the node does not fit the job, or the job is over or full.
  //   AlreadyExists - a live node holds this node id or node rank.
  //   Unavailable - a node that seems to live holds it and is being asked, or one that started
  //     later on the same host; to be tried again.
  //   Aborted - this incarnation was given up, or belongs to rounds nobody here knows of.
  absl::Status Join(const NodeInfo& info, const NodeUpdate& update, bool local, Instant now);

  // The node's state, which is also a sign of life. One that is older than what is known
  // changes nothing.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this place (any more).
  //   InvalidArgument - the update contradicts what the node was told.
  absl::Status Update(absl::string_view node_id, Incarnation incarnation, const NodeUpdate& update,
                      Instant now);

  // A sign of life. O(log n).
  void Heard(absl::string_view node_id, Incarnation incarnation, Instant now);

  // The stream is gone; the node may come back.
  void Disconnected(absl::string_view node_id, Incarnation incarnation, Instant now);

  // Proof that the node is dead and none of its workers lives.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold a place (any more).
  absl::Status NodeDied(absl::string_view node_id, Incarnation incarnation,
                        absl::string_view reason, Instant now);

  // The job ends like this; nothing if it has ended before.
  void End(const Outcome& outcome, Instant now);

  // Does what is due. To be called at NextDeadline.
  void Tick(Instant now);

  // When Tick is due; none in a job whose only node is local.
  std::optional<Instant> NextDeadline() const;

  // What `node_id` is to do now; kWait for one that is not here.
  Directive DirectiveFor(absl::string_view node_id) const;

  // The place of node rank 0 in the latest round, as it is told of it. O(n).
  Assignment FirstAssignment() const;

  // The nodes whose directive changed since the last call, or who should hear it again.
  std::vector<std::string> TakeChanged();
  // The conversations that ended since the last call.
  std::vector<Ended> TakeEnded();
  // The nodes to be asked for a sign of life since the last call.
  std::vector<std::string> TakeAsked();

  // What must survive, and a number that grows with every change of it. Of a job that is over
  // only those are members who have not heard so.
  JobRecord Record() const;
  uint64_t durable_version() const { return durable_version_ + (AllFinished() ? 1 : 0); }

  State state() const { return state_; }
  Round round() const { return round_; }
  // Why the job stands where it stands, in one line.
  std::string Explain(Instant now) const;
  // The same with the nodes.
  JobStatus Status(Instant now) const;
  // The job is over and every node that is still here has said so.
  bool AllFinished() const { return state_ == State::kOver && finished_ == here_; }
  // No round has begun and no node is here.
  bool Deserted() const { return round_ == 0 && here_ == 0; }
  // This incarnation has a place here.
  bool Holds(absl::string_view node_id, Incarnation incarnation) const;
  // Hosts of those that have not.
  std::vector<std::string> Unfinished() const;

 private:
  struct Place {
    NodeInfo info;
    bool local = false;
    bool attached = false;
    bool left = false;         // Said kLeft: here only to be told kFinish.
    bool finished = false;     // Said kFinished.
    bool changed = false;      // Is in `changed_`.
    Incarnation claimant = 0;  // That wants this place, and why the holder was asked
    Instant asked;             // then for a sign of life.
    Instant heard;
    Instant since;                        // Joined.
    std::list<Place*>::iterator silence;  // In `by_silence_`, unless local.

    NodePhase phase = NodePhase::kReady;  // In round `seen`.
    Round seen = 0;
    uint16_t store_port = 0;
    uint16_t coordinator_port = 0;
    bool worker_store = false;
    int left_exit_code = 0;
    std::string left_reason;

    Round told = 0;  // The last round it was a member of; below, its place there.
    int node_rank = 0;
    Rank first_rank = 0;
    size_t failures_seen = 0;
    bool prepared = false;  // It answered the preflight:
    std::string unfit;      // why it cannot run the round; empty: it can.
    NodeHealth health;
    bool suspected = false;  // It was bad when the round before was prepared.
    bool succeeded = false;
    bool stopped = false;  // None of its workers lives, by its own word.
  };
  using Places = std::map<std::string, Place, std::less<>>;

  Instant Observe(Instant now);  // `now` less all pauses.
  absl::Status CheckInfo(const NodeInfo& info) const;
  absl::Status CheckFits(const NodeInfo& info, const NodeUpdate& update) const;
  absl::Status Ask(Place& holder, const NodeInfo& claimant, Instant t);
  absl::Status Vacate(const NodeInfo& info, Instant t);
  Place& Insert(const NodeInfo& info, bool local, Instant t);
  Place* Find(absl::string_view node_id, Incarnation incarnation);
  void Touch(Place& place, Instant t);
  void Count(const Place& place, int sign);

  absl::Status Contradiction(const Place& place, const NodeUpdate& update) const;
  absl::Status Apply(Place& place, const NodeUpdate& update, Instant t);
  void AbsorbFailures(Place& place, const NodeUpdate& update, Instant t);
  void Enter(Place& place, const NodeUpdate& update);
  void Depart(Place& place, const FailureEvent& event);
  void Remove(Place& place, const FailureEvent& event, absl::Status status);
  void GiveUp(Incarnation incarnation, absl::string_view why);
  void JudgeFailures(Instant t);
  std::vector<WorkerPlace> NotFailed() const;
  void Decide(const FailureEvent& event, const std::string& cause_reason = "");
  void StopRound(std::string cause);
  void MarkStopped(Place& place);
  bool InRound(const Place& place) const { return round_ > 0 && place.told == round_; }
  bool Suspect(const Place& place, Instant t) const;

  void Settle(Instant t);
  void Form(Instant t);
  Duration LookPause() const;
  void Consider(Instant t);
  std::vector<Candidate> Candidates(std::vector<Place*>* places, Instant t);
  void Start(const std::vector<Place*>& order, Instant t);
  Duration PreflightTime() const;
  void JudgePreflight(Instant t);
  void MeasureAgain(const PreflightVerdict& verdict, const std::vector<Place*>& members);
  void Exclude(const PreflightVerdict& verdict, const std::vector<Place*>& members,
               const std::string& reason);
  void ConsiderGrowth(Instant t);
  std::vector<Place*> Members();
  Assignment AssignmentOf(int node_rank, Rank first_rank) const;
  void Finish(Outcome outcome);
  void LoseSilent(Instant t);
  void Change(Place& place);
  void ChangeAll();
  void ChooseReporter();
  std::string StandingBy(const Place& place) const;
  std::string StoppingReason() const;
  std::string PreflightReason() const;
  std::string StateOf(const Place& place, Instant t) const;

  const JobRules rules_;
  State state_ = State::kForming;
  Round round_ = 0;

  Places places_;
  std::map<int, Place*> by_rank_;  // Explicit node ranks.
  std::list<Place*> by_silence_;   // Remote places, the longest silent one first.
  // Incarnations that lost their place to one on another host, and whose workers may live until
  // they must have stopped them by themselves.
  std::vector<Ghost> ghosts_;
  std::map<Incarnation, std::string> given_up_;  // Why; the last of them.
  std::deque<Incarnation> given_up_order_;
  std::set<std::string, std::less<>> unfit_;  // Nodes that a preflight excluded; at most kMaxNodes.
  int here_ = 0;                              // Places that have not left; of those
  int attached_ = 0;                          // … with a stream, and
  int finished_ = 0;                          // … that said kFinished.

  std::string cause_;   // Why the last round stopped.
  std::string reason_;  // kForming: who is awaited; kStopping: the cause.
  Instant forming_since_;
  std::optional<Instant> join_deadline_;
  std::optional<Instant> last_call_ends_;
  std::optional<Instant> consider_at_;  // Set if a look at all nodes is owed.
  std::optional<Instant> preflight_ends_;
  std::optional<Instant> grow_at_;  // kRunning: when those who wait get their round.
  std::string growth_;              // And who that is.
  Instant considered_;

  // The round.
  int round_nodes_ = 0;
  int prepared_ = 0;
  int succeeded_ = 0;
  int stopped_ = 0;
  int world_size_ = 0;
  std::string master_addr_;
  uint16_t master_port_ = 0;
  uint16_t coordinator_port_ = 0;
  bool worker_store_ = false;
  std::map<std::string, int, std::less<>> held_ranks_;  // By node id.
  std::string notice_;                                  // What its preflight found worth a word.

  bool measured_again_ = false;  // The round before was proposed, and not begun, for that.
  std::vector<std::string> excluded_;
  int total_excluded_ = 0;  // Because they were bad.
  int restarts_ = 0;
  std::vector<WorkerFailure> failures_;  // Of the last round; once judged, the first cause first.
  int total_failures_ = 0;
  size_t judged_ = 0;                // How many of them were looked at together.
  std::set<Rank> failed_ranks_;      // All of them.
  std::optional<Instant> judge_at_;  // kRunning: when what has failed is judged, at the latest.
  std::vector<PastRound> history_;   // Rounds that ended with a restart; the last of them.
  Outcome outcome_;
  std::string reporter_;  // kOver: the node that prints the whole report.

  std::vector<std::string> changed_;
  std::vector<Ended> ended_;
  std::vector<std::string> asked_;
  uint64_t durable_version_ = 0;
  Instant last_now_;
  Duration paused_{};
};

}  // namespace hlaunch
