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
#include "rendezvous/round/values/round.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// What a node tells the others about itself in one turn. A value.
struct NodeTurn {
  NodeFigures figures;
  bool finished = false;  // Its workers have succeeded.
};

// The result of one turn of all nodes. A value.
struct JointTurn {
  NodeFigures sums;                   // Over the nodes that know the figure; NaN if none does.
  std::array<int, kFigures> known{};  // How many nodes know the figure.
  int finished = 0;                   // Number of finished nodes.
  std::vector<std::string> news;      // At node rank 0: news of other nodes.
  int untold = 0;                     // Number of news lines left for the next turn.

  // The mean of the other nodes, if this node said `own`. NaN if no other node knows the figure.
  double MeanOfOthers(Figure figure, double own) const;
};

// All nodes of a round exchange their state at intervals while their workers run. Comm adds up what
// they say, and a node that has news sends it to node rank 0. A turn costs each node at most about
// 30 small messages, with 32 nodes as with 16,000 (comm/call/algorithm.h: all at once, then
// doubling), and as many again for each line of news.
//
// A failed turn ends the group, and the next turn starts a new one. All nodes go through the same
// groups: a node that was late for a turn fails in it at once, and has then caught up. Not
// thread-safe.
class JointWatch {
 public:
  using ConnectFn = std::function<absl::StatusOr<std::shared_ptr<Store>>()>;

  static constexpr size_t kMaxNews = 64;
  static constexpr int kNewsPerTurn = 16;

  // `address` is a literal of this host that the others reach. `connect` opens the store of the
  // round; it is called in the first turn, and again while it fails. The store gets a few keys for
  // each group.
  JointWatch(const JointPlan& plan, std::string address, ConnectFn connect);

  // Queues a line, cut to kLineBytes, that node rank 0 gets in a later turn. With more than
  // kMaxNews lines queued, the oldest is lost.
  void AddNews(std::string line);
  static constexpr size_t kLineBytes = 1024;

  // Takes part in one turn; waits up to `patience` for the other nodes.
  //
  // Errors: as ProcessGroup, naming the nodes that were missing; as Store.
  absl::StatusOr<JointTurn> Take(const NodeTurn& turn, Duration patience);

  // Returns the node ranks of the nodes that this node tests and that do not answer within `limit`;
  // none before the first successful turn. See PeerWays.
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
  int groups_ = 0;  // Groups made so far.
  std::deque<std::string> news_;
};

}  // namespace hlaunch
