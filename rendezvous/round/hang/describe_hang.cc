// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/describe_hang.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMostDescribed = 6;

std::string Seconds(Duration age) {
  return absl::StrCat(std::chrono::duration_cast<std::chrono::seconds>(age).count(), " s");
}

// "all_reduce number 1204 of default_pg"; "the master store"
std::string Where(const HangVerdict& verdict) {
  if (verdict.for_peers) return "other ranks, in send or recv";
  if (verdict.group.empty()) return "the master store";
  return absl::StrCat(verdict.collective.op, " number ", verdict.collective.sequence, " of ",
                      verdict.group);
}

std::string WhereAndWhat(const HangVerdict& verdict) {
  const std::string& sizes = verdict.collective.sizes;
  return absl::StrCat(Where(verdict), sizes.empty() ? "" : absl::StrCat(" (", sizes, ")"));
}

// "15 of 16 ranks are in all_reduce number 1204 of default_pg ([1024, 1024] Float)"
std::string Waiting(const HangVerdict& verdict) {
  const size_t count = verdict.waiting.size();
  if (verdict.for_peers && verdict.on_devices) {
    return absl::StrCat(count == 1 ? "The device of rank " : "The devices of ranks ",
                        RankList(verdict.waiting), count == 1 ? " waits" : " wait", " for ",
                        Where(verdict));
  }
  if (verdict.for_peers || verdict.group.empty()) {
    return absl::StrCat(count == 1 ? "Rank " : "Ranks ", RankList(verdict.waiting),
                        count == 1 ? " waits" : " wait", " for ", Where(verdict));
  }
  if (verdict.on_devices) {
    return absl::StrCat("The ", count == 1 ? "device" : "devices", " of ", count, " of ",
                        verdict.group_size, count == 1 ? " ranks is" : " ranks are", " in ",
                        WhereAndWhat(verdict));
  }
  return absl::StrCat(count, " of ", verdict.group_size, count == 1 ? " ranks is" : " ranks are",
                      " in ", WhereAndWhat(verdict));
}

const RankSnapshot* Find(const std::vector<RankSnapshot>& ranks, Rank rank) {
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [rank](const RankSnapshot& one) { return one.rank == rank; });
  return found == ranks.end() ? nullptr : &*found;
}

std::string Name(const RankSnapshot& rank) {
  return absl::StrCat("rank ", rank.rank, " (", rank.host, rank.host.empty() ? "" : ", ",
                      "local rank ", rank.local_rank, ", pid ", rank.pid, ")");
}

// Returns a line for each of `chosen`, and how many are left out.
std::string Lines(const std::vector<Rank>& chosen, const std::vector<RankSnapshot>& ranks,
                  absl::string_view has) {
  std::string lines;
  size_t told = 0;
  for (const Rank one : chosen) {
    const RankSnapshot* rank = Find(ranks, one);
    if (rank == nullptr || ++told > kMostDescribed) continue;
    absl::StrAppend(&lines, "\n  ", Name(*rank), has, DescribeRank(*rank));
  }
  if (told > kMostDescribed) absl::StrAppend(&lines, "\n  and ", told - kMostDescribed, " more");
  return lines;
}

// The ranks that have come to the collective and are stopped in it: it cannot end, even if those
// that are missing come.
std::vector<Rank> StoppedInside(const HangVerdict& verdict,
                                const std::vector<RankSnapshot>& ranks) {
  std::vector<Rank> stopped;
  for (const Rank rank : verdict.waiting) {
    const RankSnapshot* snapshot = Find(ranks, rank);
    if (!verdict.for_peers && snapshot != nullptr && IsStopped(*snapshot)) stopped.push_back(rank);
  }
  return stopped;
}

std::string Calls(const HangVerdict& verdict) {
  std::string lines;
  size_t told = 0;
  for (const SameCall& same : verdict.calls) {
    if (++told > kMostDescribed) continue;
    absl::StrAppend(&lines, "\n  ", same.ranks.size() == 1 ? "rank " : "ranks ",
                    RankList(same.ranks), verdict.kind == HangKind::kMismatch ? ": " : ": in ",
                    same.call);
  }
  if (told > kMostDescribed) absl::StrAppend(&lines, "\n  and ", told - kMostDescribed, " more");
  return lines;
}

