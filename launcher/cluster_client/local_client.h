// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/words/environment.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/frame.h"

namespace hlaunch {

// Where this host's hlaunchd listens: HLAUNCHD_SOCKET, else its usual place. Pure.
std::string SocketOfDaemon(const Environment& environment);

// What the daemon says of itself. A value.
struct HereAnswer {
  std::string version;
  std::string host;
  std::string head;  // HOST:PORT; empty: it belongs to no cluster.
  bool connected = false;
  std::string trouble;  // Why it is not, and since when.
};

// Errors:
//   InvalidArgument - it is none.
absl::StatusOr<HereAnswer> ReadHereAnswer(const nlohmann::json& body);

// Asks this host's hlaunchd, one question after another, over one connection that is made when it
// is needed and made again after it broke. Each wait ends.
//
// Belongs to one thread.
class LocalClient {
 public:
  // `interrupt`: once it is readable, nothing is waited for any more; -1: never. It is not owned.
  explicit LocalClient(std::string path, int interrupt = -1)
      : path_(std::move(path)), interrupt_(interrupt) {}

  // Connects, if it is not connected.
  //
  // Errors:
  //   NotFound - no hlaunchd is of this host: there is no such socket.
  //   PermissionDenied - this user may not ask it.
  //   Unavailable - it does not run, or takes no connection now.
  absl::Status Connect(Instant deadline);

  // The answer to one question. Only what changes nothing may be asked again after Unavailable:
  // nobody knows whether the question arrived.
  //
  // Errors:
  //   Unavailable - no daemon, the connection broke, or the daemon does not reach its head.
  //   DeadlineExceeded - no answer in time.
  //   Cancelled - by `interrupt`.
  //   Internal - what came is no answer.
  //   Whatever the daemon or the head answers.
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
  bool answered_ = false;  // The question that was asked last, be it with an error.
};

}  // namespace hlaunch
