// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "launcher/detached/log_line.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What is wanted of a job of the cluster. A value.
struct ClusterFollowWish {
  std::string socket;  // Of hlaunchd.
  uint64_t job = 0;
  int tail = -1;           // Of the lines that are there the last ones of each node; -1: all.
  bool shows_logs = true;  // Else only the job is watched.
  std::string node;        // A host or a node rank: only that one's lines; empty: of all nodes.
  int signals = -1;        // A signalfd; -1: none.
  // All of these are called by the thread that follows; null: nothing is done then.
  std::function<void(const LogLine&)> show;
  std::function<void()> shown;                 // All that has come was.
  std::function<void(const JobView&)> seen;    // Whenever the job has changed.
  std::function<bool(const JobView&)> enough;  // No more is wanted.
  std::function<bool(int signal)> asked;       // A signal came; whether to leave the job alone.
};

enum class ClusterFollowEnd {
  kEnded,    // The job has, and its nodes' last lines were shown.
  kEnough,   // As wish.enough said,
  kLeft,     // or wish.asked.
  kRefused,  // There is no such job, or it is another's.
};

struct ClusterFollowed {
  ClusterFollowEnd end = ClusterFollowEnd::kEnded;
  JobView job;       // As it was last.
  absl::Status why;  // Of kRefused.
};

// Follows a job: its state, and what its nodes say as it comes. If hlaunchd or the cluster's head
// is gone it says so on stderr, waits, and goes on once they are back. Call where there is one
// thread; its own have ended when it returns.
ClusterFollowed FollowJobOfCluster(const ClusterFollowWish& wish);

// Whether `part` is the one that `node` names, by its host or its rank; all of them if it is empty.
// Pure.
bool IsNode(const PartView& part, const std::string& node);

}  // namespace hlaunch
