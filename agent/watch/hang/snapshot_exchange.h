// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The nodes of a round tell each other through the master store what their ranks do. Each node
// writes a key of its own. Node rank 0 reads all of them and writes its verdict, which the other
// nodes read. A separate thread talks to the store, and starts only with the first call: a job in
// which nothing stands still does not connect.
//
// Belongs to the loop thread. The destructor gives up at once and does not call `done`.
class SnapshotExchange {
 public:
  SnapshotExchange(asio::io_context& loop, const Assignment& assignment);
  ~SnapshotExchange();

  // The result. On node rank 0 it is the last text of each node, in order; "-" for a node that
  // has said nothing yet. On the other nodes it is only node rank 0's verdict, empty if there
  // is none.
  using Told = std::vector<std::string>;

  // Sends `own`. `done` is called once from the loop, unless this object is destroyed first.
  // Requires: no call is in progress.
  //
  // Errors: as Store; ResourceExhausted - no thread could be started: the next call tries again.
  void Swap(std::string own, std::function<void(absl::StatusOr<Told>)> done);
  bool busy() const;

  // Sets the verdict that the next Swap sends to the other nodes. Requires: this is node rank 0.
  void SetVerdict(std::string verdict);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the thread.
  std::string verdict_;
};

}  // namespace hlaunch
