// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/voter/group.h"
#include "rendezvous/voter/leadership.h"
#include "rendezvous/voter/voter_message.h"
#include "rendezvous/voter/voter_rule.h"

namespace hlaunch {

// The events of a voter.
struct VoterFounded {  // Only as the first event: it founds a new group and leads.
  std::string record;
};
struct VoterTimePassed {};
struct VoterHeard {
  VoterMessage message;
};
struct VoterProposed {  // The leader of `term` proposes a record that replaces the former.
  Term term = 0;
  std::string record;
};
struct VoterProvenDead {  // Its keeper or host says so; silence is no proof.
  Incarnation incarnation = 0;
};
struct VoterCandidates {  // Possible voters, the best first; used only while it leads.
  VoterMembers candidates;
  int nodes = 1;  // Of the job.
};
using VoterEvent = std::variant<VoterFounded, VoterTimePassed, VoterHeard, VoterProposed,
                                VoterProvenDead, VoterCandidates>;

// What must be done after an event.
struct VoterStep {
  std::vector<VoterMessage> send;
  std::optional<Term> leads;        // This voter leads from now on, with the record of entry().
  std::optional<std::string> lost;  // Why this voter does not lead any more.
  std::optional<uint64_t> decided;  // The version of the record that is now decided.
  std::string denied;               // Why the proposal was refused; empty if it was not.
  std::vector<std::string> news;    // Lines for people.
  // Who answered an append of this leader that is younger than the lease, and its beat. What a dead
  // process left on its way is older, or soon will be.
  std::vector<std::pair<Incarnation, uint64_t>> answered;
  Instant next;  // When VoterTimePassed is due.
};

// One process of the group of voters that keeps the record of a job's rendezvous, only in
// memory. It uses Raft with a log of one entry. A record is decided once a majority holds it; then
// every later leader has it.
//
//                 silence of the leader        a majority would vote      … votes
//   follower -------------------------> pre-vote ----------------> vote -------> leader
//      ^                                   |  a leader's append      |              |
//      +-----------------------------------+-------------------------+              |
//      +------------- a newer term, or no lease any more ---------------------------+
//
// A leader decides only within its lease, which ends nine tenths of `lease` after it sent the last
// append that enough others have answered. A voter that has answered an append gives no vote for
// `lease`. The tenth in between allows for clocks that run at different rates.
//
// In a group of two the leader needs no lease, since no other is elected without its vote. Instead
// it needs the other one's answer for each decision, until the other one has been silent for
// `lapse_after`. So a follower whose leader is proven dead within that time after a confirmed
// answer has missed nothing, and goes on alone.
//
// It has no clock and no randomness of its own. A value that belongs to one thread.
class Voter {
 public:
  Voter(VoterMember self, VoterRule rule);

  // Returns what must be done after `event` at `now`. `random` is a random number.
  VoterStep Step(const VoterEvent& event, Instant now, uint64_t random);

  const VoterMember& self() const { return self_; }
  Term term() const { return term_; }
  // Returns the newest entry that it holds, decided or not; null if it never was a member.
  const SharedEntry& entry() const { return entry_; }
  bool is_member() const;  // Its entry names it, and it knows of no newer group without it.
  // Returns until when it leads, and no other voter does; min() if it does not lead.
  Instant LeadsUntil() const;
  // Returns the leader as far as it knows; 0: none.
  Incarnation leader() const { return leading_ ? self_.incarnation : leader_; }
  // Returns, for people, which voters it waits for; empty if it does not wait.
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
  void On(const VoterFounded& founded);
  void On(const VoterTimePassed&) {}
  void On(const VoterHeard& heard);
  void On(const VoterProposed& proposed);
  void On(const VoterProvenDead& proof);
  void On(const VoterCandidates& candidates);

  // Messages.
  void HearAppend(const VoterMessage& message);
  void HearAppended(const VoterMessage& message);
  void HearRequest(const VoterMessage& message);
  void HearVote(const VoterMessage& message);
  void HearRemoved(const VoterMessage& message);
  void TakeEntry(const VoterMessage& message);
  void Confirm(const VoterMessage& message);
  VoterMessage To(Incarnation to, VoterMessage::Kind kind) const;

  // Elections.
  bool MayLead() const;  // Its entry names it.
  bool MayVote(const VoterMessage& request) const;
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
  void Replace(VoterMembers members, std::string record, uint64_t version);
  void Append();

  std::string WhoIsMissing(Instant now) const;
  Instant NextInstant() const;
  Ballot HeldBallot() const { return entry_ ? entry_->ballot : Ballot{}; }

  VoterMember self_;
  VoterRule rule_;

  Term term_ = 0;
  Incarnation voted_for_ = 0;  // In term_.
  SharedEntry entry_;
  KnownProcesses known_;
  Ballot removed_by_;  // The newest known group without this voter.

  // As a follower.
  Incarnation leader_ = 0;
  std::optional<Instant> heard_;  // When leader_ was last heard.
  std::deque<Answer> answers_;    // To appends of leader_, not yet confirmed.
  // Until this time leader_ decides nothing without this voter, if the group has two members.
  std::optional<Instant> counted_until_;
  Instant election_at_ = Instant::max();
  std::optional<Campaign> campaign_;

  std::optional<Leadership> leading_;
  std::string because_;  // Why this voter leads.

  Instant due_ = Instant::max();  // The `next` of the last step.

  // Used during one step.
  Instant now_ = Instant::min();
  uint64_t random_ = 0;
  VoterStep out_;
};

}  // namespace hlaunch
