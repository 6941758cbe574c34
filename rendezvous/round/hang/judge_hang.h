// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/hang/attribute_hang.h"
#include "rendezvous/round/hang/hang_rule.h"

namespace hlaunch {

// Returns how long a standstill of this kind may last. `longest` is the longest one that ended by
// itself. If the cause is clear, the limit is half of the time-out. If the time-out is learnt,
// ranks that work get more time, and so does a start, before the first few collectives. A verdict
// that is only suspected is treated like the same one once it is sure. Pure.
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
  // The verdict is only suspected, and it is time for the next sample of the ranks' stacks.
  bool sample = false;
  size_t which = 0;  // The verdict that it is about; not for kWentOn.
};

// Follows one round's standstills from look to look, each by itself.
//
// Belongs to one thread.
class HangJudge {
 public:
  explicit HangJudge(HangRule rule) : rule_(rule) {}

  // Judges what was seen at `now`. Culprits that worked a moment ago get the time of those that do
  // nothing from then on: a slow disk moves nothing for some seconds.
  HangNews Look(const std::vector<HangVerdict>& verdicts, Instant now);

  // For that long no look was possible, which says nothing about the ranks.
  void Forgive(Duration blind);

 private:
  struct Standstill {
    Instant since;
    Instant worked;  // When the culprits were last seen to work; else `since`.
    bool suspected = false;
    bool sure = false;  // It was more than a suspicion.
  };

  // Forgets the standstills that are not among the verdicts. Returns the age of the oldest that was
  // suspected, or zero.
  Duration Forget(const std::vector<HangVerdict>& verdicts, Instant now);

  const HangRule rule_;
  Duration longest_{};                             // Of the standstills that ended by themselves.
  std::map<std::string, Standstill> standstills_;  // By wavefront.
};

}  // namespace hlaunch
