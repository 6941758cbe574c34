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
#include "rendezvous/round/decide/news_board.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/table/job_words.h"
#include "rendezvous/round/table/membership.h"
#include "rendezvous/round/table/round_machine.h"
#include "rendezvous/round/values/job_record.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// One job as a state machine: which nodes are here, which round it is, what every node must do. It
// takes whole states (NodeUpdate) and gives whole states (Directive), so a message that is lost,
// doubled or late changes nothing. No I/O, no lock, no clock: `now` is an argument and never goes
// back. A message costs O(log n). It costs O(n) only when a round starts, stops or ends, and when
// the table says which nodes are awaited or join; in a large job that is at most once a second, or
// once in n milliseconds if that is longer.
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
// A failure that looks like the consequence of another one, see FirstCause, is judged with the
// failure that explains it, or with a lost node, see FindLostNode; at the latest after the lease.
//
// If a restart has to pause first, kForming lasts at least as long as the pause.
//
// A round is proposed in kPreflight: it has its number, members and ranks, but no workers. Only
// failures are charged to the restarts, and not all of them, see AfterFailure.
//
// A node is present, suspect (silent for the lease, or its stream is broken: people are told, and
// no round begins with it), lost (silent for loss limit + margin, or proven dead) or left (by its
// own word). Only the last two change a running round. A node beyond max_nodes is a spare: it
// stands by, and is in the next round if another node is missing.
//
// All that must survive this process is in one DurableRecord. Record() copies it and
// durable_version() tells when it changed; the caller keeps it before any node is told what follows
// from the change. Membership knows which nodes are here, RoundMachine does what the drawing says;
// this class holds the conversation with the nodes, and the clock.
//
// If Tick or StandBy was due but did not come (this process was stopped or starved), that time
// counts for no deadline: the nodes could not be heard then.
//
// Belongs to one thread, or to the holder of its owner's lock.
class RoundTable {
 public:
  using State = JobState;

  using Ended = Membership::Ended;

  explicit RoundTable(const JobRules& rules);
  // Goes on with the job that `record` describes: its members are awaited, and none is lost before
  // loss limit and margin have passed again.
  RoundTable(const JobRules& rules, const JobRecord& record, Instant now);
  RoundTable(const RoundTable&) = delete;  // Its parts refer to each other.
  RoundTable& operator=(const RoundTable&) = delete;

  // A node joins, or its known incarnation resumes the conversation.
  //
  // Errors:
  //   InvalidArgument - nonsense in `info` or `update`.
  //   FailedPrecondition - the node does not fit the job, or the job is over or full.
  //   AlreadyExists - a live node holds this node id or node rank.
  //   Unavailable - a node that seems to live holds it and is being asked, or a node that started
  //     later on the same host holds it; the caller tries again.
  //   Aborted - this incarnation was given up.
  //   OutOfRange - it comes from a round in which this rendezvous does not know it.
  absl::Status Join(const NodeInfo& info, const NodeUpdate& update, bool local, Instant now);

  // Takes the node's state, which is also a sign of life if it `counts`. Of a state that is older
  // than the known one it takes only the failures.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold this seat (any more).
  //   InvalidArgument - the update contradicts what the node was told.
  absl::Status Update(absl::string_view node_id, Incarnation incarnation, const NodeUpdate& update,
                      Instant now, bool counts = true);

  // Returns whether a message of the node that is at most `age` old is a sign of life. It is not if
  // the node may be dead: it was silent for the lease, and the message may be as old as the
  // silence, because a kernel sends what a dead process left once the network is back. The node is
  // asked then. Nor is it if another node claims its place, and the message may be older than the
  // question whether it lives.
  bool Counts(absl::string_view node_id, Incarnation incarnation, Duration age, Instant now);

  // The node has answered as a voter of this job's record; that is a sign of life, too. Returns
  // false if it is not, because the node holds no seat, is asked whether it lives, or has not
  // spoken here for the loss limit and the lease. O(log n).
  bool HeardFromVoter(absl::string_view node_id, Incarnation incarnation, Instant now);

  // The node gave a sign of life. O(log n).
  void Heard(absl::string_view node_id, Incarnation incarnation, Instant now);

  // The stream is gone; the node may come back.
  void Disconnected(absl::string_view node_id, Incarnation incarnation, Instant now);

  // There is proof that the node is dead and none of its workers lives.
  //
  // Errors:
  //   Aborted - `incarnation` does not hold a seat (any more).
  absl::Status NodeDied(absl::string_view node_id, Incarnation incarnation,
                        absl::string_view reason, Instant now);

