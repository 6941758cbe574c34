// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/job/socket/socket_name.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// One question at a job's socket. Every wait has a deadline. Belongs to one thread.
class SocketQuestion {
 public:
  // Connects, checks that the socket is the process of the user whom its name says, and sends the
  // question.
  //
  // Errors:
  //   NotFound - the job is gone.
  //   PermissionDenied - the process there is another user's.
  //   Unavailable - the job does not take the question before `deadline`.
  static absl::StatusOr<SocketQuestion> Send(const JobSocketName& socket, absl::string_view verb,
                                             nlohmann::json body, Instant deadline);

  // Waits for the answer, until `deadline`. Call once.
  //
  // Errors:
  //   DeadlineExceeded - the job does not answer.
  //   Unavailable - the job has ended meanwhile.
  //   Internal - what came is no answer.
  //   Any error that the job answers with.
  absl::StatusOr<nlohmann::json> Await(Instant deadline);

  // The process that listens, as this process sees it; 0 if it does not.
  pid_t pid() const { return pid_; }

 private:
  SocketQuestion(UniqueFd fd, pid_t pid) : fd_(std::move(fd)), pid_(pid) {}

  UniqueFd fd_;
  pid_t pid_;
};

// Both in one. Errors: those of both.
absl::StatusOr<nlohmann::json> AskSocket(const JobSocketName& socket, absl::string_view verb,
                                         nlohmann::json body, Duration patience);

}  // namespace hlaunch
