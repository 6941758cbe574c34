// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/hang/attribute_hang.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

constexpr char kDefaultGroup[] = "0";  // Torch's name of the group of all ranks.

using Pictures = std::map<Rank, const RankPicture*>;

// What all ranks know of one group, by one backend.
struct Group {
  std::string name;
  bool on_devices = false;
  std::string description;
  std::set<Rank> members;
  std::map<Rank, const GroupPicture*> pictures;  // Of ranks that have called a collective of it.

  const CollectiveCall* Call(Rank rank, int64_t sequence) const {
    const auto found = pictures.find(rank);
    if (found == pictures.end()) return nullptr;
    for (const CollectiveCall& call : found->second->latest) {
      if (call.sequence == sequence) return &call;
    }
    return nullptr;
  }

  int64_t LastOf(Rank rank) const {
    const auto found = pictures.find(rank);
    return found == pictures.end() ? 0 : found->second->latest.back().sequence;
  }

  std::vector<Rank> Behind(int64_t sequence) const {
    std::vector<Rank> behind;
    std::copy_if(members.begin(), members.end(), std::back_inserter(behind),
                 [&](Rank rank) { return LastOf(rank) < sequence; });
    return behind;
  }

  // Returns the members that are in that collective.
  std::vector<Rank> Inside(int64_t sequence) const {
    std::vector<Rank> inside;
    for (const Rank rank : members) {
      const CollectiveCall* call = Call(rank, sequence);
      if (call != nullptr && call->inside) inside.push_back(rank);
    }
    return inside;
  }
};

// A rank that waits in a collective.
struct Wait {
  Rank rank = 0;
  const Group* group = nullptr;
  const CollectiveCall* call = nullptr;
  std::vector<Rank> behind;  // The ranks that it waits for; empty: all have come.
};

std::vector<Group> Groups(const std::vector<RankPicture>& ranks) {
  std::map<std::pair<std::string, std::string>, Group> groups;  // By name and backend.
  for (const RankPicture& rank : ranks) {
    for (const GroupPicture& picture : rank.groups) {
      Group& group = groups[{picture.name, picture.backend}];
      group.name = picture.name;
      group.on_devices = !picture.backend.empty();
      if (group.description.empty()) group.description = picture.description;
      group.members.insert(picture.members.begin(), picture.members.end());
      if (!picture.latest.empty()) group.pictures[rank.rank] = &picture;
    }
  }
  std::vector<Group> known;
  for (auto& [key, group] : groups) {
    for (const auto& [rank, picture] : group.pictures) group.members.insert(rank);
    for (const RankPicture& rank : ranks) {
      if (group.name == kDefaultGroup) group.members.insert(rank.rank);
    }
    known.push_back(std::move(group));
  }
  return known;
}

// Returns, for each group, the first collective that each rank is in; the rank's later ones wait
// for that one as well.
std::vector<Wait> Waits(const std::vector<Group>& groups) {
  std::vector<Wait> waits;
  for (const Group& group : groups) {
    for (const auto& [rank, picture] : group.pictures) {
      const auto call = std::find_if(picture->latest.begin(), picture->latest.end(),
                                     [](const CollectiveCall& one) { return one.inside; });
      if (call == picture->latest.end()) continue;
      waits.push_back({rank, &group, &*call, group.Behind(call->sequence)});
    }
  }
  return waits;
}

// Returns true if all ranks must pass the same sizes to `op`.
bool SizesMustAgree(const std::string& op) {
  return op == "all_reduce" || op == "allreduce" || op == "broadcast" || op == "reduce";
}

std::string Signature(const CollectiveCall& call, bool with_sizes) {
  return with_sizes && !call.sizes.empty() ? absl::StrCat(call.op, " ", call.sizes) : call.op;
}

// Returns what the members of a group have called as number `sequence`; empty if all called the
// same.
std::vector<SameCall> DifferentCalls(const Group& group, int64_t sequence) {
  std::map<std::string, std::vector<Rank>> ops, calls;
  bool sizes = true;
  for (const Rank rank : group.members) {
    const CollectiveCall* call = group.Call(rank, sequence);
    if (call == nullptr) continue;
    ops[call->op].push_back(rank);
    calls[Signature(*call, true)].push_back(rank);
    sizes = sizes && SizesMustAgree(call->op);
  }
  if (ops.size() > 1) calls = ops;
  if (calls.size() < 2 || (ops.size() == 1 && !sizes)) return {};
  std::vector<SameCall> different;
  for (auto& [call, ranks] : calls) different.push_back({call, std::move(ranks)});
  std::stable_sort(different.begin(), different.end(), [](const SameCall& a, const SameCall& b) {
    return a.ranks.size() < b.ranks.size();
  });
  return different;
}

