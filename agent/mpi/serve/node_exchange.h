// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/mpi/serve/node_message.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Where a node meets the other nodes. A value.
struct ExchangePlace {
  std::string store_host;  // The round's master store, or this node's proxy to it.
  uint16_t store_port = 0;
  int node_rank = 0;
  int num_nodes = 1;
};

// Exchanges the data that ranks have put between the nodes of a round, through the master store.
// Each node writes one key; node rank 0 reads all of them and writes the whole, which the other
// nodes read. A separate thread talks to the store, and starts only with the first call: if no rank
// calls MPI_Init, nothing connects.
//
// Belongs to the loop thread. The destructor gives up at once and calls no event; the
// thread ends once the store has answered it (see StartUnawaited).
class NodeExchange {
 public:
  struct Events {
    // Called with the messages of all nodes, once for each Swap and in the same order. Not called
    // again after an error.
    //
    // Errors: as Store, and DecodeMessages; ResourceExhausted - no thread could be started.
    std::function<void(absl::StatusOr<NodeMessages>)> on_messages;
    // Called on node rank 0 from time to time while some nodes have not sent anything. One line.
    std::function<void(std::string)> on_waiting;
  };

  NodeExchange(asio::io_context& loop, ExchangePlace place, Events events);
  ~NodeExchange();

  // Sends `own` to the other nodes. Several calls may be in progress.
  void Swap(const NodeMessage& own);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the thread.
  bool begun_ = false;
};

}  // namespace hlaunch
