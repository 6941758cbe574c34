// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/voter/change_members.h"
#include "rendezvous/voter/followers.h"
#include "rendezvous/voter/group.h"
#include "rendezvous/voter/voter_rule.h"

namespace hlaunch {

// What a voter was told of the processes of the job. A value.
struct KnownProcesses {
  std::set<Incarnation> dead;              // Proven to be dead.
  std::optional<VoterMembers> candidates;  // Possible voters, the best first.
  int nodes = 1;                           // Of the job.

  bool IsDead(Incarnation one) const { return dead.count(one) > 0; }
};

// One term of a leader: what is decided, until when it leads, and which processes should be
// voters. The parameter `entry` is always the entry that the leader proposed last. A value.
class Leadership {
 public:
  // The term begins at `now` with the entry that the leader holds.
  Leadership(Incarnation self, const VoterRule& rule, SharedEntry held, Instant now)
      : self_(self), rule_(rule), followers_(self, now), since_(now), decided_(std::move(held)) {}

  // Returns true once an entry of this term is decided. Only then may the leader propose others.
  bool confirmed() const { return confirmed_; }
  // The entry that was decided last; before the first, the one that the leader held.
  const SharedEntry& decided() const { return decided_; }

  // Returns the time before which no other leader is elected.
  Instant LeaseUntil() const;
  // Returns when the term is over unless more answers arrive.
  Instant OverAt() const { return confirmed_ ? LeaseUntil() : since_ + rule_.lease; }

  // Returns true if `one` may be sent appends.
  bool Concerns(Incarnation one, const KnownProcesses& known) const;
  void Appended(Incarnation from, uint64_t beat, const Ballot& ballot, Instant now) {
    followers_.Appended(from, beat, ballot, now);
  }
  // This process stood still for this long.
  void Forgive(Duration late) { followers_.Forgive(late); }
  // `members` will replace the members of `entry`.
  void Propose(const VoterMembers& members, const VoterEntry& entry, Instant now);
  // Returns true if `entry` has just been decided.
  bool Decide(const SharedEntry& entry, const KnownProcesses& known, Instant now);
  GroupView View(const VoterEntry& entry, const KnownProcesses& known, Instant now) const;

  // NextBeat returns the number of the appends that are sent now, next_beat when the next ones are
  // due, and Listeners which processes they go to: all that may be members, and candidates.
  uint64_t NextBeat(Instant now);
  Instant next_beat() const { return next_beat_; }
  VoterMembers Listeners(const VoterEntry& entry, const KnownProcesses& known, uint64_t beat) const;
  // Returns true if `one` must be sent the entry itself.
  bool Needs(Incarnation one, const VoterEntry& entry, Instant now) const;
  uint64_t LastBeat(Incarnation one) const { return followers_.LastBeat(one); }
  Instant BeatSent(Incarnation one) const { return followers_.BeatSent(one); }
  bool HeardOfLate(Incarnation one, Instant now) const {
    return now - followers_.Heard(one) <= rule_.lease / 2;
  }

 private:
  bool IsHeld(const VoterEntry& entry, const KnownProcesses& known, Instant now) const;
  bool HasLapsed(Incarnation one, const KnownProcesses& known, Instant now) const;
  bool Answers(Incarnation one, Instant now) const {
    return followers_.Answered(one) && HeardOfLate(one, now);
  }
  VoterMembers AllConcerned() const;
  void AddLapsed(GroupView& view, const KnownProcesses& known, Instant now) const;

  Incarnation self_ = 0;
  VoterRule rule_;
  Followers followers_;
  Instant since_;
  SharedEntry decided_;
  std::vector<VoterMembers> open_;  // Other groups that were proposed since.
  bool confirmed_ = false;
  Instant next_beat_ = Instant::min();
};

}  // namespace hlaunch