HangVerdict VerdictOn(HangKind kind, const Group& group, const CollectiveCall& call) {
  HangVerdict verdict;
  verdict.kind = kind;
  verdict.waiting = group.Inside(call.sequence);
  verdict.group = group.description.empty() || group.description == "undefined"
                      ? absl::StrCat("group ", group.name)
                      : group.description;
  verdict.group_size = group.members.size();
  verdict.on_devices = group.on_devices;
  verdict.collective = call;
  verdict.wavefront =
      absl::StrCat(static_cast<int>(kind), "/", group.name, "/", call.sequence, "/");
  return verdict;
}

// Returns true if no rank is in an earlier collective of that group. Beyond it nothing can be
// compared: after a call that one rank has left out, the numbers mean different calls.
bool IsEarliest(const Wait& wait, const std::vector<Wait>& waits) {
  return std::none_of(waits.begin(), waits.end(), [&](const Wait& other) {
    return other.group == wait.group && other.call->sequence < wait.call->sequence;
  });
}

std::optional<HangVerdict> FindMismatch(const std::vector<Wait>& waits) {
  for (const Wait& wait : waits) {
    if (!IsEarliest(wait, waits)) continue;
    std::vector<SameCall> calls = DifferentCalls(*wait.group, wait.call->sequence);
    if (calls.empty()) continue;
    HangVerdict verdict = VerdictOn(HangKind::kMismatch, *wait.group, *wait.call);
    if (calls[0].ranks.size() < calls[1].ranks.size()) verdict.culprits = calls[0].ranks;
    verdict.calls = std::move(calls);
    return verdict;
  }
  return std::nullopt;
}

// Returns the wait for a culprit in which the most ranks are.
const Wait* Widest(const std::vector<Wait>& waits, const std::set<Rank>& culprits) {
  const Wait* widest = nullptr;
  size_t most = 0;
  for (const Wait& wait : waits) {
    const bool awaits = std::any_of(wait.behind.begin(), wait.behind.end(),
                                    [&](Rank rank) { return culprits.count(rank) > 0; });
    const size_t inside = wait.group->Inside(wait.call->sequence).size();
    if (!awaits || inside <= most) continue;
    most = inside;
    widest = &wait;
  }
  return widest;
}

// Returns true if the rank itself waits, and not only its device.
bool WaitsItself(const RankPicture& rank, const Group& group) {
  return !group.on_devices || rank.waits || rank.on_device;
}

// Returns the ranks that others wait for and that wait for no other, as far as is known. A rank in
// send, recv or the master store counts only if there is no other.
std::set<Rank> Sinks(const std::vector<RankPicture>& ranks, const std::vector<Wait>& waits) {
  std::set<Rank> sinks;
  for (const Wait& wait : waits) sinks.insert(wait.behind.begin(), wait.behind.end());
  Pictures pictures;
  for (const RankPicture& rank : ranks) pictures[rank.rank] = &rank;
  for (const Wait& wait : waits) {
    if (!wait.behind.empty() && WaitsItself(*pictures.at(wait.rank), *wait.group)) {
      sinks.erase(wait.rank);
    }
  }
  std::set<Rank> free = sinks;
  for (const RankPicture& rank : ranks) {
    if (rank.in_p2p || rank.in_store) free.erase(rank.rank);
  }
  return free.empty() ? sinks : free;
}

HangVerdict Behind(const std::vector<Group>& groups, const std::vector<Wait>& waits,
                   const std::set<Rank>& sinks) {
  const Wait& wait = *Widest(waits, sinks);
  HangVerdict verdict = VerdictOn(HangKind::kBehind, *wait.group, *wait.call);
  verdict.culprits.assign(sinks.begin(), sinks.end());
  verdict.wavefront = "behind";
  for (const Rank rank : sinks) {
    int64_t calls = 0;  // Whatever a rank calls, it goes on.
    for (const Group& group : groups) calls += group.LastOf(rank);
    absl::StrAppend(&verdict.wavefront, "/", rank, ":", calls);
  }
  return verdict;
}

HangVerdict Crossed(const std::vector<Wait>& waits) {
  const Wait& first = *std::find_if(waits.begin(), waits.end(),
                                    [](const Wait& wait) { return !wait.behind.empty(); });
  HangVerdict verdict = VerdictOn(HangKind::kCrossed, *first.group, *first.call);
  std::map<std::string, std::vector<Rank>> places;
  for (const Wait& wait : waits) {
    if (wait.behind.empty()) continue;
    const HangVerdict place = VerdictOn(HangKind::kCrossed, *wait.group, *wait.call);
    places[absl::StrCat(wait.call->op, " number ", wait.call->sequence, " of ", place.group)]
        .push_back(wait.rank);
  }
  for (auto& [place, ranks] : places) {
    verdict.calls.push_back({place, std::move(ranks)});
    absl::StrAppend(&verdict.wavefront, place, ";");
  }
  return verdict;
}

// Returns true if no rank can have completed `op` before all ranks have come to it.
bool EndsForAllAtOnce(const std::string& op) {
  constexpr absl::string_view kUneven[] = {"broadcast", "reduce", "gather", "scatter"};
  return std::find(std::begin(kUneven), std::end(kUneven), op) == std::end(kUneven);
}

