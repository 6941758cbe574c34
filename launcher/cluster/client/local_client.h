// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/text/environment.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/frame.h"

namespace hlaunch {

// Returns the socket path of this host's hlaunchd: the value of HLAUNCHD_SOCKET, or else its usual
// path. Pure.
std::string SocketOfDaemon(const Environment& environment);

// What the daemon says about itself. A value.
struct HereAnswer {
  std::string version;
  std::string host;
  std::string head;  // HOST:PORT; empty: the daemon belongs to no cluster.
  bool connected = false;
  std::string trouble;  // Why it is not connected; if it is, why the host is unfit.
};

// Errors:
//   InvalidArgument - `body` is no such answer.
absl::StatusOr<HereAnswer> ReadHereAnswer(const nlohmann::json& body);

// Asks this host's hlaunchd one question after another over one connection. The client connects
// when it needs to, and again after the connection broke. Every wait has a deadline.
//
// Belongs to one thread.
class LocalClient {
 public:
  // Once the descriptor `interrupt` is readable, every wait ends with Cancelled; -1: no interrupt.
  // The client does not own `interrupt`.
  explicit LocalClient(std::string path, int interrupt = -1)
      : path_(std::move(path)), interrupt_(interrupt) {}

  // Connects, if it is not connected.
  //
  // Errors:
  //   NotFound - this host has no hlaunchd: there is no such socket.
  //   PermissionDenied - this user may not ask hlaunchd.
  //   Unavailable - hlaunchd does not run, or accepts no connection now.
  //   Cancelled - by `interrupt`.
  absl::Status Connect(Instant deadline);

  // Returns the answer to one question. After Unavailable, ask again only if the question changes
  // nothing: the question may have arrived.
  //
  // Errors:
  //   Unavailable - there is no daemon, the connection broke, or the daemon does not reach its
  //       head.
  //   DeadlineExceeded - no answer came in time.
  //   Cancelled - by `interrupt`.
  //   Internal - what came is not a valid answer.
  //   Any error that the daemon or the head answers with.
  absl::StatusOr<nlohmann::json> Ask(absl::string_view verb, nlohmann::json body,
                                     Duration patience);

  const std::string& path() const { return path_; }

 private:
  absl::Status Await(short events, Instant deadline) const;
  absl::Status Write(absl::string_view bytes, Instant deadline);
  absl::StatusOr<nlohmann::json> ReadAnswer(uint64_t id, Instant deadline);

  const std::string path_;
  const int interrupt_;
  UniqueFd socket_;
  FrameReader frames_{kMaxClusterFrame};
  uint64_t last_id_ = 0;
  bool answered_ = false;  // The last question got its answer, which may be an error.
};

}  // namespace hlaunch
