// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/front/peer_jobs.h"
#include "rendezvous/trust/trust.h"

namespace hlaunch {

// One listening socket for two protocols. Accepts, looks at the first bytes of each connection
// without taking them (but for a greeting), and hands the connection on, or tells the other side
// why it does not: see JudgeConnection. So gRPC sees nobody who cannot name the server, where a
// name is demanded, and in clear nobody who has not proved that he holds the token.
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
    // What gRPC's clients must prove: with a token in clear, in the greeting that comes before
    // gRPC's own bytes; else to gRPC, after the first bytes have shown that they can.
    Trust trust;
    // Is told of who has proved in clear what; must outlive the front. Null: nobody asks.
    PeerJobs* peers = nullptr;
    // For the first bytes, and a greeting. A connection that stays silent is c10d: PyTorch
    // before 2.1 opens a second one for callbacks and may never write to it.
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
