// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/stall/heartbeats.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Receives the workers' heartbeats on a datagram socket for each worker, which has an abstract
// address, @NAME in HLAUNCH_HEARTBEAT and HLAUNCH_BOUNDARY. Only what that worker or a process that
// came from it has sent counts; the kernel names the sender. Everything else is dropped, with one
// warning.
//
// Belongs to the loop thread. Nothing runs while nothing is heard.
class HeartbeatServer {
 public:
  // Called from the loop; may not destroy the server.
  struct Events {
    std::function<void(const std::vector<Stall>&)>
        on_stall;                                 // As Heartbeats::TakeStalled; not empty.
    std::function<void(int worker)> on_recovery;  // One that had stalled was heard again.
    std::function<void(int64_t step)> on_step;    // One told how far it is.
    // One is at a good moment to stop; may be empty.
    std::function<void(int worker)> on_boundary = {};
  };

  // `loop` outlives the server. A worker stalls if it has been heard, and then not for `limit`;
  // zero: never.
  //
  // Errors:
  //   ResourceExhausted - no socket can be had.
  static absl::StatusOr<std::unique_ptr<HeartbeatServer>> Open(asio::io_context& loop, int workers,
                                                               Duration limit, Events events);
  ~HeartbeatServer();

  // Where that worker sends.
  const std::string& address(int worker) const;

  // Process `pid`, a child of this one, is that worker, until it is forgotten.
  void Listen(int worker, pid_t pid);
  void Forget(int worker);

  // The process that sent that worker's last heartbeat; 0: none did.
  pid_t sender(int worker) const;

  // As of what has been heard.
  const Heartbeats& heartbeats() const;

 private:
  struct State;
  explicit HeartbeatServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
