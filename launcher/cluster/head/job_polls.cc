// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/job_polls.h"

#include <utility>

namespace hlaunch {

void JobPolls::Add(uint64_t job, Poll poll) {
  polls_[job].push_back(std::move(poll));
  ++count_;
}

void JobPolls::Forget(uint64_t peer) {
  for (auto& [job, polls] : polls_) {
    count_ -= std::erase_if(polls, [peer](const Poll& poll) { return poll.peer == peer; });
  }
  std::erase_if(polls_, [](const auto& of_job) { return of_job.second.empty(); });
}

std::vector<JobPolls::Poll> JobPolls::TakeDue(Instant now,
                                              const std::function<uint64_t(uint64_t)>& version) {
  std::vector<Poll> due;
  for (auto& [job, polls] : polls_) {
    const uint64_t current = version(job);
    count_ -= std::erase_if(polls, [&](Poll& poll) {
      const bool is_due = poll.seen != current || now >= poll.until;
      if (is_due) due.push_back(std::move(poll));
      return is_due;
    });
  }
  std::erase_if(polls_, [](const auto& of_job) { return of_job.second.empty(); });
  return due;
}

}  // namespace hlaunch
