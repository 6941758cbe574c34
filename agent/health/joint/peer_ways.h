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
#include "rendezvous/listening/listen.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// The ways between the nodes of a round, as WaysToLookAt has them. Each node listens at the address
// that its workers have; whoever looks connects there, says nothing and leaves. The other host's
// kernel answers, so a node is reached however busy it is, or stopped. Not thread-safe.
class PeerWays {
 public:
  // Listens at `address`, a literal of this host that the others reach.
  PeerWays(const JointPlan& plan, const std::string& address);

  // Says where this node listens. Costs the store one key of each node; no effect after success.
  //
  // Errors: as Store.
  absl::Status Announce(Store& store);
  // Learns where the others listen, which all must have announced by `deadline`. No effect after
  // success.
  //
  // Errors: as Store.
  absl::Status Learn(Store& store, Instant deadline);

  // The node ranks of those that did not answer within `limit`; none before Learn. Blocks for as
  // long, if one does not answer.
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

// What a look came to as a check's result, and the way back; nothing if `result` is none.
CheckResult ToResult(const std::vector<int>& unreached);
std::optional<std::vector<int>> UnreachedOf(const CheckResult& result);

}  // namespace hlaunch
