// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/rank_waits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr char kDefaultGroup[] = "0";  // Torch's name of the group of all ranks.
constexpr Rank kUnknown = -1;

// Returns the rank of the job that the group counts as `number`.
Rank MemberAt(const SharedGroup& group, Rank number) {
  const auto at = static_cast<size_t>(number);
  if (at < group.order.size()) return group.order[at];
  return group.name == kDefaultGroup && group.members.count(number) > 0 ? number : kUnknown;
}

const PeerCalls* CallsWith(const SharedGroup& group, Rank rank, Rank peer, bool sends) {
  const auto found = group.messages.find(rank);
  if (found == group.messages.end()) return nullptr;
  for (const PeerCalls& calls : found->second->peers) {
    if (calls.sends == sends && MemberAt(group, calls.peer) == peer) return &calls;
  }
  return nullptr;
}

// Returns true if `peer` has made the call that the first unfinished one of `rank` waits for.
bool HasCome(const SharedGroup& group, Rank rank, Rank peer, const PeerCalls& calls) {
  const PeerCalls* opposite = CallsWith(group, peer, rank, !calls.sends);
  if (opposite == nullptr) return false;
  const bool counted = opposite->calls >= 0 && calls.calls >= 0;
  return opposite->unfinished > 0 || (counted && opposite->calls > calls.calls - calls.unfinished);
}

void AddMessages(const SharedGroup& group, Rank rank, const GroupSnapshot& snapshot,
                 std::vector<RankWait>* waits) {
  for (const PeerCalls& calls : snapshot.peers) {
    const Rank peer = MemberAt(group, calls.peer);
    if (calls.unfinished <= 0 || peer == kUnknown || peer == rank) continue;
    RankWait wait{rank, &group, nullptr, peer, calls.sends, {}};
    if (!HasCome(group, rank, peer, calls)) wait.behind = {peer};
    waits->push_back(std::move(wait));
  }
}

std::vector<Rank> Behind(const SharedGroup& group, int64_t sequence) {
  std::vector<Rank> behind;
  std::copy_if(group.members.begin(), group.members.end(), std::back_inserter(behind),
               [&](Rank rank) { return group.LastOf(rank) < sequence; });
  return behind;
}

// Ranks that are joined, directly or not, have the same head.
class Heads {
 public:
  Rank Of(Rank rank) {
    Rank* head = &heads_.try_emplace(rank, rank).first->second;
    while (*head != rank) {
      rank = *head;
      Rank* next = &heads_.at(rank);
      *head = *next;
      head = next;
    }
    return rank;
  }
  void Join(Rank one, Rank other) { heads_[Of(one)] = Of(other); }

 private:
  std::map<Rank, Rank> heads_;
};

const char* VerbOf(bool sends) { return sends ? "send to" : "recv from"; }

// "which has called no send to it", "which is in send to it".
std::string DescribePeer(const RankWait& wait, const std::vector<RankWait>& all) {
  if (wait.behind.empty()) return absl::StrCat("which has called ", VerbOf(!wait.sends), " it");
  for (const RankWait& other : all) {
    if (other.rank != wait.peer) continue;
    if (other.call == nullptr) {
      return absl::StrCat("which is in ", VerbOf(other.sends), " rank ", other.peer);
    }
    return absl::StrCat("which is in ", other.call->op, " number ", other.call->sequence, " of ",
                        other.group->Title());
  }
  return absl::StrCat("which has called no ", VerbOf(!wait.sends), " it");
}

}  // namespace

const CollectiveCall* SharedGroup::Call(Rank rank, int64_t sequence) const {
  const auto found = snapshots.find(rank);
  if (found == snapshots.end()) return nullptr;
  for (const CollectiveCall& call : found->second->latest) {
    if (call.sequence == sequence) return &call;
  }
  return nullptr;
}

int64_t SharedGroup::LastOf(Rank rank) const {
  const auto found = snapshots.find(rank);
  return found == snapshots.end() ? 0 : found->second->latest.back().sequence;
}

std::vector<Rank> SharedGroup::Inside(int64_t sequence) const {
  std::vector<Rank> inside;
  for (const Rank rank : members) {
    const CollectiveCall* call = Call(rank, sequence);
    if (call != nullptr && call->inside) inside.push_back(rank);
  }
  return inside;
}

std::string SharedGroup::Title() const {
  return description.empty() || description == "undefined" ? absl::StrCat("group ", name)
                                                           : description;
}

std::vector<SharedGroup> SharedGroups(const std::vector<RankSnapshot>& ranks) {
  std::map<std::pair<std::string, std::string>, SharedGroup> groups;  // By name and backend.
  for (const RankSnapshot& rank : ranks) {
    for (const GroupSnapshot& snapshot : rank.groups) {
      SharedGroup& group = groups[{snapshot.name, snapshot.backend}];
      group.name = snapshot.name;
      group.on_devices = !snapshot.backend.empty();
      if (group.description.empty()) group.description = snapshot.description;
      if (group.order.empty()) group.order = snapshot.members;
      group.members.insert(snapshot.members.begin(), snapshot.members.end());
      if (!snapshot.latest.empty()) group.snapshots[rank.rank] = &snapshot;
      if (!snapshot.peers.empty()) group.messages[rank.rank] = &snapshot;
    }
  }
  std::vector<SharedGroup> known;
  for (auto& [key, group] : groups) {
    for (const auto& [rank, snapshot] : group.snapshots) group.members.insert(rank);
    for (const auto& [rank, snapshot] : group.messages) group.members.insert(rank);
    for (const RankSnapshot& rank : ranks) {
      if (group.name == kDefaultGroup) group.members.insert(rank.rank);
    }
    known.push_back(std::move(group));
  }
  return known;
}

std::vector<RankWait> RankWaits(const std::vector<SharedGroup>& groups) {
  std::vector<RankWait> waits;
  for (const SharedGroup& group : groups) {
    for (const auto& [rank, snapshot] : group.snapshots) {
      const auto call = std::find_if(snapshot->latest.begin(), snapshot->latest.end(),
                                     [](const CollectiveCall& one) { return one.inside; });
      if (call == snapshot->latest.end()) continue;
      waits.push_back({rank, &group, &*call, 0, false, Behind(group, call->sequence)});
    }
    for (const auto& [rank, snapshot] : group.messages) AddMessages(group, rank, *snapshot, &waits);
  }
  return waits;
}

std::vector<std::vector<RankWait>> ConnectedParts(const std::vector<RankWait>& waits) {
  Heads heads;
  std::map<const SharedGroup*, Rank> one_of;  // Those that wait in collectives of one group.
  for (const RankWait& wait : waits) {
    for (const Rank rank : wait.behind) heads.Join(rank, wait.rank);
    const Rank other =
        wait.call == nullptr ? wait.peer : one_of.try_emplace(wait.group, wait.rank).first->second;
    heads.Join(other, wait.rank);
  }
  std::map<Rank, std::vector<RankWait>> parts;
  for (const RankWait& wait : waits) parts[heads.Of(wait.rank)].push_back(wait);
  std::vector<std::vector<RankWait>> found;
  for (auto& [head, part] : parts) found.push_back(std::move(part));
  return found;
}

std::string DescribeWait(const RankWait& wait, const std::vector<RankWait>& all) {
  if (wait.call != nullptr) {
    return absl::StrCat(wait.call->op, " number ", wait.call->sequence, " of ",
                        wait.group->Title());
  }
  return absl::StrCat(VerbOf(wait.sends), " rank ", wait.peer, ", ", DescribePeer(wait, all));
}

}  // namespace hlaunch
