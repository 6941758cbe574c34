// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/slow_rank.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr double kNoChance = 4;      // Standard deviations.
constexpr double kNoLonger = 0.5;    // Of kLeastLost: what is left then is not worth a word.
constexpr double kMuchDelay = 0.05;  // Of the time.

double Waited(const PaceCount& count) {
  return count.looks == 0 ? 0
                          : static_cast<double>(count.waited) / static_cast<double>(count.looks);
}

double Saved(const PaceCount& count) {
  return count.looks == 0 ? 0 : static_cast<double>(count.saved) / static_cast<double>(count.looks);
}

// How sure the share of waits is, by the number of looks.
double Variance(const PaceCount& count) {
  const double yes = static_cast<double>(count.waited) + 1;
  const double no = static_cast<double>(count.looks - count.waited) + 1;
  return yes * no / ((yes + no) * (yes + no) * (yes + no + 1));
}

// Which part of their time ranks like `other` lose because `slow` comes later than they. Zero if
// that is less than so many standard deviations.
double Lost(const PaceCount& slow, const PaceCount& other, double deviations = kNoChance) {
  const double lost = Waited(other) - Waited(slow) - Saved(slow);
  return lost > deviations * std::sqrt(Variance(slow) + Variance(other)) ? lost : 0;
}

using Group = std::vector<const RankShare*>;

// The groups of which at least two ranks were seen often enough.
std::vector<Group> Groups(const std::vector<RankShare>& ranks) {
  std::map<std::string, Group> groups;
  for (const RankShare& rank : ranks) {
    if (rank.steps.looks < kLeastLooks) continue;
    for (const std::string& group : rank.groups) groups[group].push_back(&rank);
  }
  std::vector<Group> known;
  for (auto& [name, group] : groups) {
    if (group.size() > 1) known.push_back(std::move(group));
  }
  return known;
}

// The count so that at least half of the group waits as much or more.
template <typename CountOf>
PaceCount Middle(Group group, CountOf count_of) {
  const auto middle = group.begin() + static_cast<ptrdiff_t>(group.size() / 2);
  std::nth_element(group.begin(), middle, group.end(),
                   [&](const RankShare* one, const RankShare* other) {
                     return Waited(count_of(*one)) < Waited(count_of(*other));
                   });
  return count_of(**middle);
}

PaceCount StepsOf(const RankShare& rank) { return rank.steps; }
PaceCount AllOf(const RankShare& rank) { return rank.all; }

SlowRanks SlowIn(const Group& group, double least, double deviations) {
  SlowRanks found;
  found.others = Middle(group, StepsOf);
  for (const RankShare* rank : group) {
    const double lost = Lost(rank->steps, found.others, deviations);
    if (lost < least) continue;
    found.ranks.push_back(rank->rank);
    found.lost = std::max(found.lost, lost);
  }
  std::sort(found.ranks.begin(), found.ranks.end());
  return found;
}

// What was seen of the slowest of `slow`, ranks of the group.
const PaceCount& Slowest(const Group& group, const std::vector<Rank>& slow) {
  return (*std::min_element(group.begin(), group.end(),
                            [&](const RankShare* one, const RankShare* other) {
                              const auto key = [&](const RankShare* rank) {
                                const bool is_slow =
                                    std::binary_search(slow.begin(), slow.end(), rank->rank);
                                return std::make_pair(!is_slow, Waited(rank->steps));
                              };
                              return key(one) < key(other);
                            }))
      ->steps;
}

const RankShare* Find(const std::vector<RankShare>& ranks, Rank rank) {
  const auto found =
      std::find_if(ranks.begin(), ranks.end(), [=](const auto& one) { return one.rank == rank; });
  return found == ranks.end() ? nullptr : &*found;
}

std::string Percent(double part) { return absl::StrFormat("%.0f %%", 100 * part); }

std::string TimeOf(Duration span) {
  const auto seconds = static_cast<int64_t>(InSeconds(span) + 0.5);
  return seconds < 100 ? absl::StrCat(seconds, " s") : absl::StrCat((seconds + 30) / 60, " min");
}

// "; it was most often in load (train.py:31), at 60 looks; it ran for 30 % of the time, and was
// ready for 25 % more, but no processor was free".
std::string Evidence(const RankShare& rank) {
  std::string text;
  if (!rank.place.empty()) {
    absl::StrAppend(&text, "; it was most often in ", rank.place, ", at ", rank.at_place);
  }
  if (rank.ran >= 0) {
    absl::StrAppend(&text, "; its main thread ran for ", Percent(rank.ran), " of the time");
    if (rank.delayed >= kMuchDelay) {
      absl::StrAppend(&text, " and would have run for ", Percent(rank.delayed),
                      " more, but had no processor");
    }
  }
  return text;
}

