// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/contract/ids.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// A rank that has failed by MPI's rules. A value.
struct MpiFailure {
  int local_rank = 0;
  int exit_code = 1;   // The job's exit code.
  std::string reason;  // "rank 3 called MPI_Abort(7)"
  FailureKind kind = FailureKind::kOther;
};

// How far a rank is.
//
//   kSilent --Enter--> kInMpi --Finish--> kDone
//   any --Close--> kClosed
enum class MpiState { kSilent, kInMpi, kDone, kClosed };

// Tracks how far the ranks of one node are, and decides what it means for the job if a rank leaves
// the others. PMI-1 and PMIx use it alike. Belongs to one thread.
class MpiRanks {
 public:
  MpiRanks(Rank first_rank, int nproc, int world_size);

  // A rank has called MPI_Init. Returns the failure of a rank that had already exited before its
  // own.
  std::optional<MpiFailure> Enter(int local_rank);
  void SetInBarrier(int local_rank, bool in_barrier) { At(local_rank).in_barrier = in_barrier; }
  void Finish(int local_rank) { At(local_rank).state = MpiState::kDone; }
  void Close(int local_rank) { At(local_rank).state = MpiState::kClosed; }

  // The rank has called MPI_Abort with `code`. Closes the rank and returns its failure.
  MpiFailure Abort(int local_rank, int code);

  // The rank has exited with 0, and hlaunch had not stopped it. Returns its failure, if this is
  // one.
  std::optional<MpiFailure> Exited(int local_rank);

  // Describes in one line which of these ranks wait for which; empty if none waits.
  std::string Awaited() const;

  MpiState state(int local_rank) const { return ranks_[static_cast<size_t>(local_rank)].state; }
  bool in_barrier(int local_rank) const {
    return ranks_[static_cast<size_t>(local_rank)].in_barrier;
  }
  bool used() const { return used_; }  // A rank has called MPI_Init.
  Rank RankOf(int local_rank) const { return first_rank_ + local_rank; }
  int nproc() const { return static_cast<int>(ranks_.size()); }

  // "rank 3 exited with code 0 before MPI_Init", for a rank that did so.
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
