// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/attribute_hang.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/round/hang/rank_waits.h"

namespace hlaunch {
namespace {

using Snapshots = std::map<Rank, const RankSnapshot*>;
using Waits = std::vector<RankWait>;

// Returns true if all ranks must pass the same sizes to `op`.
bool SizesMustAgree(const std::string& op) {
  return op == "all_reduce" || op == "allreduce" || op == "broadcast" || op == "reduce";
}

std::string Signature(const CollectiveCall& call, bool with_sizes) {
  return with_sizes && !call.sizes.empty() ? absl::StrCat(call.op, " ", call.sizes) : call.op;
}

// Returns what the members of a group have called as number `sequence`; empty if all called the
// same.
std::vector<SameCall> DifferentCalls(const SharedGroup& group, int64_t sequence) {
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

HangVerdict VerdictOn(HangKind kind, const SharedGroup& group, const CollectiveCall& call) {
  HangVerdict verdict;
  verdict.kind = kind;
  verdict.waiting = group.Inside(call.sequence);
  verdict.group = group.Title();
  verdict.group_size = group.members.size();
  verdict.on_devices = group.on_devices;
  verdict.collective = call;
  verdict.wavefront =
      absl::StrCat(static_cast<int>(kind), "/", group.name, "/", call.sequence, "/");
  return verdict;
}

// Returns true if no rank is in an earlier collective of that group. Beyond it nothing can be
// compared: after a call that one rank has left out, the numbers mean different calls.
bool IsEarliest(const RankWait& wait, const Waits& waits) {
  return wait.call != nullptr &&
         std::none_of(waits.begin(), waits.end(), [&](const RankWait& other) {
           return other.group == wait.group && other.call != nullptr &&
                  other.call->sequence < wait.call->sequence;
         });
}

std::optional<HangVerdict> FindMismatch(const Waits& waits) {
  for (const RankWait& wait : waits) {
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
const RankWait* Widest(const Waits& waits, const std::set<Rank>& culprits) {
  const RankWait* widest = nullptr;
  size_t most = 0;
  for (const RankWait& wait : waits) {
    const bool awaits = std::any_of(wait.behind.begin(), wait.behind.end(),
                                    [&](Rank rank) { return culprits.count(rank) > 0; });
    const size_t inside = wait.call == nullptr ? 1 : wait.group->Inside(wait.call->sequence).size();
    if (!awaits || inside <= most) continue;
    most = inside;
    widest = &wait;
  }
  return widest;
}

// Returns true if some rank is seen to wait for its device, because it spins. Where none is, ranks
// that sleep until their devices are done look like those that are elsewhere.
bool IsWaitingSeen(const Snapshots& snapshots, const Waits& waits) {
  return std::any_of(waits.begin(), waits.end(), [&](const RankWait& wait) {
    return wait.group->on_devices && snapshots.at(wait.rank)->on_device;
  });
}

// Returns true if the rank itself waits, and not only its device.
bool WaitsItself(const RankSnapshot& rank, const SharedGroup& group) {
  return !group.on_devices || rank.waits || rank.on_device;
}

// Returns true if the rank is known to do something else than to wait for its device.
bool IsElsewhere(const RankSnapshot& rank) {
  return IsStopped(rank) || rank.state == 'D' || rank.holds_interpreter || rank.busy;
}

// The ranks that others wait for.
std::set<Rank> Awaited(const Waits& waits) {
  std::set<Rank> awaited;
  for (const RankWait& wait : waits) awaited.insert(wait.behind.begin(), wait.behind.end());
  return awaited;
}

// Returns the ranks that others wait for and that wait for no other, as far as is known. A rank in
// send, recv or the master store counts only if there is no other, or if it is stopped there.
std::set<Rank> Sinks(const Snapshots& snapshots, const Waits& waits) {
  std::set<Rank> sinks = Awaited(waits);
  const bool seen = IsWaitingSeen(snapshots, waits);
  for (const RankWait& wait : waits) {
    const RankSnapshot& rank = *snapshots.at(wait.rank);
    const bool may_wait = !seen && !IsElsewhere(rank);
    if (!wait.behind.empty() && (may_wait || WaitsItself(rank, *wait.group))) {
      sinks.erase(wait.rank);
    }
  }
  std::set<Rank> free = sinks;
  for (const auto& [rank, snapshot] : snapshots) {
    const bool waits_elsewhere = snapshot->in_p2p || snapshot->in_store;
    if (waits_elsewhere && !IsStopped(*snapshot)) free.erase(rank);
  }
  return free.empty() ? sinks : free;
}

// Returns a verdict on those of `waits` that are for messages, with a line for each.
HangVerdict OnMessages(HangKind kind, const Waits& waits, const Waits& all) {
  HangVerdict verdict;
  verdict.kind = kind;
  verdict.for_peers = true;
  std::set<Rank> waiting;
  for (const RankWait& wait : waits) {
    if (wait.call != nullptr) continue;
    waiting.insert(wait.rank);
    verdict.group = wait.group->Title();
    verdict.on_devices = wait.group->on_devices;
    verdict.collective.sequence = wait.group->messages.at(wait.rank)->messages;
    verdict.calls.push_back({DescribeWait(wait, all), {wait.rank}});
  }
  verdict.waiting.assign(waiting.begin(), waiting.end());
  return verdict;
}

// Returns those of `waits` that are for one of `culprits`.
Waits For(const std::set<Rank>& culprits, const Waits& waits) {
  Waits found;
  std::copy_if(waits.begin(), waits.end(), std::back_inserter(found), [&](const RankWait& wait) {
    return std::any_of(wait.behind.begin(), wait.behind.end(),
                       [&](Rank rank) { return culprits.count(rank) > 0; });
  });
  return found;
}

// Changes with each call of the rank: whatever it calls, it goes on.
std::string Progress(Rank rank, const std::vector<SharedGroup>& groups) {
  uint64_t calls = 0, messages = 0;
  for (const SharedGroup& group : groups) {
    calls += static_cast<uint64_t>(group.LastOf(rank));
    const auto snapshot = group.messages.find(rank);
    if (snapshot == group.messages.end()) continue;
    messages += static_cast<uint64_t>(snapshot->second->messages);
  }
  return absl::StrCat("/", rank, ":", calls, messages > 0 ? absl::StrCat("+", messages) : "");
}

// Unchanged until one of the culprits calls something. Who is a culprit may look different from
// moment to moment where devices wait, so there it is about all ranks that others wait for.
std::string HeldUp(const std::vector<SharedGroup>& groups, const Waits& waits,
                   const std::set<Rank>& culprits) {
  const bool on_devices = std::any_of(waits.begin(), waits.end(),
                                      [](const RankWait& wait) { return wait.group->on_devices; });
  std::string wavefront = "behind";
  for (const Rank rank : on_devices ? Awaited(waits) : culprits) {
    absl::StrAppend(&wavefront, Progress(rank, groups));
  }
  return wavefront;
}

HangVerdict Behind(const std::vector<SharedGroup>& groups, const Waits& waits,
                   const std::set<Rank>& sinks) {
  const RankWait& wait = *Widest(waits, sinks);
  HangVerdict verdict = wait.call == nullptr
                            ? OnMessages(HangKind::kBehind, For(sinks, waits), waits)
                            : VerdictOn(HangKind::kBehind, *wait.group, *wait.call);
  verdict.culprits.assign(sinks.begin(), sinks.end());
  verdict.wavefront = HeldUp(groups, waits, sinks);
  return verdict;
}

// All wait for each other. Returns who waits for a message while more wait for those ranks in one
// collective: then the message is what differs from most.
std::optional<HangVerdict> MessageInsteadOfCollective(const std::vector<SharedGroup>& groups,
                                                      const Waits& waits) {
  const RankWait* collective = nullptr;
  Waits messages;
  std::set<Rank> apart;
  for (const RankWait& wait : waits) {
    if (wait.behind.empty()) continue;
    if (wait.call == nullptr) {
      messages.push_back(wait);
      apart.insert(wait.rank);
    } else if (collective == nullptr) {
      collective = &wait;
    } else if (collective->group != wait.group ||
               collective->call->sequence != wait.call->sequence) {
      return std::nullopt;
    }
  }
  if (collective == nullptr || messages.empty()) return std::nullopt;
  HangVerdict verdict = VerdictOn(HangKind::kBehind, *collective->group, *collective->call);
  const std::vector<Rank>& behind = collective->behind;
  if (verdict.waiting.size() <= apart.size() ||
      !std::equal(behind.begin(), behind.end(), apart.begin(), apart.end())) {
    return std::nullopt;
  }
  verdict.culprits = behind;
  verdict.wavefront = HeldUp(groups, waits, apart);
  for (const RankWait& wait : messages) {
    verdict.calls.push_back({DescribeWait(wait, waits), {wait.rank}});
  }
  return verdict;
}

HangVerdict Crossed(const std::vector<SharedGroup>& groups, const Waits& waits) {
  const RankWait& first = *std::find_if(waits.begin(), waits.end(), [](const RankWait& wait) {
    return wait.call != nullptr && !wait.behind.empty();
  });
  HangVerdict verdict = VerdictOn(HangKind::kCrossed, *first.group, *first.call);
  std::map<std::string, std::vector<Rank>> places;
  for (const RankWait& wait : waits) {
    if (!wait.behind.empty()) places[DescribeWait(wait, waits)].push_back(wait.rank);
  }
  for (auto& [place, ranks] : places) {
    verdict.calls.push_back({place, std::move(ranks)});
    absl::StrAppend(&verdict.wavefront, place, ";");
  }
  if (first.group->on_devices) verdict.wavefront = HeldUp(groups, waits, {});
  return verdict;
}

// Returns true if no rank can have completed `op` before all ranks have come to it.
bool EndsForAllAtOnce(const std::string& op) {
  constexpr absl::string_view kUneven[] = {"broadcast", "reduce", "gather", "scatter"};
  return std::find(std::begin(kUneven), std::end(kUneven), op) == std::end(kUneven);
}

// All ranks have come to the collectives in which they are. If one has ended on some devices, the
// others hold up what follows.
HangVerdict AllCame(const Snapshots& snapshots, const Waits& waits) {
  const RankWait* told = nullptr;
  for (const RankWait& wait : waits) {
    if (snapshots.at(wait.rank)->flows) return {};  // The collective goes on, however slowly.
  }
  for (const RankWait& wait : waits) {
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
std::string PeersWavefront(const std::vector<RankSnapshot>& ranks) {
  std::string wavefront = "peers/";
  for (const RankSnapshot& rank : ranks) {
    if (rank.in_p2p) absl::StrAppend(&wavefront, rank.rank, ":", rank.moved, "/");
  }
  return wavefront;
}

// Ranks that are left when the others have exited keep the job from its end. One that works may
// come to it.
HangVerdict LeftAlone(const std::vector<RankSnapshot>& ranks) {
  HangVerdict verdict;
  verdict.kind = HangKind::kLeft;
  verdict.wavefront = "left";
  for (const RankSnapshot& rank : ranks) {
    if (rank.ended) {
      verdict.waiting.push_back(rank.rank);
      continue;
    }
    if (!rank.still || rank.died || rank.busy || rank.flows) return {};
    verdict.culprits.push_back(rank.rank);
    absl::StrAppend(&verdict.wavefront, "/", rank.rank, ":", rank.moved);
  }
  return verdict.waiting.empty() || verdict.culprits.empty() ? HangVerdict() : verdict;
}

// Ranks that wait for the master store, or in send or recv, wait for the ranks that do neither. The
// store comes first, since messages follow what is done there.
HangVerdict OutsideOfGroups(const std::vector<RankSnapshot>& ranks) {
  HangVerdict verdict;
  std::vector<Rank> in_store, in_p2p, ended;
  for (const RankSnapshot& rank : ranks) {
    (rank.ended      ? ended
     : rank.in_store ? in_store
     : rank.in_p2p   ? in_p2p
                     : verdict.culprits)
        .push_back(rank.rank);
  }
  if (in_store.empty() && in_p2p.empty()) return LeftAlone(ranks);
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

// Returns true if all awaited ranks are in the master store, or all in send or recv as in a
// monitored barrier, and they are more than the ranks that wait for them: then the latter have not
// come there, for example for a new group.
bool MostAreElsewhere(const std::vector<RankSnapshot>& ranks, const Waits& waits,
                      const std::set<Rank>& sinks) {
  std::set<Rank> awaiting;
  for (const RankWait& wait : waits) awaiting.insert(wait.rank);
  const auto all = [&](bool RankSnapshot::*are) {
    return std::all_of(ranks.begin(), ranks.end(), [&](const RankSnapshot& rank) {
      return rank.*are || sinks.count(rank.rank) == 0;
    });
  };
  return sinks.size() > awaiting.size() &&
         (all(&RankSnapshot::in_store) || all(&RankSnapshot::in_p2p));
}

// Returns what holds up the ranks of one part.
HangVerdict JudgePart(const std::vector<RankSnapshot>& ranks, const Snapshots& snapshots,
                      const std::vector<SharedGroup>& groups, const Waits& waits) {
  if (auto mismatch = FindMismatch(waits)) return *std::move(mismatch);
  if (const std::set<Rank> sinks = Sinks(snapshots, waits); !sinks.empty()) {
    return MostAreElsewhere(ranks, waits, sinks) ? OutsideOfGroups(ranks)
                                                 : Behind(groups, waits, sinks);
  }
  const auto of_collectives = [&](bool with_behind) {
    return std::any_of(waits.begin(), waits.end(), [with_behind](const RankWait& wait) {
      return wait.call != nullptr && (!with_behind || !wait.behind.empty());
    });
  };
  if (auto message = MessageInsteadOfCollective(groups, waits)) return *std::move(message);
  if (of_collectives(true)) return Crossed(groups, waits);
  if (of_collectives(false)) return AllCame(snapshots, waits);
  HangVerdict verdict = OnMessages(HangKind::kPeers, waits, waits);
  for (const Rank rank : verdict.waiting) {
    const RankSnapshot& snapshot = *snapshots.at(rank);
    if (snapshot.flows) return {};
    absl::StrAppend(&verdict.wavefront, "peers", Progress(rank, groups), ":", snapshot.moved);
  }
  return verdict;
}

// Returns true if a rank waits and nobody knows for whom: for the master store, or for a message
// that was not recorded.
bool WaitsForUnknown(const RankSnapshot& rank) {
  const bool known =
      std::any_of(rank.groups.begin(), rank.groups.end(), [](const GroupSnapshot& group) {
        return std::any_of(group.peers.begin(), group.peers.end(),
                           [](const PeerCalls& calls) { return calls.unfinished > 0; });
      });
  return rank.in_store || (rank.in_p2p && !known);
}

// Returns true if a rank of which nothing is known is waited for.
bool LeadsElsewhere(const Snapshots& snapshots, const Waits& waits) {
  return std::any_of(waits.begin(), waits.end(), [&](const RankWait& wait) {
    return (wait.call != nullptr && wait.group->order.empty()) ||
           std::any_of(wait.behind.begin(), wait.behind.end(),
                       [&](Rank rank) { return snapshots.count(rank) == 0; });
  });
}

void PutTheDeadFirst(const Snapshots& snapshots, std::vector<Rank>* ranks) {
  std::stable_partition(ranks->begin(), ranks->end(), [&](Rank rank) {
    const auto snapshot = snapshots.find(rank);
    return snapshot != snapshots.end() && snapshot->second->died;
  });
}

// A rank that waits for a single other rank may wait for one that works.
bool MayWork(const RankSnapshot& rank) {
  return rank.busy || (rank.in_p2p && !rank.ended && !rank.died);
}

// Returns true if a person stopped all ranks, or debugs a culprit. Otherwise notes whether the
// culprits may only be slow.
bool IsCausedByAPerson(const std::vector<RankSnapshot>& ranks, HangVerdict* verdict) {
  const auto& culprits = verdict->culprits;
  bool all_stopped = true, all_work = !culprits.empty(), debugged = false;
  for (const RankSnapshot& rank : ranks) {
    all_stopped = all_stopped && (rank.ended || rank.died || IsStopped(rank));
    if (std::find(culprits.begin(), culprits.end(), rank.rank) == culprits.end()) continue;
    debugged = debugged || rank.traced;
    all_work = all_work && MayWork(rank);
  }
  verdict->busy = all_work;
  return all_stopped || debugged;
}

}  // namespace

std::vector<HangVerdict> AttributeHangs(const std::vector<RankSnapshot>& ranks, bool whole) {
  const auto is_hidden = [](const RankSnapshot& rank) { return rank.hidden; };
  if (std::any_of(ranks.begin(), ranks.end(), is_hidden)) {
    std::vector<RankSnapshot> known = ranks;
    std::erase_if(known, is_hidden);
    return AttributeHangs(known, /*whole=*/false);
  }
  const std::vector<SharedGroup> groups = SharedGroups(ranks);
  const Waits waits = RankWaits(groups);
  Snapshots snapshots;
  for (const RankSnapshot& rank : ranks) snapshots[rank.rank] = &rank;
  std::vector<HangVerdict> verdicts;
  if (whole && waits.empty()) verdicts.push_back(OutsideOfGroups(ranks));
  const bool apart = std::none_of(ranks.begin(), ranks.end(), WaitsForUnknown);
  std::vector<Waits> parts = apart ? ConnectedParts(waits) : std::vector<Waits>{waits};
  for (const Waits& part : parts) {
    if (part.empty() || (!whole && LeadsElsewhere(snapshots, part))) continue;
    verdicts.push_back(JudgePart(ranks, snapshots, groups, part));
  }
  std::erase_if(verdicts, [&](HangVerdict& verdict) {
    return verdict.kind == HangKind::kNone || IsCausedByAPerson(ranks, &verdict);
  });
  for (HangVerdict& verdict : verdicts) PutTheDeadFirst(snapshots, &verdict.culprits);
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const HangVerdict& a, const HangVerdict& b) {
                     return a.waiting.size() > b.waiting.size();
                   });
  return verdicts;
}

HangVerdict AttributeHang(const std::vector<RankSnapshot>& ranks) {
  std::vector<HangVerdict> verdicts = AttributeHangs(ranks, /*whole=*/true);
  return verdicts.empty() ? HangVerdict() : std::move(verdicts.front());
}

}  // namespace hlaunch
