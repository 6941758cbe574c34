// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/remote/detached/log_line.h"
#include "proto/base/clock.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What to follow of a job of the cluster, and how. A value.
struct ClusterFollowWish {
  std::string socket;  // The path of hlaunchd's socket.
  uint64_t job = 0;
  int tail = -1;           // How many of each node's existing lines to show; -1: all.
  bool shows_logs = true;  // If false, only the job's state is followed.
  std::string node;        // A host or a node rank, whose lines alone are shown; empty: all nodes.
  int signals = -1;        // A signalfd; -1: none.
  Instant deadline = Instant::max();  // Stop following then, also if nothing was heard of the job.
  // The thread that follows calls all of these. A null function is not called.
  std::function<void(const LogLine&)> show;
  std::function<void()> shown;                 // After each batch of lines.
  std::function<void(const JobView&)> seen;    // Whenever the job may have changed.
  std::function<bool(const JobView&)> enough;  // True: stop following.
  std::function<bool(int signal)> asked;       // For each signal. True: leave the job alone.
};

enum class ClusterFollowEnd {
  kEnded,    // The job has ended, and its nodes' last lines were shown.
  kEnough,   // wish.enough returned true, or wish.deadline has passed.
  kLeft,     // wish.asked returned true.
  kRefused,  // There is no such job, or it belongs to another user.
};

struct ClusterFollowed {
  ClusterFollowEnd end = ClusterFollowEnd::kEnded;
  JobView job;       // Its last known state. The number alone: nothing was heard of it.
  absl::Status why;  // Set for kRefused.
  int signal = 0;    // Set for kLeft: the signal for which wish.asked returned true.
  // Set for kEnded: the nodes of whose output lines are missing, ascending.
  std::vector<int> incomplete = {};
};

// Follows a job's state and shows its nodes' lines as they come. If hlaunchd or the cluster's head
// is away, this function says so on stderr, waits, and goes on once they are back. Call it while
// the process has only one thread. Its own threads have ended when it returns.
ClusterFollowed FollowJobOfCluster(const ClusterFollowWish& wish);

// Returns true if `node` names `part` by its host or its node rank, or if `node` is empty. Pure.
bool IsNode(const PartView& part, const std::string& node);

}  // namespace hlaunch
