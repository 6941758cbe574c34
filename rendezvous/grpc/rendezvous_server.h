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
#include "rendezvous/trust/trust.h"
#include "rendezvous/witness_wire/witness_post.h"

namespace hlaunch {

// Serves the jobs' rendezvous over gRPC on a socket that is already listening, and hands on
// what does not speak gRPC, so that the master store may share the port.
//
// Thread-safe. Owns the socket and its threads; destruction shuts down without grace.
class RendezvousServer {
 public:
  struct Options {
    UniqueFd listener;  // A listening TCP socket.
    Trust trust;        // What nodes must prove; none: nothing.
    // For the first message of a stream.
    Duration patience = std::chrono::seconds(10);
    // Gets the connections that do not speak gRPC; empty: they are closed. Must not block.
    std::function<void(UniqueFd connection)> c10d;
    WitnessPost* witnesses = nullptr;  // Must outlive the server; null: nobody is a witness here.
  };

  // `jobs` must outlive the server.
  //
  // Errors:
  //   Unauthenticated - the trust is for one job of a service alone.
  //   Internal - gRPC refuses to serve.
  //   ResourceExhausted - out of threads.
  static absl::StatusOr<std::unique_ptr<RendezvousServer>> Start(Options options, Jobs& jobs);
  ~RendezvousServer();

  // Stops accepting, lets every stream take its last directive, and returns after `grace` at
  // the latest; streams that are still open are cut. No call into the rendezvous or to
  // `c10d` is made after it.
  void Shutdown(Duration grace);

  // Ends the streams that are open with `status`, once each has got its last directive; the agents
  // come again.
  void EndStreams(const absl::Status& status);

  // Closes what has connected and not spoken yet, unless it turns out to be gRPC: see Front.
  void EndC10d();

  // How many agents are connected.
  size_t open_streams() const;

 private:
  struct State;
  explicit RendezvousServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hlaunch
