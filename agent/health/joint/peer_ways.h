// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/health/joint/joint_check.h"
#include "agent/health/local/check_result.h"
#include "proto/base/clock.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// Tests the network paths between the nodes of a round, as WaysToLookAt selects them. Each node
// listens at its workers' address. A node that tests a path connects there, sends nothing and
// closes the connection. The other host's kernel answers, so a node counts as reached even if it is
// busy or stopped. Not thread-safe.
class PeerWays {
 public:
  // Listens at `address`, a literal of this host that the other nodes can reach.
  PeerWays(const JointPlan& plan, const std::string& address);

  // Publishes where this node listens. Each node sets one key in the store. No effect after
  // success.
  //
  // Errors: as Store.
  absl::Status Announce(Store& store);
  // Learns where the other nodes listen. All of them must have announced it by `deadline`. No
  // effect after success.
  //
  // Errors: as Store.
  absl::Status Learn(Store& store, Instant deadline);

  // Returns the node ranks of the nodes that did not answer within `limit`; none before Learn.
  // Blocks for up to `limit` if a node does not answer.
  std::vector<int> Look(Duration limit);

 private:
  struct Door {
    std::string address;
    uint16_t port = 0;
  };
  std::string KeyOf(int rank) const;
  void LetIn();

  const JointPlan plan_;
  ListeningSocket listener_;
  bool announced_ = false;
  std::map<int, Door> doors_;  // By node rank.
};

// The result of Look as a check's result, and the way back: nothing if `result` is of another
// check.
CheckResult ToResult(const std::vector<int>& unreached);
std::optional<std::vector<int>> UnreachedOf(const CheckResult& result);

}  // namespace hlaunch
