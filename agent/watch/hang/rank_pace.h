// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/round/hang/slow_rank.h"

// What ranks do at the looks while they go on, from which slow ranks are found.

namespace hlaunch {

enum class Pace {
  kUnknown,
  kWorks,
  kWaits,  // It is in a collective.
  kSaves,  // It writes a checkpoint.
};

// What a rank does at one look. A value.
struct PaceSample {
  Pace pace = Pace::kUnknown;
  std::string place;                // The user's own line; may be empty.
  std::string calls;                // Changes with every collective.
  std::vector<std::string> groups;  // Whose collectives it calls.
  int pid = 0;
  std::optional<Duration> ran, delayed;  // So far: its main thread ran, or waited for a processor.
};

// The tap's own handler: what the rank does. kProgressHandler answers that, too.
inline constexpr absl::string_view kPaceHandler = "hlaunch_pace";

// Splits what the tap's kProgressHandler answers into how far the rank is, and what it does. Pure:
// a worker may have influenced it.
absl::string_view ProgressOf(absl::string_view answer);
PaceSample PaceOf(absl::string_view answer);

// True if a recorder's state says that a device has calls to complete. Pure.
bool HasUnfinishedCalls(absl::string_view status);

// What the main thread of a process has used so far.
void AddProcessorUse(pid_t pid, PaceSample* sample);

// What was seen of one rank, of which the last looks count.
//
// Belongs to one thread.
class RankPace {
 public:
  static constexpr size_t kLooks = 120;

  void Add(const PaceSample& sample, Instant now);

  // The share of the rank, without its name.
  RankShare share() const;
  // When the first look was that still counts; unset if there is none.
  std::optional<Instant> since() const;
  std::optional<Instant> first() const { return first_; }  // Of all looks.

 private:
  struct Look {
    Pace pace = Pace::kUnknown;
    std::string place;
    Instant at;
    std::optional<Duration> ran, delayed;
  };
  std::deque<Look> looks_;
  PaceCount all_;
  PaceSample last_;
  std::optional<Instant> first_;
};

// Node rank 0 is told of the ranks of other nodes with this text of at most `max_bytes`; if all are
// too many, the last ones are left out. Pure.
std::string SharesText(const std::vector<RankShare>& ranks, size_t max_bytes);

// Unset if `text` is something else. The content may be shown on a terminal. Pure.
std::optional<std::vector<RankShare>> ParseShares(absl::string_view text);

}  // namespace hlaunch
