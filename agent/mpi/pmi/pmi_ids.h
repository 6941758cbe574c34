// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>

namespace hlaunch {

// What a number says of the connection that brings it.
enum class PmiGuest {
  kWorker,    // It is a worker that had not come yet.
  kAgain,     // It is a worker that has come before.
  kStranger,  // No worker has this number.
};

inline constexpr int kMostWrongPmiIds = 8;

// The numbers by which the workers of one round prove at a port which worker they are. MPI's
// libraries read PMI_ID as an int, so there are 31 bits to guess. After kMostWrongPmiIds wrong
// numbers all numbers are wrong.
//
// Belongs to one thread.
class PmiIds {
 public:
  // Returns a new random number for `local_rank`, which has none.
  int Give(int local_rank);

  struct Verdict {
    PmiGuest guest = PmiGuest::kStranger;
    int local_rank = -1;  // Set for kWorker.
  };
  // Says who comes with `id`. A number is good once.
  Verdict Take(int id);

  // True after too many wrong numbers.
  bool closed() const { return wrong_ >= kMostWrongPmiIds; }

 private:
  struct Owner {
    int local_rank;
    bool has_come = false;
  };
  std::map<int, Owner> owners_;  // By number.
  int wrong_ = 0;
};

}  // namespace hlaunch
