// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/mpi/node_message.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Where a node meets the others. A value.
struct ExchangePlace {
  std::string store_host;  // Of the round's master store, or of this node's way to it.
  uint16_t store_port = 0;
  int node_rank = 0;
  int num_nodes = 1;
};

// How the nodes of a round give each other what their ranks have put, over the master store: each
// writes one key, node rank 0 reads them all and writes the whole, which the others read. A thread
// of its own speaks with the store, and only after the first call: where no rank comes to MPI_Init,
// nothing connects.
//
// Belongs to the loop thread. Destruction gives up without a word, at once.
class NodeExchange {
 public:
  struct Events {
    // The messages of all nodes; once for each Swap, in the order of these. After an error no more.
    //
    // Errors: as Store, and DecodeMessages; ResourceExhausted - there is no thread left.
    std::function<void(absl::StatusOr<NodeMessages>)> on_messages;
    // At node rank 0, from time to time: some nodes have not said anything yet. One line.
    std::function<void(std::string)> on_waiting;
  };

  NodeExchange(asio::io_context& loop, ExchangePlace place, Events events);
  ~NodeExchange();

  // Gives `own` to the others. Several may be under way.
  void Swap(const NodeMessage& own);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the thread.
  bool begun_ = false;
};

}  // namespace hlaunch