// "node1 (10.0.0.7)"
std::string HostAt(const std::string& address, const std::vector<RankSnapshot>& ranks) {
  for (const RankSnapshot& rank : ranks) {
    const auto& own = rank.addresses;
    if (rank.host.empty() || std::find(own.begin(), own.end(), address) == own.end()) continue;
    return absl::StrCat(rank.host, " (", address, ")");
  }
  return address;
}

// Returns a line for each pair of hosts of which one hears nothing of the other, as far as ranks of
// the verdict are concerned.
std::string Unheard(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks) {
  std::vector<Rank> concerned = verdict.waiting;
  concerned.insert(concerned.end(), verdict.culprits.begin(), verdict.culprits.end());
  std::map<std::string, std::vector<Rank>> pairs;
  for (const RankSnapshot& rank : ranks) {
    if (std::find(concerned.begin(), concerned.end(), rank.rank) == concerned.end()) continue;
    for (const std::string& address : rank.unheard) {
      pairs[absl::StrCat(HostAt(address, ranks), " acknowledges nothing that ", rank.host,
                         " sends to it")]
          .push_back(rank.rank);
    }
  }
  std::string lines;
  size_t told = 0;
  for (auto& [pair, of] : pairs) {
    if (++told > kMostDescribed) continue;
    std::sort(of.begin(), of.end());
    absl::StrAppend(&lines, "\n  ", pair, " (rank", of.size() == 1 ? " " : "s ", RankList(of),
                    "): look at the network between them");
  }
  if (told > kMostDescribed) absl::StrAppend(&lines, "\n  and ", told - kMostDescribed, " more");
  return lines;
}

// DescribeStandstill without that.
std::string Standstill(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks);

}  // namespace

std::string DescribeRank(const RankSnapshot& rank) {
  const std::string in = rank.place.empty() ? "" : absl::StrCat(" in ", rank.place);
  if (rank.ended) return "has exited with 0";
  if (rank.died) return "has died";
  if (IsFrozen(rank)) return "is frozen, with its control group (docker pause, or a scheduler)";
  if (rank.state == 't' || rank.traced) return absl::StrCat("is held by a debugger", in);
  if (rank.state == 'T') return "is stopped (SIGSTOP, or job control); kill -CONT lets it go on";
  if (rank.state == 'D') {
    return absl::StrCat("is stuck in the kernel",
                        rank.kernel.empty() ? "" : absl::StrCat(", in ", rank.kernel), in);
  }
  if (rank.holds_interpreter) return absl::StrCat("holds the interpreter", in);
  if (rank.in_store) return absl::StrCat("waits for the master store", in);
  if (rank.on_device) return absl::StrCat("waits for its device", in);
  if (!rank.mpi_call.empty())
    return absl::StrCat("waits in ", rank.mpi_call, rank.place.empty() ? "" : ", called", in);
  if (rank.child_works) {
    return absl::StrCat("waits", in, " while a process that it started works");
  }
  if (rank.busy) return absl::StrCat("computes, reads or writes", in);
  if (rank.in_p2p) return absl::StrCat("waits for another rank", in);
  return rank.place.empty() ? "sleeps" : absl::StrCat("stands", in);
}

std::string DescribeStandstill(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks) {
  if (verdict.kind == HangKind::kNone) return "";
  return absl::StrCat(Standstill(verdict, ranks), Unheard(verdict, ranks));
}

