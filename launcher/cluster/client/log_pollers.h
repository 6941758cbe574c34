// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "launcher/cluster/client/follow_inbox.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/client/node_lines.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The log connections of one follower; it has one more for the job. hlaunchd takes 32 connections
// of a user, who can follow ten jobs with that and still ask other questions.
inline constexpr size_t kMaxLogConnections = 2;

// Asks for the logs of all nodes of a job at the same time. Each connection has a thread and serves
// one node. If there are more nodes than connections, a connection serves several nodes in turn.
// The answers go to the inbox. While a daemon or a head is away, its question is repeated until it
// is answered.
//
// Belongs to one thread. Its own threads end with it.
class LogPollers {
 public:
  // `tail` is how many of each node's existing lines to ask for; -1: all. The inbox outlives this
  // object.
  LogPollers(std::string path, uint64_t job, int tail, FollowInbox& inbox);
  ~LogPollers();

  // From now on this node's log is asked for, too. A second call for a node does nothing.
  void Add(int node_rank);
  // The job has ended: its nodes say nothing new from now on.
  void JobEnded();
  const std::set<int>& nodes() const { return added_; }

 private:
  class Poller;

  const std::string path_;
  const uint64_t job_;
  const int tail_;
  FollowInbox& inbox_;
  const UniqueFd stop_;  // Readable once the threads shall end.
  std::set<int> added_;
  size_t count_ = 0;
  std::vector<std::unique_ptr<Poller>> pollers_;
};

}  // namespace hlaunch