// All ranks have come to the collectives in which they are. If one has ended on some devices, the
// others hold up what follows.
HangVerdict AllCame(const std::vector<Wait>& waits) {
  const Wait* told = nullptr;
  for (const Wait& wait : waits) {
    if (!IsEarliest(wait, waits)) continue;
    if (told == nullptr) told = &wait;
    const CollectiveCall& call = *wait.call;
    const std::vector<Rank> inside = wait.group->Inside(call.sequence);
    if (!wait.group->on_devices || inside.size() == wait.group->members.size() ||
        !EndsForAllAtOnce(call.op)) {
      continue;
    }
    HangVerdict verdict = VerdictOn(HangKind::kDevice, *wait.group, call);
    verdict.culprits = inside;
    absl::StrAppend(&verdict.wavefront, absl::StrJoin(inside, ","));
    return verdict;
  }
  return VerdictOn(HangKind::kAllInside, *told->group, *told->call);
}

// Messages between two ranks have no numbers, so the amount that was moved so far tells whether any
// arrive.
std::string PeersWavefront(const std::vector<RankPicture>& ranks) {
  std::string wavefront = "peers/";
  for (const RankPicture& rank : ranks) {
    if (rank.in_p2p) absl::StrAppend(&wavefront, rank.rank, ":", rank.moved, "/");
  }
  return wavefront;
}

// Ranks that wait for the master store, or in send or recv, wait for the ranks that do neither. The
// store comes first, since messages follow what is done there.
HangVerdict OutsideOfGroups(const std::vector<RankPicture>& ranks) {
  HangVerdict verdict;
  std::vector<Rank> in_store, in_p2p, ended;
  for (const RankPicture& rank : ranks) {
    (rank.ended      ? ended
     : rank.in_store ? in_store
     : rank.in_p2p   ? in_p2p
                     : verdict.culprits)
        .push_back(rank.rank);
  }
  if (in_store.empty() && in_p2p.empty()) return {};
  verdict.for_peers = in_store.empty();
  verdict.waiting = verdict.for_peers ? in_p2p : in_store;
  if (verdict.culprits.empty() && !verdict.for_peers) verdict.culprits = std::move(in_p2p);
  if (verdict.culprits.empty()) verdict.culprits = std::move(ended);
  verdict.kind = !verdict.culprits.empty() ? HangKind::kBehind
                 : verdict.for_peers       ? HangKind::kPeers
                                           : HangKind::kStore;
  verdict.wavefront = absl::StrCat(verdict.for_peers ? PeersWavefront(ranks) : "store/",
                                   absl::StrJoin(verdict.culprits, ","));
  return verdict;
}

// Returns true if all awaited ranks are in the master store, and they are more than the ranks that
// wait for them: then the latter have not come to the store, for example for a new group.
bool AwaitTheStore(const std::vector<RankPicture>& ranks, const std::vector<Wait>& waits,
                   const std::set<Rank>& sinks) {
  std::set<Rank> awaiting;
  for (const Wait& wait : waits) awaiting.insert(wait.rank);
  return sinks.size() > awaiting.size() &&
         std::all_of(ranks.begin(), ranks.end(), [&](const RankPicture& rank) {
           return rank.in_store || sinks.count(rank.rank) == 0;
         });
}

HangVerdict Attribute(const std::vector<RankPicture>& ranks) {
  const std::vector<Group> groups = Groups(ranks);
  const std::vector<Wait> waits = Waits(groups);
  if (waits.empty()) return OutsideOfGroups(ranks);
  if (auto mismatch = FindMismatch(waits)) return *std::move(mismatch);
  if (const std::set<Rank> sinks = Sinks(ranks, waits); !sinks.empty()) {
    return AwaitTheStore(ranks, waits, sinks) ? OutsideOfGroups(ranks)
                                              : Behind(groups, waits, sinks);
  }
  if (std::any_of(waits.begin(), waits.end(), [](const Wait& w) { return !w.behind.empty(); })) {
    return Crossed(waits);
  }
  return AllCame(waits);
}

bool IsStopped(const RankPicture& rank) { return rank.state == 'T' || rank.state == 't'; }

// A rank that waits for a single other rank may wait for one that works.
bool MayWork(const RankPicture& rank) { return rank.busy || (rank.in_p2p && !rank.ended); }

}  // namespace

HangVerdict AttributeHang(const std::vector<RankPicture>& ranks) {
  HangVerdict verdict = Attribute(ranks);
  const auto& culprits = verdict.culprits;
  bool all_stopped = true, all_work = !culprits.empty(), debugged = false;
  for (const RankPicture& rank : ranks) {
    all_stopped = all_stopped && (rank.ended || IsStopped(rank));
    if (std::find(culprits.begin(), culprits.end(), rank.rank) == culprits.end()) continue;
    debugged = debugged || rank.traced;
    all_work = all_work && MayWork(rank);
  }
  if (all_stopped || debugged) return {};  // A person has caused this.
  verdict.busy = all_work;
  return verdict;
}

}  // namespace hlaunch