namespace {

std::string Standstill(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks) {
  switch (verdict.kind) {
    case HangKind::kNone:
      return "";
    case HangKind::kBehind:
      return absl::StrCat(Waiting(verdict), ";", Calls(verdict),
                          Lines(verdict.culprits, ranks,
                                verdict.for_peers ? " does not: it " : " has not come to it: it "),
                          Lines(StoppedInside(verdict, ranks), ranks, " has come to it, but "));
    case HangKind::kMismatch:
      return absl::StrCat("Ranks have called different collectives as number ",
                          verdict.collective.sequence, " of ", verdict.group, ":", Calls(verdict),
                          Lines(verdict.culprits, ranks, " differs from most: it "));
    case HangKind::kCrossed: {
      std::vector<Rank> all;
      for (const SameCall& same : verdict.calls) {
        all.insert(all.end(), same.ranks.begin(), same.ranks.end());
      }
      std::sort(all.begin(), all.end());
      return absl::StrCat("Ranks use their groups in different orders, and wait for each other:",
                          Calls(verdict), Lines(all, ranks, " "));
    }
    case HangKind::kAllInside:
      return absl::StrCat(Waiting(verdict),
                          ", and all have come to it: look at the network and the devices",
                          Lines(verdict.waiting, ranks, " "));
    case HangKind::kDevice:
      return absl::StrCat("All ", verdict.group_size, " ranks have called ", WhereAndWhat(verdict),
                          ", and it has ended on ", verdict.group_size - verdict.culprits.size(),
                          " of their devices: look at the device and the links of the others",
                          Lines(verdict.culprits, ranks, " "));
    case HangKind::kStore:
      return absl::StrCat(Waiting(verdict), ", for keys that nobody has set",
                          Lines(verdict.waiting, ranks, " "));
    case HangKind::kPeers:
      return absl::StrCat(Waiting(verdict), ", each for another one of them", Calls(verdict),
                          Lines(verdict.waiting, ranks, " "));
    case HangKind::kMpi:
      return absl::StrCat(
          verdict.waiting.size(), " of ", verdict.group_size,
          verdict.waiting.size() == 1 ? " ranks waits in MPI" : " ranks wait in MPI",
          verdict.culprits.empty() ? ", and no call ends:" : ";", Calls(verdict),
          Lines(verdict.culprits, ranks, " holds them up: it "));
    case HangKind::kLeft:
      return absl::StrCat(verdict.waiting.size() == 1 ? "Rank " : "Ranks ",
                          RankList(verdict.waiting), verdict.waiting.size() == 1 ? " has" : " have",
                          " exited with 0;", Lines(verdict.culprits, ranks, " has not: it "));
  }
  return "";
}

}  // namespace

std::string DescribeHang(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks,
                         Duration age, bool whole) {
  const std::string standstill = DescribeStandstill(verdict, ranks);
  if (standstill.empty()) return "";
  const bool partly = !whole || std::any_of(ranks.begin(), ranks.end(), GoesOn);
  return absl::StrCat(
      partly ? "a part of the job has not gone on for " : "no rank has gone on for ", Seconds(age),
      ". ", standstill);
}

std::string DescribeCulprit(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks,
                            Rank rank, Duration age) {
  const RankSnapshot* snapshot = Find(ranks, rank);
  const std::string does =
      snapshot == nullptr ? "" : absl::StrCat(": it ", DescribeRank(*snapshot));
  const auto say = [&](absl::string_view what) {
    return absl::StrCat("hangs: ", what, Where(verdict), " for ", Seconds(age), does);
  };
  switch (verdict.kind) {
    case HangKind::kBehind:
      if (std::count(verdict.culprits.begin(), verdict.culprits.end(), rank) == 0) {
        return say(
            absl::StrCat("rank ", RankList(verdict.culprits), " has exited, and it waits in "));
      }
      return say(verdict.for_peers ? "it does not wait, as others do, for "
                                   : "it has not come to ");
    case HangKind::kMismatch:
      return say("ranks differ in what they have called as ");
    case HangKind::kDevice:
      return say("its device has not ended ");
    case HangKind::kMpi:
      return absl::StrCat("hangs: ",
                          verdict.culprits.empty() ? "it waits in MPI, like all others"
                                                   : "others wait for it in MPI",
                          " for ", Seconds(age), does);
    case HangKind::kLeft:
      return absl::StrCat("hangs: the other ranks have exited with 0, and it has not for ",
                          Seconds(age), does);
    case HangKind::kCrossed:
      return say("ranks use groups in different orders, and it waits in ");
    default:
      return say("it waits, like all others, for ");
  }
}

std::vector<Rank> RanksToFail(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks) {
  std::vector<Rank> culprits;
  for (const Rank culprit : verdict.culprits) {
    const RankSnapshot* rank = Find(ranks, culprit);
    if (rank == nullptr || !rank->ended) culprits.push_back(culprit);
  }
  if (!culprits.empty()) {
    std::erase_if(culprits, [&](Rank culprit) {
      const RankSnapshot* rank = Find(ranks, culprit);
      return rank != nullptr && (rank->child_works || rank->died);
    });
    return culprits;
  }
  if (!verdict.calls.empty()) return {verdict.calls[0].ranks[0]};
  if (!verdict.waiting.empty()) return {verdict.waiting[0]};
  return {};
}

}  // namespace hlaunch
