// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// A rank that is slower than the others makes them wait in each step. Who looks at the ranks from
// time to time sees them in collectives, and that rank never, since it comes last. All are plain
// values.

namespace hlaunch {

// At how many looks a rank was seen, and what it did.
struct PaceCount {
  int64_t looks = 0;   // Without those at which it was not known what the rank did.
  int64_t waited = 0;  // It was in a collective.
  int64_t saved = 0;   // It wrote a checkpoint.
};

// What was seen of one rank while the job went on.
struct RankShare {
  Rank rank = 0;
  int local_rank = 0;
  std::string host;
  int pid = 0;
  // In the last minutes. A collective that lasts for several looks counts once: a long pause of
  // another rank, such as a checkpoint or a validation, is no slow step.
  PaceCount steps;
  PaceCount all;      // Since the rank's first step, with all looks.
  std::string place;  // Where it was most often while it was not in a collective; may be empty.
  int64_t at_place = 0;
  double ran = -1;      // Which part of the time its main thread ran, and which part it would
  double delayed = -1;  // have run if a processor had been free; negative: not known.
  std::vector<std::string> groups;  // The process groups whose collectives it calls.
};

inline constexpr int64_t kLeastLooks = 24;  // Fewer say nothing.
inline constexpr double kLeastLost = 0.2;   // What the others lose, as a part of their time.

// The ranks that hold up others of a group. A value.
struct SlowRanks {
  std::vector<Rank> ranks;  // In their order; empty if there are none.
  size_t waiting = 0;       // How many other ranks of the groups lose so much.
  double lost = 0;          // Which part of their time at least half of them lose.
  PaceCount others;         // Of the one in the middle.
};

// Finds the ranks because of which at least half of the ranks of a group lose kLeastLost of their
// time, if that is no chance: in each group, the ranks that are seen in collectives much less often
// than the one in the middle. Who calls no collective of a group is not compared with it, so the
// stages of a pipeline, which send messages, are not compared either. What a rank needs for its
// checkpoints is no slow step. Pure.
SlowRanks FindSlowRanks(const std::vector<RankShare>& ranks);

// What people are told of it, after looks for `span`: "rank 2 (node0, local rank 2, pid 77) holds
// up 3 other ranks, which lose 45 % of their time: …". Pure.
std::string DescribeSlow(const SlowRanks& slow, const std::vector<RankShare>& ranks, Duration span);

// Which part of the time in which `all` was counted the ranks have lost. A value.
struct LostShare {
  double waiting = 0;  // For the slowest rank: at least half of the ranks of the largest group.
  double saving = 0;   // In checkpoints: the rank that wrote most.
};

// Pure.
LostShare FindLostShare(const std::vector<RankShare>& ranks);

// Says once which ranks are slow, and once that they no longer are.
//
// Belongs to one thread.
class SlowJudge {
 public:
  struct News {
    std::string text;         // For people; empty if there are none.
    std::vector<Rank> ranks;  // Those that are slow, or no longer.
    double lost = 0;          // Zero: no longer.
  };
  // `span`: since the first look that still counts.
  News Look(const std::vector<RankShare>& ranks, Duration span);

 private:
  std::vector<Rank> named_;
};

}  // namespace hlaunch
