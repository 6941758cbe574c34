// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/news/news_board.h"
#include "rendezvous/round/job_record.h"
#include "rendezvous/round/round.h"
#include "rendezvous/table/durable_record.h"
#include "rendezvous/table/job_words.h"
#include "rendezvous/table/membership.h"
#include "rendezvous/table/round_machine.h"

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
// A failure that looks like the consequence of another one, see FirstCause, is judged with the one
// that explains it, or with a node that is lost, see FindLostNode; at the latest after the lease.
//
// A restart may have to pause first: then kForming lasts as long at least, from its begin.
//
// A round is proposed with kPreflight: it has its number, members and ranks, and no workers. Only
// failures are charged to the restarts, and not all of them, see AfterFailure.
//
// A node is present, suspect (silent for the lease, or its stream is broken: a word, and it
// begins no round), lost (silent for loss limit + margin, or proven dead) or left (by its own
// word). Only the last two change a running round. A node beyond max_nodes is a spare: it stands
// by and is in the next round if somebody is missing.
//
// All that must survive this process is one DurableRecord. Record() is a copy of it,
// durable_version() tells when it changed, and whoever keeps records does so before any node is
// told what follows from the change. Membership knows who is here, RoundMachine does what the
// drawing says; this class is the conversation with the nodes, and the clock.
//
// Time in which Tick was due and did not come (this process was stopped or starved) counts for
// no deadline: the nodes could not be heard then.
//
// Belongs to one thread, or to the holder of its owner's lock.
class RoundTable {
 public:
  using State = JobState;

  using Ended = Membership::Ended;

  explicit RoundTable(const JobRules& rules);
  // Goes on with what `record` kept of this job: its members are awaited, and none is lost before
  // loss limit and margin have passed anew.
  RoundTable(const JobRules& rules, const JobRecord& record, Instant now);
  RoundTable(const RoundTable&) = delete;  // Its parts refer to each other.
  RoundTable& operator=(const RoundTable&) = delete;

  // A node joins, or its known incarnation takes up the conversation again.
  //
  // Errors:
  //   InvalidArgument - nonsense in `info` or `update`.
  //   FailedPrecondition - the node does not fit the job, or the job is over or full.
  //   AlreadyExists - a live node holds this node id or node rank.
  //   Unavailable - a node that seems to live holds it and is being asked, or one that started
  //     later on the same host; to be tried again.
  //   Aborted - this incarnation was given up.
  //   OutOfRange - it belongs to rounds that nobody here knows of.
  absl::Status Join(const NodeInfo& info, const NodeUpdate& update, bool local, Instant now);

  // The node's state, which is also a sign of life. One that is older than what is known
  // changes nothing.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this seat (any more).
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
  //   Aborted - `incarnation` does not hold a seat (any more).
  absl::Status NodeDied(absl::string_view node_id, Incarnation incarnation,
                        absl::string_view reason, Instant now);

  // As Draining::Take.
  absl::StatusOr<std::string> Drain(const DrainRequest& request, Instant now);

  // The job ends like this; nothing if it has ended before.
  void End(const Outcome& outcome, Instant now);

  // Does what is due. To be called at NextDeadline.
  void Tick(Instant now);

  // When Tick is due; none in a job whose only node is local.
  std::optional<Instant> NextDeadline() const;

  // What `node_id` is to do now; kWait for one that is not here.
  Directive DirectiveFor(absl::string_view node_id) const;

  // The part of node rank 0 in the latest round, as it is told of it. O(n).
  Assignment FirstAssignment() const;

  // The nodes whose directive changed since the last call, or who should hear it again.
  std::vector<std::string> TakeChanged() { return membership_.TakeChanged(); }
  // The conversations that ended since the last call.
  std::vector<Ended> TakeEnded() { return membership_.TakeEnded(); }
  // The nodes to be asked for a sign of life since the last call.
  std::vector<std::string> TakeAsked() { return membership_.TakeAsked(); }

  // What must survive, and a number that grows with every change of it. Of a job that is over
  // only those are members who have not heard so.
  JobRecord Record() const;
  uint64_t durable_version() const { return record_.version() + (AllFinished() ? 1 : 0); }

  State state() const { return record_->state; }
  Round round() const { return record_->round; }
  // Of the latest round: how many workers it has, and its members that are here, by their ranks.
  int world_size() const { return record_->world_size; }
  std::vector<const Seat*> Members() const;
  // Why the job stands where it stands, in one line.
  std::string Explain(Instant now) const;
  // The same with the nodes and rounds; people call that instant `wall_ms`.
  JobStatus Status(Instant now, int64_t wall_ms) const;
  // The job is over and every node that is still here has said so.
  bool AllFinished() const { return hlaunch::AllFinished(*record_, membership_); }
  // No round has begun and no node is here.
  bool Deserted() const { return record_->round == 0 && membership_.here() == 0; }
  // Those that are here and have not said their last word, the members of the latest round first,
  // in the order of their ranks.
  std::vector<NodeInfo> Nodes() const;
  // A line for the people at all nodes.
  void Say(const std::string& text);
  // This incarnation has a seat here.
  bool Holds(absl::string_view node_id, Incarnation incarnation) const;
  // Hosts of those that have not.
  std::vector<std::string> Unfinished() const { return hlaunch::Unfinished(membership_); }

 private:
  Instant Observe(Instant now);  // `now` less all pauses.
  absl::Status Admit(const NodeInfo& info, const NodeUpdate& update, bool local, Instant t);
  absl::Status Vacate(const NodeInfo& info, Instant t);
  void Apply(Seat& seat, const NodeUpdate& update, Instant t);
  void LoseSilent(Instant t);

  const std::string set_by_;  // Whose policy it is; see JobRules.
  DurableRecord record_;
  Membership membership_;
  NewsBoard news_;
  RoundMachine machine_;
  Instant last_now_;
  Duration paused_{};
};

}  // namespace hlaunch
