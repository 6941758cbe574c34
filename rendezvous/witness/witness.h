// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/witness/group.h"
#include "rendezvous/witness/leadership.h"
#include "rendezvous/witness/witness_message.h"
#include "rendezvous/witness/witness_rule.h"

namespace hlaunch {

// What happens to a witness.
struct WitnessFounded {  // Only as its first: it is the first of a new group, and leads.
  std::string record;
};
struct WitnessTimePassed {};
struct WitnessHeard {
  WitnessMessage message;
};
struct WitnessProposed {  // By who leads from `term`: the record that is to take the former's
                          // place.
  Term term = 0;
  std::string record;
};
struct WitnessProvenDead {  // By its keeper's word, or the host's; never by silence.
  Incarnation incarnation = 0;
};
struct WitnessCandidates {  // Who may be a witness, the best first; counts only where it leads.
  WitnessMembers candidates;
  int nodes = 1;  // Of the job.
};
using WitnessEvent = std::variant<WitnessFounded, WitnessTimePassed, WitnessHeard, WitnessProposed,
                                  WitnessProvenDead, WitnessCandidates>;

// What follows from an event.
struct WitnessStep {
  std::vector<WitnessMessage> send;
  std::optional<Term> leads;        // It leads from now on, with the record of entry().
  std::optional<std::string> lost;  // It does not lead any more, and why.
  std::optional<uint64_t> decided;  // The version of the record that is now decided.
  std::string denied;               // Why a proposal was not taken; empty: it was.
  std::vector<std::string> news;    // Lines for people.
  Instant next;                     // When WitnessTimePassed is due.
};

// One process of the group of witnesses that keeps the record of a job's rendezvous, in memory
// alone: Raft with a log of one entry. A record is decided once a majority holds it, and then
// whoever leads later has it.
//
//                 silence of the leader        a majority would vote      … votes
//   follower -------------------------> pre-vote ----------------> vote -------> leader
//      ^                                   |  a leader's append      |              |
//      +-----------------------------------+-------------------------+              |
//      +------------- a newer term, or no lease any more ---------------------------+
//
// A leader decides only within its lease: until `lease` less a tenth after it sent the last append
// that enough others have answered. Who has answered one votes for nobody for `lease`. The tenth is
// for clocks that run at different rates.
//
// In a group of two the leader needs no lease, since nobody is elected without its vote, and the
// other one's word for each decision, until that one has been silent for `lapse_after`. So a
// follower whose leader is proven dead within that time after a confirmed answer has missed
// nothing, and goes on alone.
//
// A value, and one thread's. It has no clock and no randomness of its own.
class Witness {
 public:
  Witness(WitnessMember self, WitnessRule rule);

  // What follows from `event` at `now`. `random` is one: any number.
  WitnessStep Step(const WitnessEvent& event, Instant now, uint64_t random);

  const WitnessMember& self() const { return self_; }
  Term term() const { return term_; }
  // Null: it never was a member. The newest that it holds, whether that was decided or not.
  const SharedEntry& entry() const { return entry_; }
  bool is_member() const;  // And no newer group is known to be without it.
  // It leads while `now` is earlier, and nobody else does; min(): it does not.
  Instant LeadsUntil() const;
  // Who leads as far as it knows; 0: nobody.
  Incarnation leader() const { return leading_ ? self_.incarnation : leader_; }
  // For people: for whom it waits; empty: for nobody.
  std::string Waits(Instant now) const;

 private:
  struct Campaign {
    bool pre = true;
    Term term = 0;
    std::set<Incarnation> votes;
  };
  struct Answer {
    uint64_t beat = 0;
    Instant sent;
  };

  // Events.
  void On(const WitnessFounded& founded);
  void On(const WitnessTimePassed&) {}
  void On(const WitnessHeard& heard);
  void On(const WitnessProposed& proposed);
  void On(const WitnessProvenDead& proof);
  void On(const WitnessCandidates& candidates);

  // Messages.
  void HearAppend(const WitnessMessage& message);
  void HearAppended(const WitnessMessage& message);
  void HearRequest(const WitnessMessage& message);
  void HearVote(const WitnessMessage& message);
  void HearRemoved(const WitnessMessage& message);
  void TakeEntry(const WitnessMessage& message);
  void Confirm(const WitnessMessage& message);
  WitnessMessage To(Incarnation to, WitnessMessage::Kind kind) const;

  // Elections.
  bool MayLead() const;  // As far as its entry says.
  bool MayVote(const WitnessMessage& request) const;
  bool HasPromised() const;
  void Campaigns();
  void Canvass(bool pre);
  void CountVotes();
  void StoodStill(Duration late);
  void GoOnAlone(const std::string& because);
  std::optional<Incarnation> OtherOfTwo() const;
  void TakeTerm(Term term);
  void PutOffElection(Duration least, Duration spread);

  // A leader.
  void Lead(const std::string& because);
  void StepDown(const std::string& why);
  void Expire();
  void Settle();
  void Decide();
  bool ChangeMembers();
  void Replace(WitnessMembers members, std::string record, uint64_t version);
  void Append();

  std::string WhoIsMissing(Instant now) const;
  Instant NextInstant() const;
  Ballot HeldBallot() const { return entry_ ? entry_->ballot : Ballot{}; }

  WitnessMember self_;
  WitnessRule rule_;

  Term term_ = 0;
  Incarnation voted_for_ = 0;  // In term_.
  SharedEntry entry_;
  KnownProcesses known_;
  Ballot removed_by_;  // The newest group that is known to be without it.

  // As a follower.
  Incarnation leader_ = 0;
  std::optional<Instant> heard_;  // leader_, last.
  std::deque<Answer> answers_;    // To appends of leader_, not yet confirmed.
  // Until then leader_ decides nothing without this one, if they are two.
  std::optional<Instant> counted_until_;
  Instant election_at_ = Instant::max();
  std::optional<Campaign> campaign_;

  std::optional<Leadership> leading_;
  std::string because_;  // Why it came to lead.

  Instant due_ = Instant::max();  // What the last step asked for.

  // Of the step that is being made.
  Instant now_ = Instant::min();
  uint64_t random_ = 0;
  WitnessStep out_;
};

}  // namespace hlaunch
