// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/watch/notice/waiting_notice.h"
#include "agent/watch/observe/node_event.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Reports what happens to this node: every event to the observers, and to the user what matters to
// people.
//
// Belongs to the loop thread.
class NodeNews {
 public:
  // `on_event` may be empty.
  NodeNews(asio::io_context& loop, NodeEventFn on_event);

  WaitingNotice& waiting() { return waiting_; }

  // The rendezvous has sent a directive to this node. Only the first call is news.
  void Joined();

  void RoundStarts(const Assignment& assignment, int nproc);
  void RoundStops(Round round, const std::string& reason);

  // The news of the job, of all nodes. Each call passes all that the rendezvous has; what the last
  // call did not have is told.
  void OfJob(const std::vector<News>& latest);

  // Contact with the rendezvous was lost or found. `in_job`: a round has run or was prepared; if
  // false, the node still waits for its first contact.
  void Contact(bool connected, const std::string& detail, bool in_job);

 private:
  void Tell(const NodeEvent& event) const;

  const NodeEventFn on_event_;
  WaitingNotice waiting_;
  bool joined_ = false;
  bool lost_contact_ = false;
  int restart_count_ = 0;  // The restart count of the latest round.
  // What the rendezvous had at the last call. A rendezvous that was restarted counts from 1 again,
  // so a number alone does not say which line it is.
  std::vector<News> told_;
};

}  // namespace hlaunch
