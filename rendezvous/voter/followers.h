// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "proto/base/clock.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// What a leader knows of the other voters in its term. A value.
class Followers {
 public:
  Followers(Incarnation self, Instant since) : self_(self), since_(since) {}

  // Returns the number of the appends that are sent at `now`. Forgets appends older than `lease`,
  // which prove nothing any more.
  uint64_t NextBeat(Instant now, Duration lease);

  // `from` has answered the append of `beat` and holds the entry of `ballot`.
  void Appended(Incarnation from, uint64_t beat, const Ballot& ballot, Instant now);

  // This process stood still for this long, which is no silence of the others.
  void Forgive(Duration stood_still);

  // Returns when the newest append was sent that enough of `members` have answered, so that no
  // other leader is elected within a lease of it. Instant::max() if this process alone suffices,
  // min() if too few have answered.
  Instant LeaseBegan(const VoterMembers& members) const;

  // How many of `members` hold the entry of `ballot`, this process included.
  int CountHolding(const VoterMembers& members, const Ballot& ballot) const;
  bool Holds(Incarnation member, const Ballot& ballot) const;

  bool Answered(Incarnation member) const;
  // Returns when the newest append was sent that it has answered; min() if that is long ago.
  Instant BeatSent(Incarnation member) const;
  uint64_t LastBeat(Incarnation member) const;  // The last that it has answered; 0: none.
  // Returns when the member was last heard; if it never was, since when this process leads.
  Instant Heard(Incarnation member) const;
  // The member's silence counts only from `since` on.
  void Expect(Incarnation member, Instant since);

 private:
  struct Follower {
    bool answered = false;
    Instant heard;
    uint64_t beat = 0;
    Instant beat_sent = Instant::min();  // min(): too old to be known.
    Ballot ballot;
  };
  struct Beat {
    uint64_t number = 0;
    Instant sent;
  };

  const Follower* Find(Incarnation member) const;

  Incarnation self_ = 0;
  Instant since_;
  uint64_t last_beat_ = 0;
  std::deque<Beat> beats_;
  std::map<Incarnation, Follower> followers_;
};

}  // namespace hlaunch
