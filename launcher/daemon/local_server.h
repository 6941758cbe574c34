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
#include "launcher/daemon/peer_user.h"
#include "nlohmann/json.hpp"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The local socket: takes this host's users' questions, says who asks, and brings them the answers.
// Each connection asks one question after another, the first one soon; where there are too many,
// the one that has asked nothing for the longest time gives way to a new one. A connection that is
// refused is told why (Envelope::id).
//
// Belongs to the loop's thread, which outlives it.
class LocalServer {
 public:
  static constexpr size_t kMostConnections = 512;
  static constexpr size_t kMostOfUser = 32;  // Root's are not counted.

  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;
  // Answers a question, whose `user` is right, with one call of `done`, at once or later.
  using Answer = std::function<void(const Envelope& question, Done done)>;

  LocalServer(asio::io_context& loop, UniqueFd listener, PeerUsers& users, Answer answer);
  ~LocalServer();

 private:
  class Connection;
  void Accept();
  void Take(UniqueFd socket);
  std::string NameOf(uid_t uid) const;
  bool MakeRoom();
  void Forget(uint64_t number);

  asio::io_context& loop_;
  asio::posix::stream_descriptor listener_;
  PeerUsers& users_;
  const Answer answer_;
  uint64_t next_ = 1;
  // Shared with what is under way in the loop for a connection.
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<uid_t, size_t> of_user_;
};

// A listening socket at `path` that everybody may connect to. One that a daemon left behind is
// replaced.
//
// Errors:
//   AlreadyExists - another daemon listens there.
//   FailedPrecondition - it cannot be made; the message names it and says why.
absl::StatusOr<UniqueFd> ListenLocally(const std::string& path);

}  // namespace hlaunch
