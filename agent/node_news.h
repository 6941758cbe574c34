// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/notice/waiting_notice.h"
#include "agent/observe/node_event.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Tells those who look on what happens to this node, and a person what concerns one.
//
// Belongs to the loop thread.
class NodeNews {
 public:
  // `on_event` may be empty.
  NodeNews(asio::io_context& loop, NodeEventFn on_event);

  WaitingNotice& waiting() { return waiting_; }

  // The rendezvous has directed this node. Only the first time is news.
  void Joined();

  void RoundStarts(const Assignment& assignment, int nproc);
  void RoundStops(Round round, const std::string& reason);

  // What the rendezvous tells of other nodes, all of it each time.
  void OfJob(const std::vector<News>& latest);

  // Contact with the rendezvous was lost or found. `in_job`: a round has run or was prepared; else
  // the node waits for its first contact.
  void Contact(bool connected, const std::string& detail, bool in_job);

 private:
  void Tell(const NodeEvent& event) const;

  const NodeEventFn on_event_;
  WaitingNotice waiting_;
  bool joined_ = false;
  bool lost_contact_ = false;
  int restart_count_ = 0;  // Of the latest round.
  uint64_t told_ = 0;      // The number of the last news of the job.
};

}  // namespace hlaunch
