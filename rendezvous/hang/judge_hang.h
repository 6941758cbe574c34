// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "rendezvous/hang/attribute_hang.h"
#include "rendezvous/hang/hang_rule.h"

namespace hlaunch {

// Returns how long a standstill of this kind may last. `longest` is the longest one that ended by
// itself. If the cause is clear, the limit is half of the time-out. If the time-out is learnt,
// ranks that work get more time, and so does a start, before the first few collectives. Pure.
Duration HangLimit(const HangRule& rule, const HangVerdict& verdict, Duration longest);

// The result of a look at the ranks. A value.
struct HangNews {
  enum class Kind {
    kNothing,
    kSuspect,  // The standstill has lasted for its limit.
    kWentOn,   // A suspected standstill is over.
  };
  Kind kind = Kind::kNothing;
  Duration age{};  // Of the standstill; zero if there is none or kSuspect was returned before.
};

// Follows one round's standstills from look to look.
//
// Belongs to one thread.
class HangJudge {
 public:
  explicit HangJudge(HangRule rule) : rule_(rule) {}

  // Judges what was seen at `now`.
  HangNews Look(const HangVerdict& verdict, Instant now);

  // For that long no look was possible, which says nothing about the ranks.
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
