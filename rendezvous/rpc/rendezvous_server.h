// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/voter/wire/voter_post.h"

namespace hlaunch {

// Serves the jobs' rendezvous over gRPC on a socket that is already listening. It passes on
// connections that do not speak gRPC, so that the master store can share the port.
//
// Thread-safe. Owns the socket and its threads; destruction shuts down without grace.
class RendezvousServer {
 public:
  struct Options {
    UniqueFd listener;  // A listening TCP socket.
    Trust trust;        // What nodes must prove; if none, they need not prove anything.
    // The time limit for the first message of a stream.
    Duration patience = std::chrono::seconds(10);
    // Receives the connections that do not speak gRPC; empty: they are closed. Must not block.
    std::function<void(UniqueFd connection)> c10d;
    VoterPost* voters = nullptr;  // Must outlive the server; null: no voter is here.
  };

  // `jobs` must outlive the server.
  //
  // Errors:
  //   Unauthenticated - the trust belongs to a single job of a service.
  //   Internal - gRPC refuses to serve.
  //   ResourceExhausted - out of threads.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(Options options, Jobs& jobs);
  ~RendezvousServer();

  // Stops accepting, lets every stream deliver its last directive, and returns after `grace` at the
  // latest; streams that are still open by then are cut. Afterwards nothing calls the rendezvous or
  // `c10d`.
  void Shutdown(Duration grace);

  // Ends each open stream with `status`, after its last directive. The agents connect again.
  void EndStreams(const absl::Status& status);

  // Closes connections that have sent nothing yet, unless they turn out to speak gRPC: see Front.
  void EndC10d();

  // Returns the number of connected agents.
  size_t open_streams() const;

 private:
  struct State;
  explicit RendezvousServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
