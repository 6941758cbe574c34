// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/mpi_ranks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

std::string RanksText(const std::vector<Rank>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankList(ranks));
}

const char* Verb(const std::vector<Rank>& ranks, const char* one, const char* many) {
  return ranks.size() == 1 ? one : many;
}

}  // namespace

MpiRanks::MpiRanks(Rank first_rank, int nproc, int world_size)
    : first_rank_(first_rank), world_size_(world_size), ranks_(static_cast<size_t>(nproc)) {}

std::optional<MpiFailure> MpiRanks::Enter(int local_rank) {
  At(local_rank).state = MpiState::kInMpi;
  used_ = true;
  for (int other = 0; other < nproc(); ++other) {
    const OneRank& left = At(other);
    if (left.exited && left.state == MpiState::kSilent) return LeftWaiting(other, local_rank);
  }
  return std::nullopt;
}

MpiFailure MpiRanks::Abort(int local_rank, int code) {
  Close(local_rank);
  const int shown = code & 0xff;  // As exit() truncates it.
  return {local_rank, shown == 0 ? 1 : shown,
          absl::StrCat("rank ", RankOf(local_rank), " called MPI_Abort(", code, ")")};
}

std::optional<MpiFailure> MpiRanks::Exited(int local_rank) {
  OneRank& rank = At(local_rank);
  rank.exited = true;
  if (rank.state == MpiState::kInMpi && world_size_ > 1) {
    return MpiFailure{
        local_rank, 1,
        absl::StrCat("rank ", RankOf(local_rank), " exited with code 0 before MPI_Finalize")};
  }
  for (int other = 0; rank.state == MpiState::kSilent && other < nproc(); ++other) {
    if (At(other).state == MpiState::kInMpi) return LeftWaiting(local_rank, other);
  }
  return std::nullopt;
}

std::string MpiRanks::LeftBeforeInit(int local_rank) const {
  return absl::StrCat("rank ", RankOf(local_rank), " exited with code 0 before MPI_Init");
}

bool MpiRanks::AllLeftBeforeInit() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const OneRank& rank) {
    return rank.exited && rank.state == MpiState::kSilent;
  });
}

MpiFailure MpiRanks::LeftWaiting(int local_rank, int waiting) const {
  return {local_rank, 1,
          absl::StrCat(LeftBeforeInit(local_rank), ", and rank ", RankOf(waiting), " waits in it")};
}

std::string MpiRanks::Awaited() const {
  std::vector<Rank> silent, inside, barrier;
  for (int i = 0; i < nproc(); ++i) {
    if (state(i) == MpiState::kSilent) silent.push_back(RankOf(i));
    if (state(i) == MpiState::kInMpi) (in_barrier(i) ? barrier : inside).push_back(RankOf(i));
  }
  const std::vector<Rank>& waiting = barrier.empty() ? inside : barrier;
  if (!silent.empty() && !waiting.empty()) {
    return absl::StrCat(RanksText(waiting), Verb(waiting, " is", " are"), " in MPI_Init, and ",
                        RanksText(silent), Verb(silent, " has", " have"), " not come to it");
  }
  if (barrier.empty() || inside.empty()) return "";
  return absl::StrCat(RanksText(barrier), Verb(barrier, " waits", " wait"),
                      " in MPI_Init or MPI_Finalize for ", RanksText(inside));
}

}  // namespace hlaunch
