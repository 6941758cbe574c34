// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "launcher/cluster/tasks/folder_watch.h"
#include "launcher/cluster/tasks/parts.h"
#include "proto/cluster/cluster_messages.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Answers questions for logs of parts. A question for lines that are not there yet waits.
//
// Belongs to the loop's thread; loop and parts outlive it.
class LogAnswers {
 public:
  using Done = std::function<void(absl::StatusOr<LogAnswer>)>;

  LogAnswers(asio::io_context& loop, const Parts& parts);
  ~LogAnswers();

  // Calls `done` once, at once or later.
  //
  // Errors:
  //   NotFound - there is no such part here.
  //   InvalidArgument - the position is not valid.
  void Ask(const LogQuestion& question, Done done);

  // The part of `job` has changed: it may have ended.
  void Look(uint64_t job);

 private:
  struct Waiting;
  absl::StatusOr<LogAnswer> Read(const LogQuestion& question) const;
  void Try(uint64_t number);
  void LookSoon(uint64_t number);
  void Finish(uint64_t number, absl::StatusOr<LogAnswer> answer);

  asio::io_context& loop_;
  const Parts& parts_;
  FolderWatch watch_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<Waiting>> waiting_;
};

}  // namespace hlaunch
