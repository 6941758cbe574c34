// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/witness/change_members.h"
#include "rendezvous/witness/followers.h"
#include "rendezvous/witness/group.h"
#include "rendezvous/witness/witness_rule.h"

namespace hlaunch {

// The processes of the job as a witness was told of them. A value.
struct KnownProcesses {
  std::set<Incarnation> dead;                // By proof.
  std::optional<WitnessMembers> candidates;  // Who may be a witness, the best first.
  int nodes = 1;                             // Of the job.

  bool IsDead(Incarnation one) const { return dead.count(one) > 0; }
};

// One term of a leader: what is decided, until when it leads, and who is to be a witness. `entry`
// is the one that it proposed last. A value.
class Leadership {
 public:
  // From `now` on, from the entry that it holds.
  Leadership(Incarnation self, const WitnessRule& rule, SharedEntry held, Instant now)
      : self_(self), rule_(rule), followers_(self, now), since_(now), decided_(std::move(held)) {}

  // Whether an entry of this term is decided: not before may anything else be.
  bool confirmed() const { return confirmed_; }
  // The last that was decided; before that, what it held.
  const SharedEntry& decided() const { return decided_; }

  // Nobody else is elected before.
  Instant LeaseUntil() const;
  // When it is over unless more answers come.
  Instant OverAt() const { return confirmed_ ? LeaseUntil() : since_ + rule_.lease; }

  // Whether that one may be sent appends.
  bool Concerns(Incarnation one, const KnownProcesses& known) const;
  void Appended(Incarnation from, uint64_t beat, const Ballot& ballot, Instant now) {
    followers_.Appended(from, beat, ballot, now);
  }
  // This process stood still for so long.
  void Forgive(Duration late) { followers_.Forgive(late); }
  // `members` take the place of those of `entry`.
  void Propose(const WitnessMembers& members, const WitnessEntry& entry, Instant now);
  // Whether `entry` has just been decided.
  bool Decide(const SharedEntry& entry, const KnownProcesses& known, Instant now);
  GroupView View(const WitnessEntry& entry, const KnownProcesses& known, Instant now) const;

  // The number of the appends that are sent now, when the next ones are due, and who is sent them:
  // whoever may be a member, and candidates.
  uint64_t NextBeat(Instant now);
  Instant next_beat() const { return next_beat_; }
  WitnessMembers Listeners(const WitnessEntry& entry, const KnownProcesses& known,
                           uint64_t beat) const;
  // Whether that one is to be sent the entry itself.
  bool Needs(Incarnation one, const WitnessEntry& entry, Instant now) const;
  uint64_t LastBeat(Incarnation one) const { return followers_.LastBeat(one); }
  bool HeardOfLate(Incarnation one, Instant now) const {
    return now - followers_.Heard(one) <= rule_.lease / 2;
  }

 private:
  bool IsHeld(const WitnessEntry& entry, const KnownProcesses& known, Instant now) const;
  bool HasLapsed(Incarnation one, const KnownProcesses& known, Instant now) const;
  bool Answers(Incarnation one, Instant now) const {
    return followers_.Answered(one) && HeardOfLate(one, now);
  }
  WitnessMembers AllConcerned() const;
  void AddLapsed(GroupView& view, const KnownProcesses& known, Instant now) const;

  Incarnation self_ = 0;
  WitnessRule rule_;
  Followers followers_;
  Instant since_;
  SharedEntry decided_;
  std::vector<WitnessMembers> open_;  // Other groups that were proposed since.
  bool confirmed_ = false;
  Instant next_beat_ = Instant::min();
};

}  // namespace hlaunch
