// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "agent/mpi/pmi_node.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The descriptor that a worker finds its server behind, where it is given one.
inline constexpr int kPmiDescriptor = 3;

// What one worker needs to find its server. A movable value.
struct PmiLink {
  UniqueFd fd;        // To be kPmiDescriptor in the worker; closed here once it runs. Or:
  uint16_t port = 0;  // on 127.0.0.1,
  int id = 0;         // where the worker says this. A stranger would have to guess it.
};

// Serves PMI-1 to the workers of one round on this node: each has a socket of its own, or they come
// to a port of loopback. Where the round has several nodes, it meets their servers at the master
// store.
//
// Belongs to the loop thread.
class PmiServer {
 public:
  struct Events {
    // A rank has failed by MPI's rules; it may have exited, or live.
    std::function<void(const MpiFailure&)> on_failure;
    // Starts what a rank asks for, and returns why it cannot. The answer ends its MPI_Comm_spawn.
    std::function<absl::Status(int local_rank, const SpawnRequest& request)> spawn;
  };

  // `store_host` and `store_port` are where the round's master store is to be found; without a port
  // there is none. `by_port`: workers come to a port.
  //
  // Errors: as Listen.
  static absl::StatusOr<std::unique_ptr<PmiServer>> Open(asio::io_context& loop, PmiPlace place,
                                                         bool by_port, std::string store_host,
                                                         uint16_t store_port, Events events);
  ~PmiServer();

  // Errors:
  //   ResourceExhausted - out of descriptors.
  absl::StatusOr<PmiLink> Link(int local_rank);

  // `local_rank` has exited with 0, and nobody had stopped it. Tells failures from within this.
  void Exited(int local_rank);

  // Tells of no failure any more, and waits for nobody: the workers are being stopped.
  void Hush();

  bool used() const;  // Whether a worker has come to MPI_Init.

 private:
  struct State;
  explicit PmiServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
