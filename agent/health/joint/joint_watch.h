// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/health/joint/joint_check.h"
#include "agent/health/joint/peer_ways.h"
#include "comm/process_group.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// What a node says of itself in one turn. A value.
struct NodeTurn {
  NodeFigures figures;
  bool finished = false;  // Its workers have succeeded.
};

// What all nodes came to in one turn. A value.
struct JointTurn {
  NodeFigures sums;                   // Of the nodes that know the figure; NaN: there are none.
  std::array<int, kFigures> known{};  // How many that are.
  int finished = 0;                   // Nodes.
  std::vector<std::string> news;      // At node rank 0: what others said.
  int untold = 0;                     // News that has to wait for the next turn.

  // The mean of the other nodes, where this one has said `own`; NaN: nobody else knows it.
  double MeanOfOthers(Figure figure, double own) const;
};

// All nodes of a round say at intervals how they are, while their workers run: what they say is
// added up by comm, and a node that has news tells node rank 0. A turn costs each node at most some
// 30 small messages, among 32 nodes as among 16,000 (comm/call/algorithm.h: all at once, then
// doubling), and as many once more for each line of news.
//
// A failed turn ends the group, and the next one is the first of a new group. All make the same
// ones: a node that was late for a turn fails in it at once, and has caught up. Not thread-safe.
class JointWatch {
 public:
  using ConnectFn = std::function<absl::StatusOr<std::shared_ptr<Store>>()>;

  static constexpr size_t kMaxNews = 64;
  static constexpr int kNewsPerTurn = 16;

  // `address`: a literal of this host that the others reach. The store is that of the round; it is
  // connected to in the first turn, and sees a few keys for each group.
  JointWatch(const JointPlan& plan, std::string address, ConnectFn connect);

  // For node rank 0 to hear, in a later turn, at most kLineBytes of it. Beyond kMaxNews the oldest
  // is lost.
  void AddNews(std::string line);
  static constexpr size_t kLineBytes = 1024;

  // Takes part in one turn; waits for the others for `patience`.
  //
  // Errors: as ProcessGroup, with the names of those that were missed; as Store.
  absl::StatusOr<JointTurn> Take(const NodeTurn& turn, Duration patience);

  // The node ranks of those, among the ones to be looked at, that do not answer within `limit`;
  // none before the first turn that succeeded. See PeerWays.
  std::vector<int> LookForUnreached(Duration limit) { return ways_.Look(limit); }

 private:
  absl::StatusOr<JointTurn> TakeInGroup(const NodeTurn& turn, Duration patience);
  absl::StatusOr<std::string> DeliverOne(Duration patience);

  const JointPlan plan_;
  const std::string address_;
  const ConnectFn connect_;
  PeerWays ways_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<ProcessGroup> group_;
  int groups_ = 0;  // That were made.
  std::deque<std::string> news_;
};

}  // namespace hlaunch
