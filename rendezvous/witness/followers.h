// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "proto/base/clock.h"
#include "rendezvous/witness/group.h"

namespace hlaunch {

// What a leader knows of the others, in its term. A value.
class Followers {
 public:
  Followers(Incarnation self, Instant since) : self_(self), since_(since) {}

  // The number of the appends that are sent at `now`. Those older than `lease` prove nothing more.
  uint64_t NextBeat(Instant now, Duration lease);

  // `from` has answered the append of `beat` and holds the entry of `ballot`.
  void Appended(Incarnation from, uint64_t beat, const Ballot& ballot, Instant now);

  // This process stood still for so long: it is no silence of theirs.
  void Forgive(Duration stood_still);

  // Of which append of a sufficient number of `members` have answered that no other leader is
  // elected within a lease of it: when it was sent. Instant::max() if this process suffices, min()
  // if they have not.
  Instant LeaseBegan(const WitnessMembers& members) const;

  // How many of `members` hold the entry of `ballot`, this process included.
  int CountHolding(const WitnessMembers& members, const Ballot& ballot) const;
  bool Holds(Incarnation member, const Ballot& ballot) const;

  bool Answered(Incarnation member) const;
  uint64_t LastBeat(Incarnation member) const;  // That it has answered; 0: none.
  // When it was last heard; since when this process leads if it never was.
  Instant Heard(Incarnation member) const;
  // Since when that one's silence counts.
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
