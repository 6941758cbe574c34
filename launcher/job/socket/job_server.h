// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/job/socket/job_messages.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The server of a job's socket, at which this user's commands find the job and ask it. Only this
// user and root are answered. Nothing runs while nobody asks.
//
// Belongs to the loop's thread, which outlives it. Destruction calls nothing.
class JobServer {
 public:
  static constexpr size_t kMostConnections = 32;

  // The job's own answers to the questions of job_messages.h, given from the loop.
  struct Answers {
    std::function<JobHere()> here;
    std::function<absl::StatusOr<JobMeeting>()> meeting;
    std::function<std::optional<JobStatus>()> status;  // Unset: the job is decided elsewhere.
    // Calls `done` once, from any thread, unless it returns an error.
    using RanksDone = std::function<void(JobAnswer)>;
    std::function<absl::Status(const RankQuestion& question, RanksDone done)> ranks;
    std::function<absl::Status(int signal)> end;
  };

  // Errors:
  //   ResourceExhausted - the socket cannot be made.
  static absl::StatusOr<std::unique_ptr<JobServer>> Open(asio::io_context& loop, Answers answers);
  ~JobServer();

 private:
  class Connection;

  JobServer(asio::io_context& loop, UniqueFd listener, Answers answers);
  void Accept();
  void AcceptLater();
  bool Take(UniqueFd socket);
  void Forget(uint64_t number);

  asio::io_context& loop_;
  asio::posix::stream_descriptor listener_;
  asio::steady_timer pause_;
  const Answers answers_;
  uint64_t next_ = 1;
  int refused_ = 0;  // Connections since the last pause.
  // Shared with the handlers that wait in the loop for a connection.
  std::map<uint64_t, std::shared_ptr<Connection>> connections_;
};

}  // namespace hlaunch