  // As Draining::Take.
  absl::StatusOr<std::string> Drain(const DrainRequest& request, Instant now);

  // As Gathering::Expect.
  void Expect(int nodes, int ended, Instant now);

  // Ends the job with `outcome`; does nothing if it has ended before.
  void End(const Outcome& outcome, Instant now);

  // Does what is due. The caller calls it at NextDeadline.
  void Tick(Instant now);

  // Returns when Tick is due; unset in a job whose only node is local.
  std::optional<Instant> NextDeadline() const;

  // Takes the place of Tick while the last change waits to be kept, so that no node has been told
  // what follows from it. Decides nothing, and the members of a proposed round get as much time
  // more. But silence goes on, since what nodes say is heard and answered meanwhile. The caller
  // calls it at NextStandBy.
  void StandBy(Instant now);
  Instant NextStandBy() const;

  // Returns what `node_id` must do now; kWait if it is not here.
  Directive DirectiveFor(absl::string_view node_id) const;

  // Returns the part of node rank 0 in the latest round, as that node is told. O(n).
  Assignment FirstAssignment() const;

  // Returns the nodes whose directive changed since the last call, or that should hear it again.
  std::vector<std::string> TakeChanged() { return membership_.TakeChanged(); }
  // Returns the conversations that ended since the last call.
  std::vector<Ended> TakeEnded() { return membership_.TakeEnded(); }
  // Returns the nodes that must be asked for a sign of life, without those of earlier calls.
  std::vector<std::string> TakeAsked() { return membership_.TakeAsked(); }

  // Returns what must survive, and a number that grows with every change of it. If the job is over,
  // only nodes that have not heard so are members.
  JobRecord Record() const;
  uint64_t durable_version() const { return record_.version() + (AllFinished() ? 1 : 0); }

  State state() const { return record_->state; }
  Round round() const { return record_->round; }
  // About the latest round: how many workers it has, and its members that are here, by their ranks.
  int world_size() const { return record_->world_size; }
  std::vector<const Seat*> Members() const;
  // Returns why the job is in its state, in one line.
  std::string Explain(Instant now) const;
  // Returns the same with the nodes and rounds. `wall_ms` is the wall time at `now`.
  JobStatus Status(Instant now, int64_t wall_ms) const;
  // Returns whether the job is over and every node that is still here has said so.
  bool AllFinished() const { return hlaunch::AllFinished(*record_, membership_); }
  // Returns whether no round has begun and no node is here.
  bool Deserted() const { return record_->round == 0 && membership_.here() == 0; }
  // Returns the nodes that are here and have neither left nor finished, the members of the latest
  // round first, in the order of their ranks.
  std::vector<NodeInfo> Nodes() const;
  // Tells the people at all nodes a line.
  void Say(const std::string& text);
  // Returns whether this incarnation has a seat here.
  bool Holds(absl::string_view node_id, Incarnation incarnation) const;
  // Returns the hosts of the nodes that have not finished.
  std::vector<std::string> Unfinished() const { return hlaunch::Unfinished(membership_); }

 private:
  Instant Observe(Instant now);  // Returns `now` less all pauses.
  absl::Status Admit(const NodeInfo& info, const NodeUpdate& update, bool local, Instant t);
  absl::Status Vacate(const NodeInfo& info, Instant t);
  void Apply(Seat& seat, const NodeUpdate& update, Instant t);
  void LoseSilent(Instant t);
  // Why others may be silent though nothing is wrong with them.
  struct OwnFault {
    std::string host;      // Where the rendezvous is; empty if no node is there.
    bool cut_off = false;  // It hears no other node.
    std::optional<Instant> stood_still_until;  // Whoever was heard last before that had to end.
  };
  OwnFault FindOwnFault(Instant t) const;
  std::string WhySilent(const Seat& seat, const OwnFault& fault, Instant t) const;

  const std::string set_by_;  // Whose policy it is; see JobRules.
  DurableRecord record_;
  Membership membership_;
  NewsBoard news_;
  RoundMachine machine_;
  Instant last_now_;
  Instant ticked_;  // The last Tick or StandBy, or the last time before there was a deadline.
  bool stands_by_ = false;  // It was StandBy.
  Duration paused_{};
  // The last time that the table stood still: when, without all pauses, and how long.
  Instant stood_still_at_;
  Duration stood_still_{};
};

}  // namespace hlaunch
