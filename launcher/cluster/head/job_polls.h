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

// Waiting questions of the verb `job`. Each is answered once the job's version differs from what
// the asker has seen, or its time is up.
//
// Belongs to one thread.
class JobPolls {
 public:
  static constexpr size_t kMost = 16384;

  // A question and the peer that asked it.
  struct Poll {
    uint64_t peer = 0;
    Envelope question;
    uint64_t seen = 0;
    Instant until;
  };

  bool full() const { return count_ >= kMost; }
  void Add(uint64_t job, Poll poll);
  void Forget(uint64_t peer);

  // Removes and returns the questions that are due: their time is up, or their job's version
  // differs from what they have seen. `version` returns a job's version, 0 if there is no such job.
  std::vector<Poll> TakeDue(Instant now, const std::function<uint64_t(uint64_t)>& version);

 private:
  std::map<uint64_t, std::vector<Poll>> polls_;  // By job.
  size_t count_ = 0;
};

}  // namespace hlaunch
