// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "launcher/remote/detached/log_line.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What a polling thread tells the thread that shows a job. A value.
struct FollowNews {
  std::optional<JobView> job;
  int node_rank = -1;  // The node that `lines` come from.
  std::vector<LogLine> lines;
  bool lost = false;        // Lines before these are lost.
  bool node_ended = false;  // This node sends no more lines.
  bool unread = false;      // Set with node_ended: the rest of its log could not be read.
  absl::Status trouble;     // Why a question failed. Told once; the question is asked again.
  bool well = false;        // Questions are answered again after a trouble.
  absl::Status refused;     // The job cannot be followed at all.
};

// Carries news from several threads to one. Thread-safe. Put blocks while too many bytes wait to be
// taken.
class FollowInbox {
 public:
  FollowInbox();

  void Put(FollowNews news);
  std::deque<FollowNews> Take();
  // This descriptor is readable while news wait to be taken.
  int fd() const { return wake_.get(); }
  // From now on Put does not block, and it drops what it gets.
  void Close();

 private:
  const UniqueFd wake_;
  Mutex mu_;
  CondVar room_;
  std::deque<FollowNews> news_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace hlaunch
