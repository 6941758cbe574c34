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
#include "launcher/detached/log_line.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What those who poll tell the one who shows it. A value.
struct FollowNews {
  std::optional<JobView> job;
  int node_rank = -1;          // Of the lines.
  std::vector<LogLine> lines;  // Of that node.
  bool lost = false;           // Lines before these are gone.
  bool node_ended = false;     // Nothing more comes of it.
  absl::Status trouble;        // Why a question was not answered, once; it is asked again.
  bool well = false;           // It is answered again.
  absl::Status refused;        // The job cannot be followed at all.
};

// Carries news from several threads to one. Thread-safe; who puts waits while much lies there.
class FollowInbox {
 public:
  FollowInbox();

  void Put(FollowNews news);
  std::deque<FollowNews> Take();
  // Readable while something lies there.
  int fd() const { return wake_.get(); }
  // From now on nobody waits in Put, and what is put is dropped.
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
