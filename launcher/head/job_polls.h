// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// Questions of `job` that are answered once the job is another than the asker has seen.
//
// Belongs to one thread.
class JobPolls {
 public:
  static constexpr size_t kMost = 16384;

  // A question, and whose.
  struct Poll {
    uint64_t peer = 0;
    Envelope question;
    uint64_t seen = 0;
    Instant until;
  };

  bool full() const { return count_ >= kMost; }
  void Add(uint64_t job, Poll poll);
  void Forget(uint64_t peer);

  // Takes out those that are due: their time is up, or their job's version is not what they have
  // seen. `version` is asked of each job, and 0 is of one that is not there.
  std::vector<Poll> TakeDue(Instant now, const std::function<uint64_t(uint64_t)>& version);

 private:
  std::map<uint64_t, std::vector<Poll>> polls_;  // By job.
  size_t count_ = 0;
};

}  // namespace hlaunch
