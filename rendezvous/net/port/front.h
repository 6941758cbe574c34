// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/port/connection_guard.h"
#include "rendezvous/net/port/peer_jobs.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

// One listening socket for two protocols. It accepts connections, looks at the first bytes of each
// without taking them (except for a greeting), and hands the connection on, or tells the peer why
// not: see JudgeConnection. So where there is a token, gRPC sees no peer that has not proved that
// it holds the token. Without one, gRPC sees no flood of streams (see StreamMeter), and with
// certificates few handshakes at once (see HandshakeQueue), if whoever reads and writes the
// connections shows all bytes to their guards.
//
// Owns the socket and a thread, "hl-front". The constructor starts the thread; the destructor stops
// accepting, closes the connections that were not handed on, and joins the thread.
class Front {
 public:
  // Gets a connected, non-blocking, close-on-exec socket. Called from the thread; must not
  // block.
  using Handler = std::function<void(UniqueFd connection)>;
  // Gets the connection's guard as well; null if nothing has to be shown to one.
  using GuardedHandler =
      std::function<void(UniqueFd connection, std::shared_ptr<ConnectionGuard> guard)>;

  struct Options {
    GuardedHandler grpc;
    // May be empty: then connections that are not gRPC are closed, with a line in the log.
    Handler c10d;
    // What gRPC's clients must prove. With a token they prove it in the greeting that comes before
    // gRPC's own bytes; with certificates they prove it to gRPC.
    Trust trust;
    // Is told what each connection in clear has proved; must outlive the front. May be null.
    PeerJobs* peers = nullptr;
    // The time for the first bytes and for a greeting. A connection that stays silent is c10d:
    // PyTorch before 2.1 opens a second one for callbacks and may never write to it.
    Duration patience = std::chrono::seconds(10);
    // The most silent connections that are held; beyond it the oldest is decided at once. 0: half
    // of the descriptors that this process may open.
    size_t max_undecided = 0;
  };

  // Requires: `listener` is a listening TCP socket.
  Front(UniqueFd listener, Options options);
  ~Front();

  // A peer that has connected and is still silent may still speak gRPC; if it is c10d, its
  // connection is closed. So no connection of an old round is handed to the store of the next.
  // Thread-safe; handlers must not call it.
  void EndC10d();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
