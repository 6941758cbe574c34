// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "rendezvous/hang/attribute_hang.h"
#include "rendezvous/hang/hang_rule.h"

namespace hlaunch {

// How long a standstill of that kind may last. `longest` is the longest one that ended by itself.
// Where the cause is clear it is half of the time-out; ranks that work are given more, and so is
// a start, before the first few collectives. Pure.
Duration HangLimit(const HangRule& rule, const HangVerdict& verdict, Duration longest);

// What a look at the ranks comes to. A value.
struct HangNews {
  enum class Kind {
    kNothing,
    kSuspect,  // The standstill has lasted for its limit.
    kWentOn,   // One that was suspected is over.
  };
  Kind kind = Kind::kNothing;
  Duration age{};  // Of the standstill; zero: there is none, or its suspicion is known.
};

// Follows one round's standstills from look to look.
//
// Belongs to one thread.
class HangJudge {
 public:
  explicit HangJudge(HangRule rule) : rule_(rule) {}

  // What was seen at `now`.
  HangNews Look(const HangVerdict& verdict, Instant now);

  // Nobody could look for that long: it says nothing of the ranks.
  void Forgive(Duration blind);

  bool suspects() const { return suspects_; }

 private:
  const HangRule rule_;
  Duration longest_{};  // Of the standstills that ended by themselves.
  std::string wavefront_;
  Instant since_;
  bool suspects_ = false;
};

}  // namespace hlaunch
