// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/contract/ids.h"

namespace hlaunch {

// A rank that has failed by MPI's rules. A value.
struct MpiFailure {
  int local_rank = 0;
  int exit_code = 1;   // What the job exits with.
  std::string reason;  // "rank 3 called MPI_Abort(7)"
};

// How far a rank has come.
//
//   kSilent --Enter--> kInMpi --Finish--> kDone
//   any --Close--> kClosed
enum class MpiState { kSilent, kInMpi, kDone, kClosed };

// How far the ranks of one node have come, and what follows for the job from one that leaves the
// others alone. The same for all that starts MPI programs. Belongs to one thread.
class MpiRanks {
 public:
  MpiRanks(Rank first_rank, int nproc, int world_size);

  // A rank has come to MPI_Init. Returns the failure of one that had left before.
  std::optional<MpiFailure> Enter(int local_rank);
  void SetInBarrier(int local_rank, bool in_barrier) { At(local_rank).in_barrier = in_barrier; }
  void Finish(int local_rank) { At(local_rank).state = MpiState::kDone; }
  void Close(int local_rank) { At(local_rank).state = MpiState::kClosed; }

  // It has called MPI_Abort with `code`. It is closed then, and its failure is returned.
  MpiFailure Abort(int local_rank, int code);

  // It has exited with 0, and nobody had stopped it. Returns why it has failed, if it has.
  std::optional<MpiFailure> Exited(int local_rank);

  // Who waits for which of these ranks, in one line; empty: nobody does.
  std::string Awaited() const;

  MpiState state(int local_rank) const { return ranks_[static_cast<size_t>(local_rank)].state; }
  bool in_barrier(int local_rank) const {
    return ranks_[static_cast<size_t>(local_rank)].in_barrier;
  }
  bool used() const { return used_; }  // A rank has come to MPI_Init.
  Rank RankOf(int local_rank) const { return first_rank_ + local_rank; }
  int nproc() const { return static_cast<int>(ranks_.size()); }

  // "rank 3 exited with code 0 before MPI_Init", as said of one that did.
  std::string LeftBeforeInit(int local_rank) const;
  bool AllLeftBeforeInit() const;

 private:
  struct OneRank {
    MpiState state = MpiState::kSilent;
    bool in_barrier = false;
    bool exited = false;
  };

  OneRank& At(int local_rank) { return ranks_[static_cast<size_t>(local_rank)]; }
  MpiFailure LeftWaiting(int local_rank, int waiting) const;

  const Rank first_rank_;
  const int world_size_;
  std::vector<OneRank> ranks_;
  bool used_ = false;
};

}  // namespace hlaunch
