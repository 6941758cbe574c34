// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/table/durable_record.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// A node's entry in the job. Its MemberRecord is durable; the node tells all the rest again when it
// comes back.
struct Seat : MemberRecord {
  bool local = false;
  bool attached = false;         // It has a stream.
  bool left = false;             // It said kLeft, and is here only to be told kFinish.
  bool finished = false;         // It said kFinished.
  bool changed = false;          // It is in the list of TakeChanged.
  Incarnation claimant = 0;      // The last incarnation that wanted this seat.
  Instant asked;                 // When the holder was asked for a sign of life because of that.
  Instant heard;                 // When it gave its last sign of life.
  Instant spoke;                 // The same, as a node; a voter gives others.
  std::optional<Instant> broke;  // When its stream broke, while it has none.
  Instant since;                 // When it joined.
  std::list<Seat*>::iterator silence;  // Its place in the order of silence, unless local.

  NodePhase phase = NodePhase::kReady;  // Its phase in round `seen`, the last round it spoke of.
  Round seen = 0;
  uint16_t store_port = 0;
  uint16_t coordinator_port = 0;
  bool worker_store = false;
  int left_exit_code = 0;
  std::string left_reason;

  // In round `told`:
  size_t failures_seen = 0;
  std::vector<int> exited;    // Local ranks that exited with 0, as far as is known.
  std::vector<int> given_up;  // Local ranks that live and have given up, see HasGivenUp.
  bool prepared = false;      // It answered the preflight.
  std::string unfit;          // Why it cannot run the round; empty if it can.
  NodeHealth health;
  Round suspected = 0;         // The last round whose nodes were measured once more because of it.
  std::vector<int> unreached;  // Node ranks that it does not reach.
};

// Returns whether the node is a member of the latest round.
inline bool InRound(const JobRecord& record, const Seat& seat) {
  return record.round > 0 && seat.told == record.round;
}

// "node0 (pid 100)"
std::string NodeName(const NodeInfo& info);

// "job b"; "the job" for the id "none" of the jobs to which no person gave an id.
std::string JobName(absl::string_view job_id);

// Returns whether two agents are on one host. Then the keeper of the older one leaves no process
// behind.
inline bool SameHost(const NodeInfo& a, const NodeInfo& b) {
  return a.host == b.host && a.address == b.address;
}

int64_t WholeSeconds(Duration duration);

// The nodes that are here: the seats of one job, how long each node has been silent, which node
// wants the seat of another, and which were given up. It decides nothing about rounds.
//
// A message costs O(log n). `t` is an instant on the table's clock, which leaves out its pauses.
//
// Belongs to the thread of its RoundTable.
class Membership {
 public:
  using Seats = std::map<std::string, Seat, std::less<>>;  // By node id.

  // A conversation that is over without an outcome.
  struct Ended {
    std::string node_id;
    Incarnation incarnation = 0;
    absl::Status status;
  };

  // `record` must outlive it. Incarnations that `record` has given up are refused from the start.
  explicit Membership(DurableRecord& record);
  Membership(const Membership&) = delete;  // Its seats point to each other.
  Membership& operator=(const Membership&) = delete;

  // Adds a seat. Requires: neither its node id nor its explicit node rank is held.
  Seat& Insert(const MemberRecord& member, bool local, Instant t);
  // Ends the node's conversation with `status`, and refuses its incarnation from now on.
  void Remove(Seat& seat, absl::Status status);

  const Seats& seats() const { return seats_; }
  Seats& seats() { return seats_; }
  // Returns null if the node has no seat, or another incarnation has it.
  Seat* Find(absl::string_view node_id, Incarnation incarnation);
  const Seat* Find(absl::string_view node_id) const;
  // Returns the seat with the node id or the explicit node rank that `info` names; null if there is
  // none.
  Seat* HolderOf(const NodeInfo& info);
  // Returns the members of the latest round that are here, in the order of their node ranks.
  std::vector<Seat*> RoundMembers();
  // Returns the durable part of the seats: nodes that were told a round and have neither left nor
  // finished.
  std::vector<MemberRecord> Durable() const;

  void SetAttached(Seat& seat, bool attached);
  void SetLeft(Seat& seat);
  void SetFinished(Seat& seat);
  int here() const { return here_; }          // Nodes that have not left.
  int attached() const { return attached_; }  // Those of them with a stream.
  int finished() const { return finished_; }  // Those of them that said kFinished.
  // Returns how many are here, have not finished and are not suspect. O(1) for each silent node.
  int Usable(Instant t) const;

  // The node's stream is gone.
  void Detach(Seat& seat, Instant t);
  // Asks the node for a sign of life, if it has a stream.
  void Ask(const Seat& seat);

  // The node gave a sign of life; NoteHeard: in another way than by speaking here.
  void Touch(Seat& seat, Instant t);
  void NoteHeard(Seat& seat, Instant t);
  // Returns whether the node is suspect: silent for the lease, or without a stream. The local node
  // never is.
  bool Suspect(const Seat& seat, Instant t) const;
  // Returns the seats that have been silent for `time`. O(1) for each.
  std::vector<const Seat*> SilentFor(Duration time, Instant t) const;
  // Returns the seat that has been silent longest, if that is so long that the node is lost; else
  // null.
  Seat* FindLost(Instant t);
  // Returns when the next node or ghost has been silent for too long.
  std::optional<Instant> NextLoss() const;

  // Checks whether `claimant` may have the seat of `holder`. A holder that seems to live is first
  // asked for a sign of life: if it stays silent, that is an answer long before the lease is over.
  //
  // Errors:
  //   AlreadyExists - the holder lives.
  //   Unavailable - the holder is being asked, or started later than the claimant on the same host.
  absl::Status Claim(Seat& holder, const NodeInfo& claimant, Instant t);
  // Returns whether the holder was asked for that and has not answered yet.
  bool OwesAnswer(const Seat& holder, Instant t) const;

  // Ghosts: nodes without a seat whose workers may live.
  void AddGhost(const Seat& seat);
  bool EraseGhost(absl::string_view node_id, Incarnation incarnation);  // False if there is none.
  void ForgetGhosts(Instant t);  // Those that must have stopped their workers by now.

  // Returns why this incarnation is refused; null if it is not.
  const std::string* WhyGivenUp(Incarnation incarnation) const;

  // Makes the node, or each node that has not finished, hear its directive (again).
  void Tell(Seat& seat);
  void TellAll();
  // Each of these returns what came up since its last call.
  std::vector<std::string> TakeChanged();  // Node ids, by Tell.
  std::vector<Ended> TakeEnded();
  std::vector<std::string> TakeAsked();  // Node ids, by Ask and by Claim.

 private:
  Duration LossTime() const;
  void Count(const Seat& seat, int sign);
  absl::Status AskHolder(Seat& holder, const NodeInfo& claimant, Instant t);
  void GiveUp(Incarnation incarnation, absl::string_view why);

  DurableRecord& record_;
  Seats seats_;
  std::map<int, Seat*> by_rank_;  // Explicit node ranks.
  std::list<Seat*> by_silence_;   // Remote nodes, the longest silent one first.
  int here_ = 0;
  int attached_ = 0;
  int finished_ = 0;
  int reachable_ = 0;  // Those that have not finished and have a stream or are local.
  std::map<Incarnation, std::string> given_up_;  // The reason, for each incarnation in the record.

  std::vector<std::string> changed_;
  std::vector<Ended> ended_;
  std::vector<std::string> asked_;
};

}  // namespace hlaunch