// "rank 2 (node0, local rank 2, pid 77)", "ranks 4-7 (node1)".
std::string Named(const std::vector<Rank>& named, const std::vector<RankShare>& ranks) {
  const RankShare* first = Find(ranks, named.front());
  if (first == nullptr) return absl::StrCat("rank ", named.front());
  if (named.size() == 1) {
    return absl::StrCat("rank ", first->rank, " (", first->host, ", local rank ", first->local_rank,
                        ", pid ", first->pid, ")");
  }
  std::set<std::string> hosts;
  for (const Rank rank : named) {
    if (const RankShare* one = Find(ranks, rank)) hosts.insert(one->host);
  }
  return absl::StrCat("ranks ", RankList(named), " (", first->host,
                      hosts.size() > 1 ? absl::StrCat(" and ", hosts.size() - 1, " more") : "",
                      ")");
}

SlowRanks FindAtLeast(const std::vector<RankShare>& ranks, double least, double deviations) {
  SlowRanks worst;
  std::vector<std::pair<Group, SlowRanks>> found;
  for (const Group& group : Groups(ranks)) {
    SlowRanks slow = SlowIn(group, least, deviations);
    if (slow.lost > worst.lost) worst = slow;
    found.push_back({group, std::move(slow)});
  }
  std::set<Rank> waiting;
  for (const auto& [group, slow] : found) {
    const bool same = std::any_of(slow.ranks.begin(), slow.ranks.end(), [&](Rank rank) {
      return std::binary_search(worst.ranks.begin(), worst.ranks.end(), rank);
    });
    if (!same) continue;
    const PaceCount& slowest = Slowest(group, slow.ranks);
    for (const RankShare* rank : group) {
      if (Lost(slowest, rank->steps, 0) >= least) waiting.insert(rank->rank);
    }
  }
  for (const Rank rank : worst.ranks) waiting.erase(rank);
  worst.waiting = waiting.size();
  return worst;
}

}  // namespace

SlowRanks FindSlowRanks(const std::vector<RankShare>& ranks) {
  return FindAtLeast(ranks, kLeastLost, kNoChance);
}

std::string DescribeSlow(const SlowRanks& slow, const std::vector<RankShare>& ranks,
                         Duration span) {
  const bool one = slow.ranks.size() == 1;
  const RankShare* first = Find(ranks, slow.ranks.front());
  if (first == nullptr) return "";
  return absl::StrCat(Named(slow.ranks, ranks), one ? " holds" : " hold", " up ", slow.waiting,
                      " other rank", slow.waiting == 1 ? ", which loses " : "s, which lose ",
                      Percent(slow.lost), " of their time. In ", TimeOf(span),
                      " these were seen to wait in a collective at ", slow.others.waited, " of ",
                      slow.others.looks, " looks, and ",
                      one ? "it" : absl::StrCat("rank ", first->rank), " at ", first->steps.waited,
                      " of ", first->steps.looks, Evidence(*first));
}

LostShare FindLostShare(const std::vector<RankShare>& ranks) {
  LostShare lost;
  Group largest;
  for (Group& group : Groups(ranks)) {
    if (group.size() > largest.size()) largest = std::move(group);
  }
  for (const RankShare& rank : ranks) {
    if (rank.all.looks >= kLeastLooks) lost.saving = std::max(lost.saving, Saved(rank.all));
  }
  if (largest.empty()) return lost;
  const PaceCount others = Middle(largest, AllOf);
  for (const RankShare* rank : largest) {
    lost.waiting = std::max(lost.waiting, Lost(rank->all, others));
  }
  return lost;
}

SlowJudge::News SlowJudge::Look(const std::vector<RankShare>& ranks, Duration span) {
  SlowRanks slow = FindSlowRanks(ranks);
  if (!slow.ranks.empty()) {
    const bool known =
        std::includes(named_.begin(), named_.end(), slow.ranks.begin(), slow.ranks.end());
    if (known) return {};
    named_ = slow.ranks;
    return {DescribeSlow(slow, ranks, span), slow.ranks, slow.lost};
  }
  if (named_.empty()) return {};
  for (const SlowRanks left = FindAtLeast(ranks, kNoLonger * kLeastLost, 0);
       const Rank rank : left.ranks) {
    if (std::binary_search(named_.begin(), named_.end(), rank)) return {};
  }
  const bool seen = std::any_of(named_.begin(), named_.end(), [&](Rank rank) {
    const RankShare* one = Find(ranks, rank);
    return one != nullptr && one->steps.looks >= kLeastLooks;
  });
  if (!seen) return {};
  News over = {
      absl::StrCat(Named(named_, ranks),
                   named_.size() == 1 ? " no longer holds" : " no longer hold", " up the others"),
      named_, 0};
  named_.clear();
  return over;
}

}  // namespace hlaunch
