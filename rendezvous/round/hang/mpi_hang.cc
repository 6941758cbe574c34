// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/mpi_hang.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

// So many samples of the stack of a rank that computes are needed
constexpr int kSamples = 2;
constexpr int kSamplesByName = 4;  // if it may have come back from its call and called again.

// Without the "mpi_".
constexpr absl::string_view kCollectives[] = {
    "barrier",     "bcast",       "reduce",     "allreduce",  "gather",     "allgather",
    "scatter",     "alltoall",    "scan",       "exscan",     "comm_dup",   "comm_split",
    "comm_create", "cart_create", "dist_graph", "intercomm",  "win_create", "win_allocate",
    "win_fence",   "win_free",    "file_open",  "file_close", "finalize",   "init",
    "comm_free",   "comm_spawn",
};

// A process that does nothing until somebody wakes it.
bool IsIdle(const RankSnapshot& rank) {
  return !rank.busy && !rank.spins && (rank.state == 'S' || rank.state == 'D' || IsStopped(rank));
}

// No tool can read the stack of these.
bool HasNoStack(const RankSnapshot& rank) { return rank.state == 'D' || IsStopped(rank); }

int Needed(const RankSnapshot& rank) {
  if (HasNoStack(rank)) return 0;
  if (!rank.spins) return 1;  // It has not moved since.
  return rank.samples > 0 && (rank.mpi_call.empty() || rank.in_one_call) ? kSamples
                                                                         : kSamplesByName;
}

// Ranks whose stacks count: some of each host.
std::vector<const RankSnapshot*> Chosen(const std::vector<const RankSnapshot*>& ranks) {
  std::map<std::string, int> of_host;
  std::vector<const RankSnapshot*> chosen;
  for (const bool idle : {true, false}) {
    for (const RankSnapshot* rank : ranks) {
      if (IsIdle(*rank) == idle && ++of_host[rank->host] <= kMostSampled) chosen.push_back(rank);
    }
  }
  return chosen;
}

// Notes how many more samples are needed. Returns true if none is.
bool IsSampled(const std::vector<const RankSnapshot*>& chosen, HangVerdict* verdict) {
  for (const RankSnapshot* rank : chosen) {
    const int needed = Needed(*rank);
    if (rank->samples >= needed) continue;
    if (verdict->samples_needed == 0 ||
        needed - rank->samples > verdict->samples_needed - verdict->samples) {
      verdict->samples_needed = needed;
      verdict->samples = rank->samples;
    }
  }
  return verdict->samples_needed == 0;
}

// "MPI_Barrier, called in step (heat.c:40)"
std::string CallOf(const RankSnapshot& rank) {
  return absl::StrCat(rank.mpi_call,
                      rank.place.empty() ? "" : absl::StrCat(", called in ", rank.place));
}

// Sorts the ranks into those that wait and culprits, as far as their stacks are known. Returns true
// if that can be believed: no culprit computes, or all that wait were seen to be in one call.
bool Sort(const std::vector<const RankSnapshot*>& chosen, HangVerdict* verdict) {
  std::map<std::string, std::vector<Rank>> calls;
  bool all_in_one = true, computes = false;
  for (const RankSnapshot* rank : chosen) {
    if (rank->spins && rank->samples == 0) continue;
    const bool waits = !HasNoStack(*rank) && !rank->mpi_call.empty();
    if (!waits) {
      verdict->culprits.push_back(rank->rank);
      computes |= rank->spins;
      continue;
    }
    verdict->waiting.push_back(rank->rank);
    verdict->busy |= !IsMpiCollective(rank->mpi_call);
    all_in_one &= rank->in_one_call || !rank->spins;
    calls[CallOf(*rank)].push_back(rank->rank);
  }
  std::sort(verdict->waiting.begin(), verdict->waiting.end());
  std::sort(verdict->culprits.begin(), verdict->culprits.end());
  for (auto& [call, of] : calls) {
    std::sort(of.begin(), of.end());
    verdict->calls.push_back({call, std::move(of)});
  }
  verdict->busy |= computes;
  return all_in_one || (!computes && !verdict->culprits.empty());
}

}  // namespace

bool IsMpiCollective(absl::string_view call) {
  const std::string name = absl::AsciiStrToLower(call);
  const size_t begin = name.find("mpi_");
  if (begin == name.npos) return false;
  const absl::string_view what = absl::string_view(name).substr(begin + 4);
  return std::any_of(std::begin(kCollectives), std::end(kCollectives),
                     [&](absl::string_view one) { return absl::StartsWith(what, one); });
}

HangVerdict AttributeMpiHang(const std::vector<RankSnapshot>& ranks) {
  std::vector<const RankSnapshot*> living;
  std::vector<Rank> idle;
  for (const RankSnapshot& rank : ranks) {
    if (rank.ended) continue;
    if (!rank.mpi || rank.died || rank.traced || rank.child_works) return {};
    if (IsIdle(rank)) {
      idle.push_back(rank.rank);
    } else if (!rank.spins) {
      return {};
    }
    living.push_back(&rank);
  }
  if (living.size() < 2 || idle.size() == living.size()) return {};
  HangVerdict verdict;
  verdict.kind = HangKind::kMpi;
  verdict.group_size = living.size();
  verdict.wavefront = absl::StrCat("mpi/", absl::StrJoin(idle, ","));
  verdict.busy = idle.empty();
  const std::vector<const RankSnapshot*> chosen = Chosen(living);
  const bool sampled = IsSampled(chosen, &verdict);
  const bool sure = Sort(chosen, &verdict);
  if (sampled && (verdict.waiting.empty() || !sure)) return {};
  return verdict;
}

}  // namespace hlaunch
