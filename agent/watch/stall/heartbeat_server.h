// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/watch/stall/heartbeats.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Receives the workers' heartbeats. Each worker has a datagram socket with an abstract address,
// which it gets as @NAME in HLAUNCH_HEARTBEAT and HLAUNCH_BOUNDARY. A datagram counts only if that
// worker or a process that descends from it sent it; the kernel names the sender. Any other
// datagram is dropped, with one warning.
//
// Belongs to the loop thread. Nothing runs while no datagram comes.
class HeartbeatServer {
 public:
  // Called from the loop; may not destroy the server.
  struct Events {
    std::function<void(const std::vector<Stall>&)>
        on_stall;                                 // From Heartbeats::TakeStalled; not empty.
    std::function<void(int worker)> on_recovery;  // A stalled worker was heard again.
    std::function<void(int64_t step)> on_step;    // A worker told its step.
    // A worker is at a good moment to stop; may be empty.
    std::function<void(int worker)> on_boundary = {};
  };

  // `loop` outlives the server. A worker stalls if it has been heard once and then not for `limit`.
  // With a limit of zero it never stalls.
  //
  // Errors:
  //   ResourceExhausted - no socket is available.
  static absl::StatusOr<std::unique_ptr<HeartbeatServer>> Open(asio::io_context& loop, int workers,
                                                               Duration limit, Events events);
  ~HeartbeatServer();

  // The address to which that worker sends.
  const std::string& address(int worker) const;

  // Says that process `pid`, a child of this process, is that worker, until Forget is called.
  void Listen(int worker, pid_t pid);
  void Forget(int worker);

  // The process that sent that worker's last heartbeat; 0 if there was none.
  pid_t sender(int worker) const;

  // The state by the heartbeats received so far.
  const Heartbeats& heartbeats() const;

 private:
  struct State;
  explicit HeartbeatServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
