// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cluster/daemon/peer_user.h"
#include "nlohmann/json.hpp"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The server of the local socket. It takes questions from this host's users, finds out who asks,
// and sends the answers. Each connection asks one question after another, and the first one soon.
// If there are too many connections, a new one replaces the one that has been idle for longest. A
// refused connection is told the reason (Envelope::id).
//
// Belongs to the loop's thread, which outlives it.
class LocalServer {
 public:
  static constexpr size_t kMostConnections = 512;
  static constexpr size_t kMostOfUser = 32;  // Root's connections do not count.

  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;
  // Answers a question, whose `user` has been verified. Calls `done` once, at once or later.
  using Answer = std::function<void(const Envelope& question, Done done)>;

  LocalServer(asio::io_context& loop, UniqueFd listener, PeerUsers& users, Answer answer);
  ~LocalServer();

 private:
  class Connection;
  void Accept();
  void PauseAccepting();
  void Take(UniqueFd socket);
  std::string NameOf(uid_t uid) const;
  bool MakeRoom();
  void Forget(uint64_t number);

  asio::io_context& loop_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer pause_;  // While this process has no room for another connection.
  PeerUsers& users_;
  const Answer answer_;
  uint64_t next_ = 1;
  // Shared with the handlers that wait in the loop for a connection.
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<uid_t, size_t> of_user_;
};

// Makes a listening socket at `path` that every user may connect to. Replaces a socket that a
// former daemon left behind.
//
// Errors:
//   AlreadyExists - another daemon listens there.
//   FailedPrecondition - the socket cannot be made; the message names it and says why.
absl::StatusOr<UniqueFd> ListenLocally(const std::string& path);

}  // namespace hlaunch
