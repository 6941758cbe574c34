// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "agent/mpi/pmi/pmi_node.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The descriptor by which a worker finds its server, if it gets one.
inline constexpr int kPmiDescriptor = 3;

// How one worker finds its server: by `fd`, or by `port` and `id`. A movable value.
struct PmiLink {
  UniqueFd fd;        // Becomes kPmiDescriptor in the worker; closed here once the worker runs.
  uint16_t port = 0;  // On 127.0.0.1.
  int id = 0;         // The worker sends it first; a stranger would have to guess it.
};

// Serves PMI-1 to the workers of one round on this node. Each worker has its own socket, or all
// connect to a loopback port. If the round has several nodes, their servers meet through the master
// store.
//
// Belongs to the loop thread.
class PmiServer {
 public:
  struct Events {
    // A rank has failed by MPI's rules; it may have exited or still run.
    std::function<void(const MpiFailure&)> on_failure;
    // Starts the processes that a rank asks for, or returns why it cannot. The result ends the
    // rank's MPI_Comm_spawn.
    std::function<absl::Status(int local_rank, const SpawnRequest& request)> spawn;
  };

  // `store_host` and `store_port` are the address of the round's master store; port 0 means that
  // there is none. With `by_port`, workers connect to a port.
  //
  // Errors: as Listen.
  static absl::StatusOr<std::unique_ptr<PmiServer>> Open(asio::io_context& loop, PmiPlace place,
                                                         bool by_port, std::string store_host,
                                                         uint16_t store_port, Events events);
  ~PmiServer();

  // Errors:
  //   ResourceExhausted - out of descriptors.
  absl::StatusOr<PmiLink> Link(int local_rank);

  // `local_rank` has exited with 0, and hlaunch had not stopped it. May call on_failure before it
  // returns.
  void Exited(int local_rank);

  // Reports no more failures and logs no more waiting: the workers are being stopped.
  void Hush();

  bool used() const;  // True if a worker has called MPI_Init.

 private:
  struct State;
  explicit PmiServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
