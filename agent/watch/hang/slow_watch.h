// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/watch/hang/rank_pace.h"
#include "proto/base/clock.h"
#include "rendezvous/round/hang/slow_rank.h"

namespace hlaunch {

// What is known of slow ranks after a look. A value.
struct SlowNews {
  SlowJudge::News ranks;       // Its text is empty if there is nothing new.
  Duration waited{}, saved{};  // Time lost since the first step; neither ever falls.
};

// Finds the ranks of a round that make the others wait in each step. Node rank 0 does so for all
// nodes, of which each tells it once a minute what it has seen of its own ranks.
//
// Belongs to one thread.
class SlowWatch {
 public:
  SlowWatch(Rank first_rank, std::string host, size_t workers)
      : first_rank_(first_rank), host_(std::move(host)), paces_(workers) {}

  // Takes what a look has shown of each rank of this node.
  void Add(const std::vector<PaceSample>& samples, Instant now);

  // Of node rank 0. Cheap unless it is time to judge.
  SlowNews Judge(Instant now);

  // Of the other nodes: what node rank 0 is to be told of this node's ranks; empty if nothing is
  // known, or if it was told a moment ago.
  std::string Word(size_t max_bytes);

  // Returns true if the text of that node was such a word.
  bool Hear(int node_rank, const std::string& text);

 private:
  std::vector<RankShare> Shares() const;
  Duration Waited(std::vector<RankShare> all, Instant first, Instant now);

  const Rank first_rank_;
  const std::string host_;
  std::vector<RankPace> paces_;                   // By local rank.
  std::map<int, std::vector<RankShare>> others_;  // By node rank.
  SlowJudge judge_;
  SlowNews news_;
  // Time lost in former periods, in which other ranks were slow; when this one began, what each
  // rank had done by then, and the most that was found in it.
  Duration sum_{};
  Instant period_;
  std::map<Rank, PaceCount> before_;
  Duration most_{};
  int looks_ = 0;
  int told_ = 0;  // At which of them.
};

}  // namespace hlaunch
