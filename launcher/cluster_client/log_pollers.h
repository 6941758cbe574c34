// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "launcher/cluster_client/follow_inbox.h"
#include "launcher/cluster_client/local_client.h"
#include "launcher/cluster_client/node_lines.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Of one follower, beside the one for the job. hlaunchd takes 32 connections of a user, who may
// follow ten jobs with that, and still asks other things.
inline constexpr size_t kMaxLogConnections = 2;

// Asks for the logs of a job's nodes, all of them at the same time: a connection and a thread for a
// node or, where there are more nodes than connections, for several in turn. What comes goes to the
// inbox. A daemon or a head that is away is asked again until it answers.
//
// Belongs to one thread; its own threads end with it.
class LogPollers {
 public:
  // `tail`: only so many of the lines that are there; -1: all. The inbox outlives this.
  LogPollers(std::string path, uint64_t job, int tail, FollowInbox& inbox);
  ~LogPollers();

  // From now on this node's log is asked for, too; once each.
  void Add(int node_rank);
  // The job has ended: what a node does not say now, it never will.
  void JobEnded();
  size_t nodes() const { return count_; }

 private:
  class Poller;

  const std::string path_;
  const uint64_t job_;
  const int tail_;
  FollowInbox& inbox_;
  const UniqueFd stop_;  // Readable once the threads are to end.
  std::set<int> added_;
  size_t count_ = 0;
  std::vector<std::unique_ptr<Poller>> pollers_;
};

}  // namespace hlaunch
