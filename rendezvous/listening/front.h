// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// One listening socket for two protocols. Accepts, looks at the first byte of each connection
// without taking it, and hands the connection on: 'P' of HTTP/2's preface and 0x16 of a TLS
// handshake are gRPC, all else is c10d, whose first byte is a query type below 0x16.
//
// Owns the socket and a thread, "hl-front". Construction starts it, destruction stops
// accepting, closes what was not handed on and joins the thread.
class Front {
 public:
  // Gets a connected, non-blocking, close-on-exec socket. Called from the thread; must not
  // block.
  using Handler = std::function<void(UniqueFd connection)>;

  struct Options {
    Handler grpc;
    // May be empty: then what is not gRPC is closed, with a line in the log.
    Handler c10d;
    // For the first byte. A connection that stays silent is c10d: PyTorch before 2.1 opens a
    // second one for callbacks and may never write to it.
    Duration patience = std::chrono::seconds(10);
    // Silent connections held at once; beyond it the oldest is decided at once. 0: half of the
    // descriptors that this process may open.
    size_t max_undecided = 0;
  };

  // Requires: `listener` is a listening TCP socket.
  Front(UniqueFd listener, Options options);
  ~Front();

  // Whoever has connected and said nothing yet may still speak gRPC; as c10d it is closed. So no
  // connection of an old round is handed to the store of the next. Thread-safe; not for handlers.
  void EndC10d();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
